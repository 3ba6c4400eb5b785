package txn

import (
	"context"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// onto makes edits that were meant for base on head, if it is plain that a
// merge would do the same and nothing else: no edit is of metadata, and in both
// roots each key has the same bytes and the same directories above it.
// ok is false if it is not plain. Its cost is that of the edits, whatever
// happened between base and head.
func (s *space) onto(ctx context.Context, base, head tree.Root, edits []edit) (root tree.Root, ok bool, err error) {
	var above string // directory that was compared last
	for i := range edits {
		key := edits[i].key
		dir, name := splitKey(key)
		if s.isMetadata(name) {
			return root, false, nil
		}
		if i == 0 || dir != above {
			if ok, err := s.sameAbove(ctx, base, head, key); err != nil || !ok {
				return root, false, err
			}
			above = dir
		}
		was, inBase, err := s.get(ctx, base, key)
		if err != nil {
			return root, false, err
		}
		is, inHead, err := s.get(ctx, head, key)
		if err != nil || inBase != inHead || inBase && !sameBytes(&was, &is) {
			return root, false, err
		}
	}
	root, err = s.apply(ctx, head, edits)
	return root, err == nil, err
}

// sameAbove reports whether every directory above a key is the same node, with
// the same node documents and forms, in two roots.
func (s *space) sameAbove(ctx context.Context, a, b tree.Root, key string) (bool, error) {
	for a != b {
		ia, err := s.dir(ctx, a)
		if err != nil {
			return false, err
		}
		ib, err := s.dir(ctx, b)
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
		if a, inA, err = s.sub(ctx, a, ia, key[:slash+1]); err != nil {
			return false, err
		}
		if b, inB, err = s.sub(ctx, b, ib, key[:slash+1]); err != nil || inA != inB {
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
func (s *space) sameDir(ctx context.Context, a, b tree.Root, ia, ib *dirInfo) (bool, error) {
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
		was, _, err := s.t.Get(ctx, a, keyBytes(name))
		if err != nil {
			return false, err
		}
		is, _, err := s.t.Get(ctx, b, keyBytes(name))
		if err != nil || !sameBytes(&was, &is) {
			return false, err
		}
	}
	return true, nil
}
