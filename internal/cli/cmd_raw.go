package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/kv"
)

func getCmd() *cobra.Command {
	return new(sourceFlags).reads(&cobra.Command{
		Use:   "get TARGET KEY [-]",
		Short: "Print the stored bytes of a key",
		Long:  "Print the stored bytes of a key below the target's path. \"-\" is standard output, where they go without it too.",
		Example: `  zarrdb get weather.zdb temp/zarr.json
  zarrdb get weather.zdb:temp c/0/0 > chunk`,
		Args: argCount(2, 3),
	}, func(cmd *cobra.Command, s *engine.Source, args []string) error {
		if len(args) > 2 && args[2] != "-" {
			return usagef("get: %q: the bytes go to standard output: zarrdb get %s %s > %s", args[2], shellWord(args[0]), shellWord(args[1]), shellWord(args[2]))
		}
		view, err := s.Store()
		if err != nil {
			return err
		}
		v, err := kv.Locate(cmd.Context(), view, args[1])
		if err != nil {
			return fmt.Errorf("get %q: %w", args[1], err)
		}
		return copyValue(cmd, v)
	})
}

// copyValue writes a value to standard output in pieces.
func copyValue(cmd *cobra.Command, v kv.Value) error {
	return kv.Pieces(cmd.Context(), v, 0, v.Size(), func(b []byte) error {
		_, err := cmd.OutOrStdout().Write(b)
		return err
	})
}

func keysCmd() *cobra.Command {
	var null bool
	cmd := new(sourceFlags).reads(&cobra.Command{
		Use:   "keys TARGET [PREFIX]",
		Short: "List stored keys, one a line",
		Long: `List the keys below the target's path, those that begin with PREFIX, in byte
order. Control characters are shown as \u001b or \n; with --null keys are printed
as they are, each with a zero byte behind it.`,
		Example: `  zarrdb keys weather.zdb temp/c/0/
  zarrdb keys weather.zdb --null | xargs -0 -n 1 zarrdb get weather.zdb`,
		Args: argCount(1, 2),
	}, func(cmd *cobra.Command, s *engine.Source, args []string) error {
		view, err := s.Store()
		if err != nil {
			return err
		}
		out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10) // listings can be millions of lines
		for k, err := range view.List(cmd.Context(), kv.ListOptions{Prefix: optional(args, 1)}) {
			if err != nil {
				return err
			}
			end := byte(0)
			if !null {
				k, end = report.Escape(k, ""), '\n'
			}
			_, _ = out.WriteString(k)
			if err := out.WriteByte(end); err != nil { // of either
				return err
			}
		}
		return out.Flush()
	})
	cmd.Flags().BoolVarP(&null, "null", "0", false, "end keys with a zero byte and print them without escapes")
	return cmd
}

func optional(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

func putCmd() *cobra.Command {
	return new(writeFlags).writes(&cobra.Command{
		Use:   "put TARGET KEY [FILE]",
		Short: "Store bytes under a key",
		Long: `Store the bytes of FILE, or of standard input, under KEY below the target's path,
as one commit. Any key may be set; what Zarr programs make of it is up to them.
A value may have 1 TiB, and takes twice its length on the disk while it is stored.`,
		Example: `  zarrdb put weather.zdb notes/readme.md README.md -m "say what this is"
  echo '{"zarr_format":3,"node_type":"group"}' | zarrdb put weather.zdb:g zarr.json`,
		Args: argCount(2, 3),
	}, func(cmd *cobra.Command, t target, args []string) (string, change, error) {
		key := strings.TrimPrefix(t.path+"/"+args[1], "/")
		return "put " + key, func(_ *engine.DB, s *engine.Session) error {
			return withInput(cmd, optional(args, 2), t.db, func(value []byte) error {
				return s.Set(cmd.Context(), key, value)
			})
		}, nil
	})
}

func catCmd() *cobra.Command {
	return new(sourceFlags).reads(&cobra.Command{
		Use:   "cat URL",
		Short: "Print the file or JSON value that a URL names",
		Long: `Print the bytes of the file that a URL names, or the text of a JSON value. Files
may lie in archives, be compressed, or be a range of another file.`,
		Example: `  zarrdb cat 'file:///d/x.zip|zip:a/zarr.json'
  zarrdb cat 'file:///d/x.zip|zip:a/zarr.json|json:/attributes/units'
  zarrdb cat 'data.bin.gz|gzip:|byte-range:100-200'`,
		Args: argCount(1, 1),
	}, func(cmd *cobra.Command, s *engine.Source, _ []string) error {
		v, err := s.File(cmd.Context())
		if err != nil {
			return err
		}
		return copyValue(cmd, v)
	})
}

func urlCmd() *cobra.Command {
	return grouping(&cobra.Command{
		Use:   "url",
		Short: "Work with URL pipelines",
		Long: `URL pipelines (ZEP 8) say where data lies in a chain of steps: a root URL or path,
then adapters behind bars, as in file:///d/x.zip|zip:a/|zarr3:temp.`,
		Example: `  zarrdb url detect ./data.zip`,
	},
		&cobra.Command{
			Use: "normalize URL", Short: "Print the canonical form of a URL",
			Example: `  zarrdb url normalize 's3://bucket/a/../b.zip|zip|zarr3'`,
			Args:    argCount(1, 1),
			RunE: func(cmd *cobra.Command, args []string) error {
				s, err := engine.NormalizeURL(args[0])
				if err == nil {
					say(cmd, "%s", s)
				}
				return err
			},
		},
		&cobra.Command{
			Use: "resolve BASE RELATIVE", Short: "Resolve a relative URL against a base",
			Example: `  zarrdb url resolve 's3://bucket/d/x.zip|zip:a' '..:y.zip|zip:b'`,
			Args:    argCount(2, 2),
			RunE: func(cmd *cobra.Command, args []string) error {
				s, err := engine.ResolveURL(args[0], args[1])
				if err == nil {
					say(cmd, "%s", s)
				}
				return err
			},
		},
		urlDetectCmd(),
	)
}

func urlDetectCmd() *cobra.Command {
	return new(sourceFlags).reads(&cobra.Command{
		Use: "detect URL", Short: "Open a URL and print it with the formats that were detected",
		Example: `  zarrdb url detect file:///d/x.zip`,
		Args:    argCount(1, 1),
	}, func(cmd *cobra.Command, s *engine.Source, _ []string) error {
		u, err := s.Detect(cmd.Context())
		if err == nil {
			say(cmd, "%v", u)
		}
		return err
	})
}
