package kv

import (
	"slices"
	"sort"
	"strings"
)

// keySet is an ordered set of strings, kept as a list of sorted blocks. An
// insertion moves at most one block and the list of blocks, which is cheap up
// to many millions of keys and much simpler than a balanced tree.
//
//	[a b c] [d f] [g h k m]        each block: 1 … maxBlock keys
type keySet struct {
	blocks [][]string
}

const maxBlock = 512

// find returns the block that key is in or belongs into, and its position there.
// The block may be len(blocks).
func (s *keySet) find(key string) (block, pos int, found bool) {
	block = sort.Search(len(s.blocks), func(i int) bool {
		b := s.blocks[i]
		return b[len(b)-1] >= key
	})
	if block < len(s.blocks) {
		pos, found = slices.BinarySearch(s.blocks[block], key)
	}
	return block, pos, found
}

// add inserts key, which must not be in the set.
func (s *keySet) add(key string) {
	i, pos, _ := s.find(key)
	if i == len(s.blocks) {
		// Beyond the last key: fill the last block, so that sorted input
		// leaves full blocks behind.
		if i == 0 || len(s.blocks[i-1]) == maxBlock {
			s.blocks = append(s.blocks, append(make([]string, 0, maxBlock), key))
			return
		}
		s.blocks[i-1] = append(s.blocks[i-1], key)
		return
	}
	b := slices.Insert(s.blocks[i], pos, key)
	if len(b) <= maxBlock {
		s.blocks[i] = b
		return
	}
	half := len(b) / 2
	right := append(make([]string, 0, maxBlock), b[half:]...)
	clear(b[half:])
	s.blocks[i] = b[:half]
	s.blocks = slices.Insert(s.blocks, i+1, right)
}

// remove deletes key, which must be in the set.
func (s *keySet) remove(key string) {
	i, pos, _ := s.find(key)
	b := slices.Delete(s.blocks[i], pos, pos+1)
	if len(b) == 0 {
		s.blocks = slices.Delete(s.blocks, i, i+1)
		return
	}
	s.blocks[i] = b
}

// appendFrom appends to dst up to n keys that begin with opts.Prefix and come
// after opts.After, in order.
func (s *keySet) appendFrom(dst []string, opts ListOptions, n int) []string {
	from := max(opts.Prefix, opts.After)
	i, pos, found := s.find(from)
	if found && from == opts.After && opts.After != "" {
		pos++
	}
	for ; i < len(s.blocks) && n > 0; i, pos = i+1, 0 {
		for _, key := range s.blocks[i][pos:] {
			if n == 0 || !strings.HasPrefix(key, opts.Prefix) {
				return dst
			}
			dst = append(dst, key)
			n--
		}
	}
	return dst
}
