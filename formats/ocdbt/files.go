package ocdbt

import "strings"

// dataFile names a data file.
type dataFile struct {
	// base is how many bytes of path are passed on: the paths in a node that is read
	// from the file are relative to them (index.rst, "Data file table format").
	base int
	path string
}

// maxPath is the longest path of a data file, in bytes.
const maxPath = 1<<16 - 1

// decodeFiles reads a data file table. transitive is the base path of the file in which
// the table stands. All paths together have at most limit bytes.
func decodeFiles(c *cursor, transitive string, limit int) []dataFile {
	n := c.count(1<<20, 2, "the number of data files")
	if n == 0 || c.err != nil {
		return nil
	}
	lengths := make([]struct{ prefix, suffix, base int }, n)
	for i := 1; i < n; i++ {
		lengths[i].prefix = int(c.atMost(maxPath, "a length of a path"))
	}
	for i := range lengths {
		lengths[i].suffix = int(c.atMost(maxPath, "a length of a path"))
	}
	for i := range lengths {
		lengths[i].base = int(c.atMost(maxPath, "a length of a path"))
	}
	files := make([]dataFile, n)
	before, beforeBase, total := "", 0, 0
	for i, l := range lengths {
		suffix := c.bytes(l.suffix)
		size := l.prefix + l.suffix
		switch {
		case c.err != nil:
			return nil
		case l.prefix > len(before), l.base > size, size+len(transitive) > maxPath,
			l.prefix > min(beforeBase, l.base) && l.base != beforeBase:
			c.fail("the path of data file %d is inconsistent", i)
			return nil
		}
		if total += len(transitive) + size; total > limit {
			c.fail("the paths of data files have more than %d bytes", limit)
			return nil
		}
		var b strings.Builder
		b.Grow(len(transitive) + size)
		b.WriteString(transitive)
		b.WriteString(before[:l.prefix])
		b.Write(suffix)
		files[i] = dataFile{len(transitive) + l.base, b.String()}
		before, beforeBase = b.String()[len(transitive):], l.base
	}
	return files
}

// transitive returns the base of the paths in a node of this file.
func (f dataFile) transitive() string { return f.path[:f.base] }
