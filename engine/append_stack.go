package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Pieces without the dimension are stacked along it: every array but coordinates gets it as
// its first one, with a length of 1 in each piece, and a coordinate has the labels.
//
//	piece        temp [y x], key temp/c/0/1          label 2001-02
//	as a piece   temp [time y x], temp/c/0/0/1       time [1]
//
// The bytes of chunks do not change.

// labels are the labels of all pieces, as elements of one type.
type labels struct {
	t     dtype.Type
	units string   // of times
	elems [][]byte // one for each piece
}

// units of labels that are dates, and dates with times.
const dayUnits, secondUnits = "days since 1970-01-01", "seconds since 1970-01-01"

// dated matches labels that begin with a year and a month.
var dated = regexp.MustCompile(`^\d{4}-\d{2}`)

// newLabels finds the type that all labels have: whole numbers, numbers, dates or texts.
func newLabels(texts []string) (*labels, error) {
	width := 1
	for _, text := range texts {
		width = max(width, utf8.RuneCountInString(text))
	}
	utf32, err := dtype.NewFixedUTF32(width)
	if err != nil {
		return nil, err
	}
	for _, l := range []labels{{t: dtype.NewInt(64)}, {t: dtype.NewFloat(64)}, {t: dtype.NewInt(64), units: dayUnits}, {t: dtype.NewInt(64), units: secondUnits}, {t: utf32}} {
		for _, text := range texts {
			var elem []byte
			if elem, err = l.element(text); err != nil {
				break
			}
			l.elems = append(l.elems, elem)
		}
		if err == nil {
			return &l, nil
		}
	}
	return nil, err // not for texts
}

// element is a label as an element of the type, or an error.
func (l *labels) element(text string) ([]byte, error) {
	var bits uint64
	var err error
	whole, notWhole := strconv.ParseInt(text, 10, 64)
	switch {
	case l.units != "":
		if !dated.MatchString(text) {
			return nil, errors.ErrUnsupported // such as 12Z or 1-2
		}
		var n int64
		n, err = cf.CountOf(l.units, "proleptic_gregorian", text)
		bits = uint64(n)
	case l.t.Kind() == dtype.Int:
		bits, err = uint64(whole), notWhole
	case l.t.Kind() == dtype.Float:
		if whole > 1<<53 || whole < -1<<53 {
			return nil, errors.ErrUnsupported // a float may not have all digits
		}
		var f float64
		f, err = strconv.ParseFloat(text, 64)
		bits = math.Float64bits(f)
	default:
		raw, _ := json.Marshal(text)
		return l.t.ParseJSON(nil, raw)
	}
	return binary.LittleEndian.AppendUint64(nil, bits), err
}

// labelChunk is the chunk length, in elements, of the coordinate that holds the labels.
const labelChunk = 1024

// meta returns the metadata of the coordinate in one piece.
func (l *labels) meta(dim string, v zarr.Version, r *codecs.Registry) (*zarr.Meta, error) {
	spec := zarr.Spec{Version: v, Shape: []int64{1}, Chunks: []int64{labelChunk}, Type: l.t, DimensionNames: []string{dim},
		Codecs: json.RawMessage(`[{"name":"bytes","configuration":{"endian":"little"}}]`)}
	if v == zarr.V2 {
		spec.FillValue, spec.Codecs = json.RawMessage("null"), json.RawMessage("null")
	}
	if l.units != "" {
		var err error
		if spec.Attributes, err = zarr.ParseAttributes(fmt.Appendf(nil, `{"calendar":"proleptic_gregorian","units":%q}`, l.units)); err != nil {
			return nil, err
		}
	}
	a, err := zarr.Create(context.Background(), kv.NewMem(), "", spec, &zarr.OpenOptions{Registry: r})
	if err != nil {
		return nil, err
	}
	return a.Meta(), nil
}

// stack gives the arrays of a piece the new dimension, and adds the coordinate with its
// label.
func (l *labels) stack(dim string, found []*appendArray, label []byte, r *codecs.Registry) ([]*appendArray, error) {
	stays := map[string]bool{}
	for _, n := range found {
		if !n.meta.Array {
			continue
		}
		for _, d := range n.dims {
			if d == dim {
				return nil, fmt.Errorf("%w: /%s has the dimension %q already", ErrMisfit, n.path, dim)
			}
			if d == path.Base(n.path) && len(n.meta.Shape) == 1 {
				stays[n.path] = true // a coordinate
			}
		}
		for _, attr := range []string{"bounds", "climatology", "coordinates", "grid_mapping"} {
			text, _ := textAttribute(n.meta, attr)
			for name := range strings.FieldsSeq(text) {
				stays[names.Join(names.Parent(n.path), name)] = true
			}
		}
	}
	labelled, taken, version := map[string]bool{}, map[string]bool{}, zarr.V3
	for _, n := range found {
		taken[n.path] = true
		if !n.meta.Array || stays[n.path] {
			continue
		}
		m, err := stacked(n.meta, dim, r)
		if err != nil {
			return nil, fmt.Errorf("/%s: %w", n.path, err)
		}
		n.meta, n.own, version = m, n.meta, m.Version
		n.dims = append([]string{dim}, n.dims...)
		labelled[names.Parent(n.path)] = true
	}
	for group := range labelled {
		at := names.Join(group, dim)
		if taken[at] {
			return nil, fmt.Errorf("%w: there is a node /%s already; the new dimension needs another name", ErrMisfit, at)
		}
		m, err := l.meta(dim, version, r)
		if err != nil {
			return nil, err
		}
		found = append(found, &appendArray{path: at, meta: m, dims: []string{dim}, label: label})
	}
	return found, nil
}

// stacked returns the metadata of an array with a new first dimension of length 1.
func stacked(m *zarr.Meta, dim string, r *codecs.Registry) (*zarr.Meta, error) {
	chunks := m.Grid.Regular()
	if chunks == nil || len(m.DimensionNames) != len(m.Shape) || slices.Contains(m.DimensionNames, nil) {
		return nil, fmt.Errorf("%w: a new dimension needs names of all dimensions and a regular chunk grid", ErrMisfit)
	}
	c := m.Clone()
	var err error
	if c.Codecs, err = m.Codecs.Stacked(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMisfit, err)
	}
	c.Shape = append([]int64{1}, m.Shape...)
	c.Grid = meta.RegularGrid(append([]int{1}, chunks...))
	c.Keys = m.Keys.WithRank(len(c.Shape))
	c.DimensionNames = append([]*string{&dim}, m.DimensionNames...)
	return c, c.Validate()
}
