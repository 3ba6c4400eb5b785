package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

func createCmd() *cobra.Command {
	var shape, chunks, shards lengths
	var spec struct {
		dtype, codecs, fill, attrs string
		format                     string
		dims                       []string
		group, overwrite           bool
	}
	cmd := new(writeFlags).writes(&cobra.Command{
		Use:   "create TARGET --shape N,… --dtype TYPE",
		Short: "Make an array or a group",
		Long: `Make an array (or, with --group, a group) as one commit. Groups above it are
made where they are missing. Chunks default to about 1 MiB, codecs to zstd.

Arrays of format 1 lie in plain directories, without groups.`,
		Example: `  zarrdb create weather.zdb:temp --shape 365,721,1440 --chunks 1,721,1440 --dtype float32 --dims time,lat,lon
  zarrdb create weather.zdb:surface --group
  zarrdb create old.zdb:t2 --shape 10,10 --dtype '<i4' --format 2`,
		Args: argCount(1, 1),
	}, func(cmd *cobra.Command, t target, _ []string) (string, change, error) {
		if !spec.group && (!cmd.Flags().Changed("shape") || spec.dtype == "") {
			return "", nil, usagef("create: --shape and --dtype are needed, or --group")
		}
		attrs, err := parseAttrs(spec.attrs)
		if err != nil {
			return "", nil, err
		}
		version, ok := createFormats[spec.format]
		if !ok {
			return "", nil, usagef("create: --format %s: 1, 2 or 3 is possible", spec.format)
		}
		return "create " + cmp.Or(t.path, "/"), func(_ *engine.DB, s *engine.Session) (err error) {
			makeGroup, makeArray := s.CreateGroup, s.CreateArray
			if spec.overwrite {
				makeGroup, makeArray = s.ReplaceGroup, s.ReplaceArray
			}
			if spec.group {
				_, err = makeGroup(cmd.Context(), t.path, version, attrs)
				return err
			}
			_, err = makeArray(cmd.Context(), t.path, zarr.Spec{
				Version: version, Shape: shape, Chunks: chunks, Shards: shards,
				DimensionNames: spec.dims, Attributes: attrs, DataType: spec.dtype,
				Codecs: raw(spec.codecs), FillValue: raw(spec.fill),
			})
			return err
		}, nil
	})
	f := cmd.Flags()
	f.Var(&shape, "shape", "length of each dimension, `N,...`; '' for an array without dimensions")
	f.Var(&chunks, "chunks", "chunk length of each dimension, `N,...`")
	f.Var(&shards, "shards", "shard length of each dimension, `N,...` (v3)")
	f.StringVar(&spec.dtype, "dtype", "", "data type: a v3 name, JSON, or a numpy string such as <f4")
	f.StringVar(&spec.codecs, "codecs", "", "codecs as `JSON`: a v3 list, or for other formats a compressor as in v2")
	f.StringVar(&spec.fill, "fill", "", "fill value as `JSON`")
	f.StringVar(&spec.attrs, "attrs", "", "attributes as a `JSON` object")
	f.StringSliceVar(&spec.dims, "dims", nil, "dimension names")
	f.StringVar(&spec.format, "format", "", "Zarr `VERSION`: 1, 2 or 3 (default that of the group above, else 3)")
	f.BoolVar(&spec.group, "group", false, "make a group")
	f.BoolVar(&spec.overwrite, "overwrite", false, "replace an existing node")
	return cmd
}

// createFormats are the values of create --format.
var createFormats = map[string]zarr.Version{"": 0, "1": zarr.V1, "2": zarr.V2, "3": zarr.V3}

// lengths is a flag that holds a number per dimension.
type lengths []int64

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

func (l *lengths) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int64(*l)), " ", ","), "[]")
}

func (l *lengths) Type() string { return "N,…" }

// raw returns a flag's value as JSON, nil if it is empty.
func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}
