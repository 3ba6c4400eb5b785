package ocdbt

import (
	"math"
	"time"

	"github.com/zarrdb/zarrdb/formats"
)

// location is where a node or a value lies.
type location struct {
	file   dataFile
	off, n uint64
}

// missing is the location of the root of an empty tree.
func (l *location) missing() bool { return l.off == math.MaxUint64 && l.n == math.MaxUint64 }

// same reports whether two locations are of the same bytes.
func (l *location) same(o *location) bool {
	return l.file.path == o.file.path && l.off == o.off && l.n == o.n
}

// generation is one version of a store.
type generation struct {
	number uint64
	height uint8
	root   location
	time   uint64 // nanoseconds since 1970
}

// versionRef refers to a node of the version tree.
type versionRef struct {
	location
	last   uint64 // the newest generation in it
	count  uint64 // of generations in it
	time   uint64 // of the oldest generation in it
	height uint8
}

// versionNode is a node of the version tree: generations, or nodes that have them.
type versionNode struct {
	height   uint8
	versions []generation
	nodes    []versionRef
}

func (v *versionNode) size() int64 { return 128 * int64(1+len(v.versions)+len(v.nodes)) }

// decodeLocations reads three columns: files, offsets, lengths.
func decodeLocations(c *cursor, files []dataFile, n int, mayMiss bool, at func(i int) *location) {
	for i := range n {
		if k := c.uvarint(); k < uint64(len(files)) {
			at(i).file = files[k]
		} else {
			c.fail("data file %d of %d", k, len(files))
		}
	}
	c.column(n, func(i int) *uint64 { return &at(i).off })
	for i := range n {
		l := at(i)
		if l.n = c.uvarint(); c.err == nil && !(mayMiss && l.missing()) && (l.off > math.MaxInt64 || l.n > math.MaxInt64-l.off) {
			c.fail("%d bytes from byte %d on", l.n, l.off)
		}
	}
}

// decodeGenerations reads the entries of a leaf of the version tree, or of a
// manifest (index.rst, "Version tree leaf node entries format").
func decodeGenerations(c *cursor, files []dataFile, arityLog2 uint8) []generation {
	n := c.count(1<<arityLog2, 16, "the number of generations")
	if c.err == nil && n == 0 {
		c.fail("it has no generation")
	}
	v := make([]generation, n)
	c.column(n, func(i int) *uint64 { return &v[i].number })
	for i := range v {
		v[i].height = c.byte()
	}
	decodeLocations(c, files, n, true, func(i int) *location { return &v[i].root })
	c.skipStatistics(n)
	for i := range v {
		v[i].time = c.uint64()
	}
	if c.err != nil {
		return nil
	}
	for i := range v {
		switch {
		case v[i].number == 0 || i > 0 && v[i].number <= v[i-1].number:
			c.fail("generation %d is not in order", v[i].number)
		case (v[i].number-1)>>arityLog2 != (v[0].number-1)>>arityLog2:
			c.fail("generations %d and %d are in one node", v[0].number, v[i].number)
		case v[i].root.missing() && v[i].height != 0:
			c.fail("generation %d is empty, and has nodes", v[i].number)
		}
	}
	return v
}

// decodeVersionRefs reads the entries of an interior node of the version tree, whose
// children have a height, or those in a manifest, which say it: height is -1 (index.rst,
// "Interior version tree node entries").
func decodeVersionRefs(c *cursor, files []dataFile, most uint64, arityLog2 uint8, height int) []versionRef {
	n := c.count(most, 13, "the number of nodes of the version tree")
	v := make([]versionRef, n)
	c.column(n, func(i int) *uint64 { return &v[i].last })
	decodeLocations(c, files, n, false, func(i int) *location { return &v[i].location })
	c.column(n, func(i int) *uint64 { return &v[i].count })
	for i := range v {
		v[i].time = c.uint64()
	}
	for i := range v {
		if v[i].height = uint8(height); height < 0 {
			v[i].height = c.byte()
		}
	}
	if c.err != nil {
		return nil
	}
	for i := range v {
		switch {
		case v[i].last == 0 || i > 0 && v[i].last <= v[i-1].last:
			c.fail("generation %d is not in order", v[i].last)
		case height < 0 && (v[i].height == 0 || i > 0 && v[i].height >= v[i-1].height),
			(int(v[i].height)+1)*int(arityLog2) >= 64:
			c.fail("a node of the version tree has height %d", v[i].height)
		}
	}
	return v
}

// maxVersionNode bounds a node of the version tree, as maxManifest does a manifest.
const maxVersionNode = maxManifest

// decodeVersionNode reads a node that a reference leads to.
func decodeVersionNode(b []byte, arityLog2 uint8, ref versionRef) (*versionNode, error) {
	body, err := decodeFrame(magicVersions, b, maxVersionNode)
	if err != nil {
		return nil, err
	}
	c := &cursor{b: body}
	arity, v := c.byte(), &versionNode{height: c.byte()}
	if c.err == nil && (arity != arityLog2 || v.height != ref.height) {
		c.fail("arity and height are %d and %d, not %d and %d", arity, v.height, arityLog2, ref.height)
	}
	files := decodeFiles(c, ref.file.transitive(), maxVersionNode)
	var last uint64
	if v.height == 0 {
		v.versions = decodeGenerations(c, files, arityLog2)
	} else {
		v.nodes = decodeVersionRefs(c, files, 1<<arityLog2, arityLog2, int(v.height)-1)
	}
	if err := c.end(); err != nil {
		return nil, err
	}
	switch {
	case len(v.versions) > 0:
		last = v.versions[len(v.versions)-1].number
	case len(v.nodes) > 0:
		last = v.nodes[len(v.nodes)-1].last
	}
	if last != ref.last {
		return nil, formats.Invalid("its newest generation is %d, not %d", last, ref.last)
	}
	return v, nil
}

// when is a commit time.
func when(ns uint64) time.Time {
	return time.Unix(int64(ns/1e9), int64(ns%1e9)).UTC()
}
