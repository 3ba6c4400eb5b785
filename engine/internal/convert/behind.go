package convert

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/zarr"
)

// maxBehind bounds the entries of [Plan].Behind.
const maxBehind = 10

// leave notes something that the conversion leaves behind.
func (c *Plan) leave(format string, args ...any) {
	if c.AllBehind++; len(c.Behind) < maxBehind {
		c.Behind = append(c.Behind, fmt.Sprintf(format, args...))
	}
}

// skip reports whether the options leave a node out, itself or with a group above the node.
func (c *Plan) skip(path string, array bool) bool {
	found := false
	for i, s := range c.o.Skip {
		if path == s || strings.HasPrefix(path, names.Dir(s)) {
			found, c.skipped[i] = true, true
		}
	}
	if found {
		c.leave("%s /%s", kindOf(array), path)
	}
	return found
}

// checkSkip returns the paths to skip without slashes at their ends. The root is an error.
func checkSkip(list []string) ([]string, error) {
	list = slices.Clone(list)
	for i, s := range list {
		if list[i] = names.Clean(s); list[i] == "" {
			return nil, errors.New("skip: without the root, nothing is left")
		}
	}
	return list, nil
}

func kindOf(array bool) string {
	if array {
		return "array"
	}
	return "group"
}

// leaveMembers notes the members of the metadata of a node that have no form in the format.
func (c *Plan) leaveMembers(path string, m *zarr.Meta) {
	if m.Version == c.format {
		return // the metadata is copied with all members
	}
	for _, name := range m.ExtraNames() {
		c.leave("member %q of %s /%s", name, kindOf(m.Array), path)
	}
}

// LeaveKeys notes the keys of the source that belong to no node, and are left behind. keys are
// all keys of the source, in any order. Keys of a source in the early v3 draft are not noted.
func (c *Plan) LeaveKeys(keys iter.Seq2[string, error]) error {
	if c.draft {
		return nil
	}
	dir, owner := "\x00", nodeKeys{} // of the key before
	for key, err := range keys {
		if err != nil {
			return err
		}
		at := names.Parent(key)
		if at != dir {
			dir, owner = at, c.above(at)
		}
		name := key[strings.LastIndexByte(key, '/')+1:]
		switch {
		case owner.skipped,
			owner.known && owner.path == at && slices.Contains(names.Documents(owner.version), name),
			owner.known && owner.path == at && owner.chunk == nil && isOMEXML(key) && !c.o.OnlyNodes: // which is copied
			continue
		case owner.chunk != nil:
			if _, ok := owner.chunk(key); ok {
				continue
			}
		}
		c.leave("key %s", strings.TrimPrefix(key, c.from))
	}
	return nil
}

// nodeKeys describes the keys that belong to a node.
type nodeKeys struct {
	path           string
	version        zarr.Version
	chunk          func(key string) ([]int64, bool) // of an array
	known, skipped bool
}

// above returns the nearest node at or above a directory.
func (c *Plan) above(dir string) nodeKeys {
	for {
		n, ok := c.nodes[dir]
		if ok || dir == "" {
			return n
		}
		dir = names.Parent(dir)
	}
}
