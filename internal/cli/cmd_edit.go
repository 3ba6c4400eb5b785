package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

func parseAttrs(s string) (zarr.Attributes, error) {
	var attrs zarr.Attributes
	if s == "" {
		return attrs, nil
	}
	if err := json.Unmarshal([]byte(s), &attrs); err != nil {
		return attrs, usagef("attributes %q: not a JSON object", s)
	}
	return attrs, nil
}

// attrValue parses the typed value of an attribute: JSON, or a string without
// quotes. Text that begins like JSON but is not valid JSON is an error, not a
// string.
func attrValue(text string) (any, error) {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	if beginsLikeJSON.MatchString(text) {
		return nil, errors.New("the value begins like JSON and is not valid JSON; a string that begins so needs double quotes inside single ones: '\"…\"'")
	}
	return text, nil
}

var beginsLikeJSON = regexp.MustCompile(`^\s*([-{\["0-9]|(true|false|null)\b)`)

func attrsCmd() *cobra.Command {
	var src sourceFlags
	var wf writeFlags
	var set, del []string
	cmd := &cobra.Command{
		Use:   "attrs TARGET [--set NAME=VALUE] [--delete NAME]",
		Short: "Show or change attributes",
		Long: `Show the attributes of a node as JSON, or change them. A VALUE is JSON; text that
does not begin like JSON is a string.`,
		Example: `  zarrdb attrs weather.zdb:temp
  zarrdb attrs weather.zdb:temp --set units=K --set 'valid_range=[0,400]' --delete history -m "fix units"`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(set) == 0 && len(del) == 0 {
				src.session, src.followFlags = wf.session, wf.followFlags
				s, n, err := src.node(cmd, args[0])
				if err != nil {
					return err
				}
				defer s.Close()
				return printJSON(cmd, n.Meta().Attributes)
			}
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			return wf.update(cmd, t, "change attributes of /"+t.path, func(_ *engine.DB, s *engine.Session) error {
				n, err := s.Node(cmd.Context(), t.path)
				if err != nil {
					return rootless(t, err)
				}
				attrs := n.Meta().Clone().Attributes
				for _, kv := range set {
					k, text, ok := strings.Cut(kv, "=")
					if !ok {
						return usagef("--set %q: want NAME=VALUE", kv)
					}
					v, err := attrValue(text)
					if err != nil {
						return usagef("--set %s: %w", k, err)
					}
					if err := attrs.Set(k, v); err != nil {
						return err
					}
				}
				for _, k := range del {
					if !attrs.Delete(k) {
						return fmt.Errorf("attribute %q of /%s: %w", k, t.path, zarr.ErrNotFound)
					}
				}
				return n.SetAttributes(cmd.Context(), attrs)
			})
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "set an attribute: `NAME=VALUE`, JSON or a plain string")
	cmd.Flags().StringArrayVar(&del, "delete", nil, "delete the attribute `NAME`")
	wf.register(cmd)
	return cmd
}

func resizeCmd() *cobra.Command {
	var text, front string
	var keep bool
	wf := new(writeFlags)
	cmd := wf.writes(&cobra.Command{
		Use:   "resize TARGET (--shape N,… | --drop-front DIM=STEP)",
		Short: "Change the shape of an array",
		Long: `Change the shape of an array: of all dimensions, or of those that are named. Growing adds elements that hold the fill value.
Shrinking deletes what lies outside: chunks at the new edge are rewritten, and
linked ones copied in. With --keep-chunks, chunks stay as they are, and the
elements appear again when the array grows.

--drop-front drops the oldest steps of a dimension, those before a label or an index, from all arrays
with the dimension in the group (of the array) and below: chunks that stay keep their bytes and get other
numbers. Where the steps end inside a chunk, an array of at most 64 MiB, such as a
coordinate, is written again; for a larger one the error names the steps that are possible.`,
		Example: `  zarrdb resize weather.zdb:temp --shape 730,721,1440
  zarrdb resize weather.zdb:temp --shape time=730
  zarrdb resize weather.zdb --drop-front time=2025-02`,
		Args: argCount(1, 1),
	}, func(cmd *cobra.Command, t target, _ []string) (string, change, error) {
		if cmd.Flags().Changed("shape") == (front != "") || keep && front != "" {
			return "", nil, usagef("resize: --shape or --drop-front is needed")
		}
		if front != "" {
			dim, first, ok := strings.Cut(front, "=")
			if !ok || dim == "" || first == "" {
				return "", nil, usagef("resize: --drop-front %s is not DIM=STEP", front)
			}
			return fmt.Sprintf("drop the steps of /%s before %s", t.path, front), func(_ *engine.DB, s *engine.Session) error {
				r, err := s.DropFront(cmd.Context(), t.path, dim, first)
				switch {
				case err != nil || wf.json:
				case r.Steps == 0:
					say(cmd, "no step of %s is before %s", dim, first)
				default:
					say(cmd, "%s of %s dropped, %d left; chunks of %s moved, %s written again", count(r.Steps, "step"), dim, r.Left,
						count(int64(len(r.Moved)), "array"), count(int64(len(r.Rewritten)), "array"))
				}
				return err
			}, nil
		}
		return fmt.Sprintf("resize /%s to %s", t.path, text), func(_ *engine.DB, s *engine.Session) error {
			a, err := s.Array(cmd.Context(), t.path)
			if err != nil {
				return err
			}
			shape, err := newShape(a, text)
			if err != nil {
				return err
			}
			return a.Resize(cmd.Context(), shape, zarr.ResizeOptions{KeepChunks: keep})
		}, nil
	})
	cmd.Flags().StringVar(&text, "shape", "", "new length of each dimension, `N,...`, or of some, NAME=N,...")
	cmd.Flags().StringVar(&front, "drop-front", "", "drop the steps of a dimension before a label or an index: `DIM=STEP`")
	cmd.Flags().BoolVar(&keep, "keep-chunks", false, "change no chunks")
	return cmd
}

// newShape reads the new lengths of an array: of all dimensions, or of those that are named.
func newShape(a *zarr.Array, text string) ([]int64, error) {
	var all lengths
	if !strings.Contains(text, "=") {
		if err := all.Set(text); err != nil {
			return nil, usagef("resize: --shape %s: %w", text, err)
		}
		return all, nil
	}
	shape, names := slices.Clone(a.Shape()), a.DimensionNames()
	for item := range strings.SplitSeq(text, ",") {
		name, n, _ := strings.Cut(item, "=")
		var one lengths
		if err := one.Set(n); err != nil || len(one) != 1 {
			return nil, usagef("resize: --shape %s: %q is not NAME=LENGTH", text, item)
		}
		d := slices.Index(names, strings.TrimSpace(name))
		if d < 0 {
			return nil, usagef("resize: --shape %s: /%s has no dimension %q; its dimensions are %s", text, a.Path(), name, strings.Join(names, ", "))
		}
		shape[d] = one[0]
	}
	return shape, nil
}

// pathIn reads the second argument of mv and cp, a path in the database of t, which
// may be written as DB:PATH.
func pathIn(cmd *cobra.Command, t target, arg string) (string, error) {
	to := parseTarget(arg)
	switch {
	case to.db == "":
		return strings.Trim(arg, "/"), nil
	case to.db != t.db && !sameFile(to.db, t.db):
		return "", usagef("%s: %s is another database: use import", cmd.CommandPath(), to.db)
	case to.rev != "" && orMain(to.rev) != orMain(t.rev):
		return "", usagef("%s: %s is on another branch; write its path alone", cmd.CommandPath(), arg)
	}
	return to.path, nil
}

// otherFormat returns an error that names the command for a node whose format
// differs from that of the group above.
func otherFormat(t target, to string, err error) error {
	var other *engine.OtherFormatError
	if !errors.As(err, &other) {
		return err
	}
	at := t.db
	if t.rev != "" {
		at += "@" + t.rev
	}
	return fmt.Errorf("%w; for a copy in the format of the group: zarrdb export %s copy.zarr --format zarr%v, then zarrdb import %s copy.zarr --to %s", err, shellWord(at+":"+t.path), other.Above, shellWord(at), shellWord(to))
}

func mvCmd() *cobra.Command {
	return new(writeFlags).writes(&cobra.Command{
		Use:     "mv TARGET PATH",
		Short:   "Rename an array or a group",
		Long:    "Rename a node to PATH in the same database. Chunks are not touched, so it costs the same for any size.",
		Example: `  zarrdb mv weather.zdb:temp surface/t2m`,
		Args:    argCount(2, 2),
	}, func(cmd *cobra.Command, t target, args []string) (string, change, error) {
		to, err := pathIn(cmd, t, args[1])
		return fmt.Sprintf("rename /%s to /%s", t.path, to), func(_ *engine.DB, s *engine.Session) error {
			return otherFormat(t, to, s.Rename(cmd.Context(), t.path, to))
		}, err
	})
}

func cpCmd() *cobra.Command {
	var from string
	cmd := new(writeFlags).writes(&cobra.Command{
		Use:   "cp TARGET PATH",
		Short: "Copy an array or a group",
		Long: `Copy a node to PATH in the same database, from the same version or, with --from,
from any other. Chunks are shared, so it costs the same for any size.`,
		Example: `  zarrdb cp weather.zdb:temp backup/temp
  zarrdb cp weather.zdb:temp temp_old --from main~5`,
		Args: argCount(2, 2),
	}, func(cmd *cobra.Command, t target, args []string) (string, change, error) {
		to, err := pathIn(cmd, t, args[1])
		return fmt.Sprintf("copy /%s to /%s", t.path, to), func(db *engine.DB, s *engine.Session) error {
			if from == "" {
				return otherFormat(t, to, s.CopyNode(cmd.Context(), nil, t.path, to))
			}
			return db.View(cmd.Context(), from, func(snap *engine.Snapshot) error {
				return otherFormat(t, to, s.CopyNode(cmd.Context(), snap, t.path, to))
			})
		}, err
	})
	cmd.Flags().StringVar(&from, "from", "", "copy from this `REV`")
	return cmd
}

func rmCmd() *cobra.Command {
	return new(writeFlags).writes(&cobra.Command{
		Use:   "rm TARGET",
		Short: "Delete an array, a group or a key",
		Long: `Delete a node or directory and everything below it, or a single key. Earlier
versions keep it; revert brings it back. "DB:" is the root, with all there is.`,
		Example: `  zarrdb rm weather.zdb:temp -m "drop temp"
  zarrdb rm weather.zdb:notes/readme.md`,
		Args: argCount(1, 1),
	}, func(cmd *cobra.Command, t target, args []string) (string, change, error) {
		if t.path == "" && !strings.HasSuffix(strings.TrimRight(args[0], "/"), ":") {
			return "", nil, usagef("rm: which node? %s:PATH names one; \"zarrdb rm %s:\" deletes all that is in this version", args[0], args[0])
		}
		return "delete /" + t.path, func(_ *engine.DB, s *engine.Session) error {
			err := s.Remove(cmd.Context(), t.path)
			if !errors.Is(err, zarr.ErrNotFound) {
				return err
			}
			found, kerr := kv.Exists(cmd.Context(), s, t.path)
			switch {
			case kerr != nil:
				return kerr
			case found:
				return s.Delete(cmd.Context(), t.path)
			}
			return err
		}, nil
	})
}
