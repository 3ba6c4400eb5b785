package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

func lsCmd() *cobra.Command {
	var src sourceFlags
	var long, asJSON bool
	cmd := &cobra.Command{
		Use:   "ls TARGET",
		Short: "List the members of a group",
		Example: `  zarrdb ls weather.zdb
  zarrdb ls -l weather.zdb@v1.0:surface`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, n, err := src.node(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			if _, ok := n.Array(); ok {
				return printMember(cmd, n, long, asJSON)
			}
			for child, err := range n.Children(cmd.Context()) {
				if err != nil {
					return err
				}
				if err := printMember(cmd, child, long, asJSON); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&long, "long", "l", false, "show data types, shapes and chunks")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line, as info --json prints")
	src.register(cmd)
	return cmd
}

func printMember(cmd *cobra.Command, n *zarr.Node, long, asJSON bool) error {
	if asJSON {
		info, err := nodeInfo(n)
		if err != nil {
			return err
		}
		return printJSONLine(cmd, info)
	}
	a, ok := n.Array()
	switch {
	case !ok:
		cmd.Println(n.Name() + "/")
	case long:
		cmd.Println(n.Name(), summary(a))
	default:
		cmd.Println(n.Name())
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
		Example: `  zarrdb tree weather.zdb@v1.0`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, root, err := src.node(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			return printTree(cmd, root, "")
		},
	}
	src.register(cmd)
	return cmd
}

func printTree(cmd *cobra.Command, n *zarr.Node, indent string) error {
	if a, ok := n.Array(); ok {
		cmd.Println(indent + n.Name() + " " + summary(a))
		return nil
	}
	cmd.Println(indent + n.Name() + "/")
	for child, err := range n.Children(cmd.Context()) {
		if err != nil {
			return err
		}
		if err := printTree(cmd, child, indent+"  "); err != nil {
			return err
		}
	}
	return nil
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
	row := func(name, value string) { cmd.Printf("%-16s %s\n", name, value) }
	row("path", "/"+i.Path)
	row("node type", i.NodeType)
	row("zarr format", fmt.Sprint(i.ZarrFormat))
	if i.NodeType == "array" {
		row("shape", fmt.Sprint(i.Shape))
		row("data type", string(i.DataType))
		row("chunk shape", string(i.ChunkShape))
		row("codecs", string(i.Codecs))
		row("fill value", string(i.FillValue))
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
		row("@"+k, string(v))
	}
	return nil
}

func createCmd() *cobra.Command {
	var wf writeFlags
	var shape, chunks, shards []int64
	var spec struct {
		dtype, codecs, fill, attrs string
		dims                       []string
		format                     int
		group, overwrite           bool
	}
	cmd := &cobra.Command{
		Use:   "create TARGET --shape N,… --dtype TYPE",
		Short: "Make an array or a group",
		Long: `Make an array (or, with --group, a group) as one commit. Groups above it are
made where they are missing. Chunks default to about 1 MiB, codecs to zstd.`,
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
			switch spec.format {
			case 2:
				zs.Version = zarr.V2
			case 3:
				zs.Version = zarr.V3
			default:
				return usagef("create: --format %d: 2 or 3 are possible", spec.format)
			}
			c, err := wf.update(cmd.Context(), t, "create "+t.path, func(_ *engine.DB, s *engine.Session) error {
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
			if err == nil {
				report(cmd, c)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.Int64SliceVar(&shape, "shape", nil, "length of each dimension")
	f.Int64SliceVar(&chunks, "chunks", nil, "chunk length of each dimension")
	f.Int64SliceVar(&shards, "shards", nil, "shard length of each dimension (v3)")
	f.StringVar(&spec.dtype, "dtype", "", "data type: a v3 name, JSON, or a numpy string such as <f4")
	f.StringVar(&spec.codecs, "codecs", "", "codecs as `JSON`: a v3 list, or a v2 compressor")
	f.StringVar(&spec.fill, "fill", "", "fill value as `JSON`")
	f.StringVar(&spec.attrs, "attrs", "", "attributes as a `JSON` object")
	f.StringSliceVar(&spec.dims, "dims", nil, "dimension names")
	f.IntVar(&spec.format, "format", 3, "Zarr format, 2 or 3")
	f.BoolVar(&spec.group, "group", false, "make a group")
	f.BoolVar(&spec.overwrite, "overwrite", false, "replace what is there")
	wf.register(cmd)
	return cmd
}

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
				src.session = wf.session
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
			c, err := wf.update(cmd.Context(), t, "change attributes of /"+t.path, func(_ *engine.DB, s *engine.Session) error {
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
			if err == nil {
				report(cmd, c)
			}
			return err
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "set an attribute: `NAME=JSON`")
	cmd.Flags().StringArrayVar(&del, "delete", nil, "delete the attribute `NAME`")
	wf.register(cmd)
	return cmd
}

func resizeCmd() *cobra.Command {
	var wf writeFlags
	var shape []int64
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
			c, err := wf.update(cmd.Context(), t, fmt.Sprintf("resize /%s to %v", t.path, shape), func(_ *engine.DB, s *engine.Session) error {
				a, err := s.Array(cmd.Context(), t.path)
				if err != nil {
					return err
				}
				return a.Resize(cmd.Context(), shape, zarr.ResizeOptions{KeepChunks: keep})
			})
			if err == nil {
				report(cmd, c)
			}
			return err
		},
	}
	cmd.Flags().Int64SliceVar(&shape, "shape", nil, "new length of each dimension")
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
			c, err := wf.update(cmd.Context(), t, fmt.Sprintf("rename /%s to /%s", t.path, to), func(_ *engine.DB, s *engine.Session) error {
				return s.Rename(cmd.Context(), t.path, to)
			})
			if err == nil {
				report(cmd, c)
			}
			return err
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
			c, err := wf.update(cmd.Context(), t, fmt.Sprintf("copy /%s to /%s", t.path, to), func(db *engine.DB, s *engine.Session) error {
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
			if err == nil {
				report(cmd, c)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "copy from this `REV`")
	wf.register(cmd)
	return cmd
}

func rmCmd() *cobra.Command {
	var wf writeFlags
	cmd := &cobra.Command{
		Use:     "rm TARGET",
		Short:   "Delete an array or a group",
		Long:    "Delete a node and everything below it. Earlier versions keep it; revert brings it back.",
		Example: `  zarrdb rm weather.zdb:temp -m "drop temp"`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			c, err := wf.update(cmd.Context(), t, "delete /"+t.path, func(_ *engine.DB, s *engine.Session) error {
				return s.Remove(cmd.Context(), t.path)
			})
			if err == nil {
				report(cmd, c)
			}
			return err
		},
	}
	wf.register(cmd)
	return cmd
}
