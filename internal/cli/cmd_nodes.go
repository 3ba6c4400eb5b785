package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

func lsCmd() *cobra.Command {
	var long, asJSON bool
	cmd := new(sourceFlags).reads(&cobra.Command{
		Use:   "ls TARGET",
		Short: "List the members of a group",
		Long: `List what lies right below a group: arrays by their names, groups (and plain
directories, in which there is something else) with a slash behind. An array that
cannot be read is listed with the reason.`,
		Example: `  zarrdb ls weather.zdb
  zarrdb ls -l weather.zdb@v1.0:surface`,
		Args: argCount(1, 1),
	}, func(cmd *cobra.Command, s *engine.Source, _ []string) error {
		show := func(m engine.Member, unread error) error {
			if unread != nil {
				return printUnreadable(cmd, m.Name, unread, asJSON)
			}
			return printMember(cmd, m.Name, m.Node, long, asJSON)
		}
		n, err := s.Node(cmd.Context())
		switch {
		case err == nil && isArray(n):
			return show(engine.Member{Name: n.Name(), Node: n}, nil)
		case err != nil && !errors.Is(err, zarr.ErrNotFound):
			return err
		}
		return eachMember(cmd.Context(), s, "", show)
	})
	cmd.Flags().BoolVarP(&long, "long", "l", false, "show data types, shapes and chunks")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line, as info --json prints")
	return cmd
}

// eachMember calls fn for every direct child of a path; unread is the error of an
// array that cannot be opened, see [zarr.Unreadable]. A node that cannot be opened for another
// reason is skipped, and its error is returned at the end.
func eachMember(ctx context.Context, s *engine.Source, path string, fn func(m engine.Member, unread error) error) error {
	var failed error
	for m, err := range s.Members(ctx, path) {
		switch {
		case err == nil:
			err = fn(m, nil)
		case isUnreadable(err):
			err = fn(m, err)
		}
		if failed == nil {
			failed = err
		}
	}
	return failed
}

func isUnreadable(err error) bool {
	_, _, ok := zarr.Unreadable(err)
	return ok
}

// undecoded returns a way on from an error about values that nothing here decodes, in
// brackets, and "" of another one.
func undecoded(err error) string {
	if errors.Is(err, engine.ErrUnknownCodec) && strings.Contains(err.Error(), `unknown codec "grib"`) {
		return " (values are GRIB messages, which nothing here decodes; xarray decodes the GRIB files with cfgrib, and to_zarr writes a store that can be imported)"
	}
	return ""
}

// reason returns the text after operation and path in an error about a node.
func reason(err error) string {
	var at *zarr.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return oneLine(err)
}

// printUnreadable prints an array that cannot be opened.
func printUnreadable(cmd *cobra.Command, name string, err error, asJSON bool) error {
	if !asJSON {
		say(cmd, "%s (%s)", name, reason(err))
		return nil
	}
	path, m, _ := zarr.Unreadable(err)
	return printJSONLine(cmd, struct {
		NodeType   string  `json:"node_type"`
		ZarrFormat int     `json:"zarr_format"`
		Path       string  `json:"path"`
		Shape      []int64 `json:"shape"`
		Error      string  `json:"error"`
	}{"array", formatNumber(m.Version), path, m.Shape, reason(err)})
}

// printMember prints a node, or a directory without a node.
func printMember(cmd *cobra.Command, name string, n *zarr.Node, long, asJSON bool) error {
	switch {
	case asJSON && n == nil:
	case asJSON:
		info, err := nodeInfo(n)
		if err != nil {
			return err
		}
		return printJSONLine(cmd, info)
	case !isArray(n):
		say(cmd, "%s/", name)
	case long:
		a, _ := n.Array()
		say(cmd, "%s %s", name, summary(a))
	default:
		say(cmd, "%s", name)
	}
	return nil
}

// isArray is false for a directory without a node, too.
func isArray(n *zarr.Node) bool { return n != nil && n.Meta().Array }

// summary describes an array in a few words.
func summary(a *zarr.Array) string {
	s := fmt.Sprintf("%v %v", a.Type(), a.Shape())
	if c := a.Meta().Grid.Regular(); c != nil {
		s += fmt.Sprintf(" in chunks of %v", c)
	}
	return s
}

func treeCmd() *cobra.Command {
	var asJSON bool
	cmd := new(sourceFlags).reads(&cobra.Command{
		Use:     "tree TARGET",
		Short:   "Show everything below a group",
		Long:    "Show a group and everything below it, arrays with data type, shape and chunks. With --json, each line is a node as info --json prints it.",
		Example: `  zarrdb tree weather.zdb@v1.0`,
		Args:    argCount(1, 1),
	}, func(cmd *cobra.Command, s *engine.Source, _ []string) error {
		name := ""
		n, err := s.Node(cmd.Context())
		switch {
		case err == nil:
			name = n.Name()
		case !errors.Is(err, zarr.ErrNotFound): // which is a directory, or missing
			return err
		}
		if err := printMember(cmd, name, n, true, asJSON); err != nil || isArray(n) {
			return err
		}
		return printTree(cmd, s, "", "  ", asJSON)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

func printTree(cmd *cobra.Command, s *engine.Source, path, indent string, asJSON bool) error {
	return eachMember(cmd.Context(), s, path, func(m engine.Member, unread error) error {
		if unread != nil {
			return printUnreadable(cmd, indent+m.Name, unread, asJSON)
		}
		if err := printMember(cmd, indent+m.Name, m.Node, true, asJSON); err != nil || isArray(m.Node) {
			return err
		}
		err := printTree(cmd, s, path+"/"+m.Name, indent+"  ", asJSON)
		if m.Node == nil && errors.Is(err, zarr.ErrNotFound) {
			return nil // a directory on disk may be empty
		}
		return err
	})
}

func infoCmd() *cobra.Command {
	var src sourceFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info TARGET",
		Short: "Describe an array or a group",
		Example: `  zarrdb info weather.zdb:temp
  zarrdb info ./era5.zarr --json`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var info info
			var unread error // of an array whose values cannot be decoded
			s, n, err := src.node(cmd, args[0])
			if path, m, ok := zarr.Unreadable(err); ok && errors.Is(err, engine.ErrUnknownCodec) {
				unread = err
				if info, err = metaInfo(path, m); err != nil {
					return unread
				}
				info.Error = reason(unread) + undecoded(unread)
			} else if err != nil {
				return err
			} else {
				defer s.Close()
				if info, err = nodeInfo(n); err != nil {
					return err
				}
			}
			if asJSON {
				err = printJSON(cmd, info)
			} else {
				err = printInfo(cmd, info)
			}
			return cmp.Or(err, unread)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	src.register(cmd)
	return cmd
}

func printInfo(cmd *cobra.Command, i info) error {
	width := 16
	for _, k := range i.Attributes.Keys() {
		width = min(max(width, utf8.RuneCountInString(escape(k, ""))+1), 32)
	}
	row := func(name, value string) { say(cmd, "%-*s %s", width, name, value) }
	row("path", "/"+i.Path)
	row("node type", i.NodeType)
	row("zarr format", fmt.Sprint(i.ZarrFormat))
	if i.NodeType == "array" {
		row("shape", fmt.Sprint(i.Shape))
		row("data type", flatJSON(i.DataType))
		row("chunk shape", flatJSON(i.ChunkShape))
		row("codecs", flatJSON(i.Codecs))
		row("fill value", flatJSON(i.FillValue))
	}
	if i.Error != "" {
		row("not readable", i.Error)
	}
	if len(i.DimensionNames) > 0 {
		var names []string
		for _, n := range i.DimensionNames {
			if n == nil {
				names = append(names, "-")
			} else {
				names = append(names, *n)
			}
		}
		row("dimensions", strings.Join(names, ", "))
	}
	for k, v := range i.Attributes.All() {
		row("@"+k, flatJSON(v))
	}
	return nil
}
