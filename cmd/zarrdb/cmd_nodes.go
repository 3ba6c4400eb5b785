package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

func lsCmd() *cobra.Command {
	var src sourceFlags
	var long, asJSON bool
	cmd := &cobra.Command{
		Use:   "ls TARGET",
		Short: "List the members of a group",
		Long: `List what lies right below a group: arrays by their names, groups (and plain
directories, in which there is something else) with a slash behind.`,
		Example: `  zarrdb ls weather.zdb
  zarrdb ls -l weather.zdb@v1.0:surface`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := src.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			show := func(name string, n *zarr.Node) error { return printMember(cmd, name, n, long, asJSON) }
			n, err := s.Node(cmd.Context())
			if err == nil {
				if _, ok := n.Array(); ok {
					return show(n.Name(), n)
				}
			} else if !errors.Is(err, zarr.ErrNotFound) {
				return err
			}
			return eachMember(cmd.Context(), s, "", func(m engine.Member) error { return show(m.Name, m.Node) })
		},
	}
	cmd.Flags().BoolVarP(&long, "long", "l", false, "show data types, shapes and chunks")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line, as info --json prints")
	src.register(cmd)
	return cmd
}

// eachMember calls fn for everything right below a path. A node that cannot be
// opened does not keep the others from being shown; its error comes last.
func eachMember(ctx context.Context, s *engine.Source, path string, fn func(engine.Member) error) error {
	var failed error
	for m, err := range s.Members(ctx, path) {
		if err == nil {
			err = fn(m)
		}
		if failed == nil {
			failed = err
		}
	}
	return failed
}

// printMember prints a node, or a directory that is none.
func printMember(cmd *cobra.Command, name string, n *zarr.Node, long, asJSON bool) error {
	if asJSON {
		if n == nil {
			return nil
		}
		info, err := nodeInfo(n)
		if err != nil {
			return err
		}
		return printJSONLine(cmd, info)
	}
	a, isArray := (*zarr.Array)(nil), false
	if n != nil {
		a, isArray = n.Array()
	}
	switch {
	case !isArray:
		cmd.Println(name + "/")
	case long:
		cmd.Println(name, summary(a))
	default:
		cmd.Println(name)
	}
	return nil
}

// summary describes an array in a few words.
func summary(a *zarr.Array) string {
	s := fmt.Sprintf("%v %v", a.Type(), a.Shape())
	if c := a.Meta().Grid.Regular(); c != nil {
		s += fmt.Sprintf(" in chunks of %v", c)
	}
	return s
}

func treeCmd() *cobra.Command {
	var src sourceFlags
	cmd := &cobra.Command{
		Use:     "tree TARGET",
		Short:   "Show everything below a group",
		Long:    "Show a group and everything below it, arrays with data type, shape and chunks.",
		Example: `  zarrdb tree weather.zdb@v1.0`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := src.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			n, err := s.Node(cmd.Context())
			switch {
			case err == nil:
				if a, ok := n.Array(); ok {
					cmd.Println(n.Name(), summary(a))
					return nil
				}
				cmd.Println(n.Name() + "/")
			case errors.Is(err, zarr.ErrNotFound): // a directory, or nothing
				cmd.Println("/")
			default:
				return err
			}
			return printTree(cmd, s, "", "  ")
		},
	}
	src.register(cmd)
	return cmd
}

func printTree(cmd *cobra.Command, s *engine.Source, path, indent string) error {
	return eachMember(cmd.Context(), s, path, func(m engine.Member) error {
		if m.Node != nil {
			if a, ok := m.Node.Array(); ok {
				cmd.Println(indent + m.Name + " " + summary(a))
				return nil
			}
		}
		cmd.Println(indent + m.Name + "/")
		return printTree(cmd, s, path+"/"+m.Name, indent+"  ")
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
			s, n, err := src.node(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			info, err := nodeInfo(n)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd, info)
			}
			return printInfo(cmd, info)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	src.register(cmd)
	return cmd
}

func printInfo(cmd *cobra.Command, i info) error {
	width := 16
	for _, k := range i.Attributes.Keys() {
		width = min(max(width, len(k)+1), 32)
	}
	row := func(name, value string) { cmd.Printf("%-*s %s\n", width, name, value) }
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
	for _, k := range i.Attributes.Keys() {
		v, _ := i.Attributes.Get(k)
		row("@"+k, flatJSON(v))
	}
	return nil
}

func createCmd() *cobra.Command {
	var wf writeFlags
	var shape, chunks, shards lengths
	var spec struct {
		dtype, codecs, fill, attrs string
		format                     string
		dims                       []string
		group, overwrite           bool
	}
	cmd := &cobra.Command{
		Use:   "create TARGET --shape N,… --dtype TYPE",
		Short: "Make an array or a group",
		Long: `Make an array (or, with --group, a group) as one commit. Groups above it are
made where they are missing. Chunks default to about 1 MiB, codecs to zstd.

Arrays of format 1 lie in plain directories, without groups. 3-draft is the
early draft of format 3 as its text has it, with keys below meta/ and data/ at
the root; 3-draft-root is its later layout with an entry document.`,
		Example: `  zarrdb create weather.zdb:temp --shape 365,721,1440 --chunks 1,721,1440 --dtype float32 --dims time,lat,lon
  zarrdb create weather.zdb:t2 --shape 10,10 --dtype '<i4' --format 2
  zarrdb create weather.zdb:surface --group`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			if !spec.group && (!cmd.Flags().Changed("shape") || spec.dtype == "") {
				return usagef("create: --shape and --dtype are needed, or --group")
			}
			attrs, err := parseAttrs(spec.attrs)
			if err != nil {
				return err
			}
			zs := zarr.Spec{
				Shape: shape, Chunks: chunks, Shards: shards,
				DimensionNames: spec.dims, Attributes: attrs, DataType: spec.dtype,
				Codecs: raw(spec.codecs), FillValue: raw(spec.fill),
			}
			format, ok := createFormats[spec.format]
			if !ok {
				return usagef("create: --format %s: 1, 2, 3, 3-draft or 3-draft-root are possible", spec.format)
			}
			zs.Version = format.version
			return wf.update(cmd, t, "create "+t.path, func(_ *engine.DB, s *engine.Session) error {
				if format.entry {
					if err := zarr.InitDraft3(cmd.Context(), s); err != nil {
						return err
					}
				}
				makeGroup, makeArray := s.CreateGroup, s.CreateArray
				if spec.overwrite {
					makeGroup, makeArray = s.ReplaceGroup, s.ReplaceArray
				}
				if spec.group {
					_, err := makeGroup(cmd.Context(), t.path, zs.Version, attrs)
					return err
				}
				_, err := makeArray(cmd.Context(), t.path, zs)
				return err
			})
		},
	}
	f := cmd.Flags()
	f.Var(&shape, "shape", "length of each dimension, `N,…`; '' for an array without dimensions")
	f.Var(&chunks, "chunks", "chunk length of each dimension, `N,…`")
	f.Var(&shards, "shards", "shard length of each dimension, `N,…` (v3)")
	f.StringVar(&spec.dtype, "dtype", "", "data type: a v3 name, JSON, or a numpy string such as <f4")
	f.StringVar(&spec.codecs, "codecs", "", "codecs as `JSON`: a v3 list, or for other formats a compressor as in v2")
	f.StringVar(&spec.fill, "fill", "", "fill value as `JSON`")
	f.StringVar(&spec.attrs, "attrs", "", "attributes as a `JSON` object")
	f.StringSliceVar(&spec.dims, "dims", nil, "dimension names")
	f.StringVar(&spec.format, "format", "", "Zarr `VERSION`: 1, 2, 3, 3-draft or 3-draft-root (default that of the group above, else 3)")
	f.BoolVar(&spec.group, "group", false, "make a group")
	f.BoolVar(&spec.overwrite, "overwrite", false, "replace what is there")
	wf.register(cmd)
	return cmd
}

// createFormats are the values of create --format. Both layouts of the early
// draft are one format; entry says that the store gets an entry document.
var createFormats = map[string]struct {
	version zarr.Version
	entry   bool
}{
	"":             {},
	"1":            {version: zarr.V1},
	"2":            {version: zarr.V2},
	"3":            {version: zarr.V3},
	"3-draft":      {version: zarr.Draft3},
	"3-draft-root": {version: zarr.Draft3, entry: true},
}

// lengths is a flag that holds a number per dimension.
type lengths []int64

// Set implements pflag.Value.
func (l *lengths) Set(s string) error {
	*l = lengths{}
	for _, n := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		v, err := strconv.ParseInt(n, 10, 64)
		if err != nil || v < 0 {
			return fmt.Errorf("%q is not a length", n)
		}
		*l = append(*l, v)
	}
	return nil
}

// String implements pflag.Value.
func (l *lengths) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int64(*l)), " ", ","), "[]")
}

// Type implements pflag.Value.
func (l *lengths) Type() string { return "N,…" }

// raw is a flag's value as JSON; empty is none.
func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

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

func attrsCmd() *cobra.Command {
	var src sourceFlags
	var wf writeFlags
	var set, del []string
	cmd := &cobra.Command{
		Use:   "attrs TARGET [--set NAME=JSON] [--delete NAME]",
		Short: "Show or change attributes",
		Example: `  zarrdb attrs weather.zdb:temp
  zarrdb attrs weather.zdb:temp --set units='"K"' --delete history -m "fix units"`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(set) == 0 && len(del) == 0 {
				src.session, src.followFlags = wf.session, wf.followFlags
				s, n, err := src.node(cmd.Context(), args[0])
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
					return err
				}
				attrs := n.Meta().Clone().Attributes
				for _, kv := range set {
					k, v, ok := strings.Cut(kv, "=")
					if !ok || !json.Valid([]byte(v)) {
						return usagef("--set %q: NAME=JSON is needed, strings in double quotes", kv)
					}
					if err := attrs.Set(k, json.RawMessage(v)); err != nil {
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
	cmd.Flags().StringArrayVar(&set, "set", nil, "set an attribute: `NAME=JSON`")
	cmd.Flags().StringArrayVar(&del, "delete", nil, "delete the attribute `NAME`")
	wf.register(cmd)
	return cmd
}

func resizeCmd() *cobra.Command {
	var wf writeFlags
	var shape lengths
	var keep bool
	cmd := &cobra.Command{
		Use:   "resize TARGET --shape N,…",
		Short: "Change the shape of an array",
		Long: `Change the shape of an array. Growing adds elements that hold the fill value.
Shrinking deletes what lies outside, unless --keep-chunks leaves the chunks
where they are, to appear again when the array grows.`,
		Example: `  zarrdb resize weather.zdb:temp --shape 730,721,1440`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("shape") {
				return usagef("resize: --shape is needed")
			}
			return wf.update(cmd, t, fmt.Sprintf("resize /%s to %v", t.path, []int64(shape)), func(_ *engine.DB, s *engine.Session) error {
				a, err := s.Array(cmd.Context(), t.path)
				if err != nil {
					return err
				}
				return a.Resize(cmd.Context(), shape, zarr.ResizeOptions{KeepChunks: keep})
			})
		},
	}
	cmd.Flags().Var(&shape, "shape", "new length of each dimension, `N,…`")
	cmd.Flags().BoolVar(&keep, "keep-chunks", false, "do not delete chunks outside the new shape")
	wf.register(cmd)
	return cmd
}

func mvCmd() *cobra.Command {
	var wf writeFlags
	cmd := &cobra.Command{
		Use:     "mv TARGET PATH",
		Short:   "Rename an array or a group",
		Long:    "Rename a node to PATH in the same database. Chunks are not touched, so it costs the same for any size.",
		Example: `  zarrdb mv weather.zdb:temp surface/t2m`,
		Args:    argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			to := strings.Trim(args[1], "/")
			return wf.update(cmd, t, fmt.Sprintf("rename /%s to /%s", t.path, to), func(_ *engine.DB, s *engine.Session) error {
				return s.Rename(cmd.Context(), t.path, to)
			})
		},
	}
	wf.register(cmd)
	return cmd
}

func cpCmd() *cobra.Command {
	var wf writeFlags
	var from string
	cmd := &cobra.Command{
		Use:   "cp TARGET PATH",
		Short: "Copy an array or a group",
		Long: `Copy a node to PATH in the same database, from the same version or, with --from,
from any other. Chunks are shared, so it costs the same for any size.`,
		Example: `  zarrdb cp weather.zdb:temp backup/temp
  zarrdb cp weather.zdb:temp temp_old --from main~5`,
		Args: argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			to := strings.Trim(args[1], "/")
			return wf.update(cmd, t, fmt.Sprintf("copy /%s to /%s", t.path, to), func(db *engine.DB, s *engine.Session) error {
				if from == "" {
					return s.CopyNode(cmd.Context(), nil, t.path, to)
				}
				snap, err := db.At(cmd.Context(), from)
				if err != nil {
					return err
				}
				defer snap.Close()
				return s.CopyNode(cmd.Context(), snap, t.path, to)
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "copy from this `REV`")
	wf.register(cmd)
	return cmd
}

func rmCmd() *cobra.Command {
	var wf writeFlags
	cmd := &cobra.Command{
		Use:   "rm TARGET",
		Short: "Delete an array, a group or a key",
		Long: `Delete a node or directory and everything below it, or a single key. Earlier
versions keep it; revert brings it back.`,
		Example: `  zarrdb rm weather.zdb:temp -m "drop temp"
  zarrdb rm weather.zdb:notes/readme.md`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			return wf.update(cmd, t, "delete /"+t.path, func(_ *engine.DB, s *engine.Session) error {
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
			})
		},
	}
	wf.register(cmd)
	return cmd
}
