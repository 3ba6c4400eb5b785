package namespace

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Eraser takes a path out of many roots: its key, all below it, and the copies that documents above have of it.
// What it found out is remembered, since versions differ little. It is not safe for concurrent use.
type Eraser struct {
	s    *Space
	path string
	docs map[string]map[digest.Sum][]byte // without the copies, by key and contents; nil: it has none
	made map[tree.Root]tree.Root
}

// NewEraser returns an eraser of a path, which is not empty.
func NewEraser(s *Space, path string) *Eraser {
	return &Eraser{s: s, path: path, docs: map[string]map[digest.Sum][]byte{}, made: map[tree.Root]tree.Root{}}
}

// Finds reports whether a root has anything of the path.
func (e *Eraser) Finds(ctx context.Context, root tree.Root) (bool, error) {
	docs, err := e.copies(ctx, root)
	if err != nil || len(docs) > 0 {
		return len(docs) > 0, err
	}
	_, found, err := e.s.Get(ctx, root, e.path)
	if err != nil || found {
		return found, err
	}
	return e.s.Any(ctx, root, DirPath(e.path))
}

// Erase returns a root without the path: the same one if it is not there.
func (e *Eraser) Erase(ctx context.Context, root tree.Root) (out tree.Root, err error) {
	if out, ok := e.made[root]; ok {
		return out, nil
	}
	defer func() {
		if err == nil {
			e.made[root] = out
		}
	}()
	found, err := e.Finds(ctx, root)
	if err != nil || !found {
		return root, err
	}
	edits, err := e.copies(ctx, root)
	if err != nil {
		return root, err
	}
	for i := range edits {
		value, ok, err := e.s.makeDoc(ctx, edits[i].Key, edits[i].Value.Inline)
		if err == nil && !ok {
			err = fmt.Errorf("txn: bug: %q cannot be stored", edits[i].Key)
		}
		if err != nil {
			return root, err
		}
		edits[i].Value = value
	}
	if _, found, err := e.s.Get(ctx, root, e.path); err != nil {
		return root, err
	} else if found {
		edits = append(edits, Edit{Key: e.path, Delete: true})
	}
	if out, err = e.s.Apply(ctx, root, sortedEdits(edits)); err != nil {
		return root, err
	}
	return e.s.DeletePrefix(ctx, out, DirPath(e.path))
}

// copies returns the documents above the path that have copies of it, without these. Their bytes are inline,
// whatever their size.
func (e *Eraser) copies(ctx context.Context, root tree.Root) (edits []Edit, err error) {
	for dir := e.path; dir != ""; {
		dir, _ = SplitKey(strings.TrimSuffix(dir, "/"))
		for _, name := range e.s.policy.Copying() {
			key := dir + name
			v, ok, err := e.s.Get(ctx, root, key)
			if err != nil || !ok || key == e.path {
				if err != nil {
					return nil, err
				}
				continue
			}
			rest, known := e.docs[key][v.ContentSum()]
			if !known {
				doc, ok, err := e.s.readDoc(ctx, v)
				if err != nil {
					return nil, fmt.Errorf("txn: read %s: %w", key, err)
				}
				if ok {
					rest = e.s.policy.WithoutCopies(name, doc, e.path[len(dir):])
				}
				if e.docs[key] == nil {
					e.docs[key] = map[digest.Sum][]byte{}
				}
				e.docs[key][v.ContentSum()] = rest
			}
			if rest != nil {
				edits = append(edits, Edit{Key: key, Value: tree.Value{Kind: tree.KindInline, Inline: bytes.Clone(rest)}})
			}
		}
	}
	return edits, nil
}

// PathOf returns the path of the array with an identity.
func (s *Space) PathOf(ctx context.Context, root tree.Root, id [16]byte) (path string, ok bool, err error) {
	type at struct {
		path string
		root tree.Root
	}
	for pending := []at{{"", root}}; len(pending) > 0; {
		d := pending[len(pending)-1]
		pending = slices.Delete(pending, len(pending)-1, len(pending))
		info, err := s.readDir(ctx, d.root)
		if err != nil {
			return "", false, err
		}
		if info.hasID && info.id == id {
			return strings.TrimSuffix(d.path, "/"), true, nil
		}
		for sub, err := range s.subDirs(ctx, d.root, info) {
			if err != nil {
				return "", false, err
			}
			pending = append(pending, at{d.path + sub.name, sub.root})
		}
	}
	return "", false, nil
}
