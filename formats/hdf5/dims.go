package hdf5

import (
	"context"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
)

// scale is a dataset that is a dimension of NetCDF-4: others name it in DIMENSION_LIST,
// and its name and length are those of their dimension.
//
//	a: DIMENSION_LIST [[→ time], [→ x]]        a[time, x]
//	time: CLASS "DIMENSION_SCALE"
//	x: NAME "This is a netCDF dimension but not a netCDF variable.    4": no array
type scale struct {
	name   string
	grows  bool  // it is unlimited
	length int64 // of the dimension: that of the longest dataset along it if it grows
	id     int64 // of the dimension in netCDF, or -1
}

const (
	notVariable = "This is a netCDF dimension but not a netCDF variable"
	// nonCoordinate begins the name of a variable that has the name of a dimension.
	nonCoordinate = "_nc4_non_coord_"
)

// find returns the attribute of a list with a name, or nil if the list has none or the attribute cannot be read.
func find(list []*attribute, name string) *attribute {
	for _, a := range list {
		if a.name == name && a.err == nil {
			return a
		}
	}
	return nil
}

// textOf returns the text of an attribute of one text, "" without one.
func (v *values) textOf(list []*attribute, name string) string {
	if a := find(list, name); a != nil && (a.typ.class == classText || a.typ.isText()) {
		if x, err := v.json(a); err == nil {
			s, _ := x.(string)
			return s
		}
	}
	return ""
}

// integers returns an attribute of integers, nil without one.
func integers(list []*attribute, name string) (out []int64) {
	a := find(list, name)
	if a == nil || a.typ.class != classInt || a.typ.size > 8 {
		return nil
	}
	e, err := a.typ.element()
	if err != nil {
		return nil
	}
	for b := e.memory(a.data); len(b) > 0; b = b[a.typ.size:] {
		out = append(out, int64(number(b[:a.typ.size])))
	}
	return out
}

// scaleOf finds out whether a dataset is a dimension scale.
func (ds *dataset) scaleOf(v *values, name string) {
	if v.textOf(ds.attrs, "CLASS") != "DIMENSION_SCALE" {
		return
	}
	ds.hidden = strings.HasPrefix(v.textOf(ds.attrs, "NAME"), notVariable)
	ds.scale = &scale{name: name, id: -1}
	if len(ds.space.dims) > 0 {
		ds.scale.grows, ds.scale.length = ds.space.max[0] == unlimited, ds.space.dims[0]
	}
	if ids := integers(ds.attrs, "_Netcdf4Dimid"); len(ids) == 1 {
		ds.scale.id = ids[0]
	}
}

// scales reads the dimension scales of a dataset: nil where a dimension has none.
func (ds *dataset) scales(ctx context.Context, byAddr map[int64]*dataset, byID map[int64]*dataset) ([]*scale, error) {
	out := make([]*scale, len(ds.space.dims))
	a := find(ds.attrs, "DIMENSION_LIST")
	switch {
	case a == nil && ds.scale != nil && len(out) == 1:
		out[0] = ds.scale
		return out, nil
	case a == nil:
		ids := integers(ds.attrs, "_Netcdf4Coordinates")
		for i := range out {
			if len(ids) == len(out) && byID[ids[i]] != nil {
				out[i] = byID[ids[i]].scale
			} else if i == 0 && ds.scale != nil {
				out[i] = ds.scale
			}
		}
		return out, nil
	case a.typ.class != classVariable || a.typ.base.class != classReference || a.typ.base.size != ds.f.addrSize:
		return out, nil
	}
	for i := range out {
		if (i+1)*a.typ.size > len(a.data) {
			return out, nil
		}
		p, err := ds.f.pointer(a.data[i*a.typ.size:])
		if err != nil || p.n == 0 {
			continue
		}
		list, err := ds.f.globalObject(ctx, p.addr, p.index)
		if err != nil {
			return nil, err
		}
		size := ds.f.addrSize
		if int64(p.n)*int64(size) > int64(len(list)) {
			return nil, formats.Invalid("hdf5: %d dimension scales in %d bytes", p.n, len(list))
		}
		last := list[(int(p.n)-1)*size:][:size]
		if of := byAddr[int64(number(last))]; of != nil {
			out[i] = of.scale
		}
	}
	return out, nil
}

// dimensions names the dimensions of all datasets, and gives each the length of its
// dimension.
func (s *scan) dimensions(ctx context.Context, sets []*dataset) error {
	byAddr, byID := map[int64]*dataset{}, map[int64]*dataset{}
	heaps := map[int64]bool{}
	for _, ds := range sets {
		byAddr[ds.o.addr] = ds
		if ds.scale != nil && ds.scale.id >= 0 {
			byID[ds.scale.id] = ds
		}
		if a := find(ds.attrs, "DIMENSION_LIST"); a != nil && a.typ.class == classVariable {
			for b := a.data; len(b) >= a.typ.size; b = b[a.typ.size:] {
				if p, err := s.f.pointer(b); err == nil && p.n > 0 {
					heaps[p.addr] = true
				}
			}
		}
	}
	if err := s.f.collectionsAhead(ctx, heaps); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, ds := range sets {
		list, err := ds.scales(ctx, byAddr, byID)
		if err != nil {
			return withPath(ds.path, err)
		}
		ds.dims = list
		for i, sc := range list {
			if sc == nil {
				continue
			}
			used[sc.name] = true
			if sc.grows && ds.layout.class == chunked {
				sc.length = max(sc.length, ds.space.dims[i])
			}
		}
	}
	names := phony{used: used, lengths: map[*node][]phonyDim{}}
	for _, ds := range sets {
		if ds.hidden {
			continue
		}
		ds.shape = append([]int64{}, ds.space.dims...)
		ds.names = make([]string, 0, len(ds.shape)+len(ds.elem.dims))
		for i, sc := range ds.dims {
			if sc != nil && sc.grows && ds.layout.class == chunked && ds.refused == nil {
				ds.shape[i] = sc.length
			}
			if sc != nil && ds.shape[i] == sc.length {
				ds.names = append(ds.names, sc.name)
			} else {
				ds.names = append(ds.names, "")
			}
		}
		ds.shape = append(ds.shape, ds.elem.dims...)
		for range ds.elem.dims {
			ds.names = append(ds.names, "")
		}
		names.fill(ds)
	}
	return nil
}

// phony names dimensions without a scale: within one group a name has one length, and an
// array has no name twice.
type phony struct {
	used    map[string]bool // names of dimension scales
	next    int
	lengths map[*node][]phonyDim
}

type phonyDim struct {
	name   string
	length int64
}

func (p *phony) fill(ds *dataset) {
	group := ds.group
	taken := map[string]bool{}
	for i, name := range ds.names {
		if name != "" {
			continue
		}
		for _, d := range p.lengths[group] {
			if d.length == ds.shape[i] && !taken[d.name] {
				name = d.name
				break
			}
		}
		for name == "" {
			if s := "phony_dim_" + strconv.Itoa(p.next); !p.used[s] {
				name = s
				p.lengths[group] = append(p.lengths[group], phonyDim{name, ds.shape[i]})
			}
			p.next++
		}
		taken[name] = true
		ds.names[i] = name
	}
}
