package namespace

import (
	"context"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// ApplyOnto makes edits that were meant for base on head, if it is plain that a
// merge would do the same and nothing else: no edit is of metadata, and in both
// roots each key has the same bytes and the same directories above it.
// ok is false if it is not plain. Its cost is that of the edits, whatever
// happened between base and head.
func (s *Space) ApplyOnto(ctx context.Context, base, head tree.Root, edits []Edit) (root tree.Root, ok bool, err error) {
	var above string // directory that was compared last
	for i := range edits {
		key := edits[i].Key
		dir, name := SplitKey(key)
		if s.isMetadata(name) {
			return root, false, nil
		}
		if i == 0 || dir != above {
			if ok, err := s.sameAbove(ctx, base, head, key); err != nil || !ok {
				return root, false, err
			}
			above = dir
		}
		was, inBase, err := s.Get(ctx, base, key)
		if err != nil {
			return root, false, err
		}
		is, inHead, err := s.Get(ctx, head, key)
		if err != nil || inBase != inHead || inBase && !SameBytes(&was, &is) {
			return root, false, err
		}
	}
	root, err = s.Apply(ctx, head, edits)
	return root, err == nil, err
}

// sameAbove reports whether every directory above a key is the same node, with
// the same node documents and forms, in two roots.
func (s *Space) sameAbove(ctx context.Context, a, b tree.Root, key string) (bool, error) {
	for a != b {
		ia, err := s.readDir(ctx, a)
		if err != nil {
			return false, err
		}
		ib, err := s.readDir(ctx, b)
		if err != nil {
			return false, err
		}
		if same, err := s.sameDir(ctx, a, b, ia, ib); err != nil || !same {
			return false, err
		}
		slash := strings.IndexByte(key, '/')
		if slash < 0 {
			break
		}
		var inA, inB bool
		if a, inA, err = s.subDir(ctx, a, ia, key[:slash+1]); err != nil {
			return false, err
		}
		if b, inB, err = s.subDir(ctx, b, ib, key[:slash+1]); err != nil || inA != inB {
			return false, err
		}
		if !inA {
			break
		}
		key = key[slash+1:]
	}
	return true, nil
}

// sameDir compares two directories without their sub-directories and chunks.
func (s *Space) sameDir(ctx context.Context, a, b tree.Root, ia, ib *dirInfo) (bool, error) {
	if ia.hasID != ib.hasID || ia.id != ib.id || len(ia.forms) != len(ib.forms) || len(ia.nodes) != len(ib.nodes) {
		return false, nil
	}
	for i := range ia.forms {
		if ia.forms[i].Form != ib.forms[i].Form {
			return false, nil
		}
	}
	for i := range ia.nodes {
		name := ia.nodes[i].name
		if name != ib.nodes[i].name {
			return false, nil
		}
		was, _, err := s.Tree.Get(ctx, a, keyBytes(name))
		if err != nil {
			return false, err
		}
		is, _, err := s.Tree.Get(ctx, b, keyBytes(name))
		if err != nil || !SameBytes(&was, &is) {
			return false, err
		}
	}
	return true, nil
}
