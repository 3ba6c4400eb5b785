package namespace

import (
	"bytes"
	"context"
	"fmt"
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
	ids  map[tree.Root]map[[16]byte]string // see arrays
}

// mostRemembered bounds what an eraser remembers of directories, and of a document.
const mostRemembered = 1000

// NewEraser returns an eraser of a path, which is not empty.
func NewEraser(s *Space, path string) *Eraser {
	return &Eraser{s: s, path: path, docs: map[string]map[digest.Sum][]byte{}, made: map[tree.Root]tree.Root{}, ids: map[tree.Root]map[[16]byte]string{}}
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
				if len(e.docs[key]) > mostRemembered {
					clear(e.docs[key])
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

// Elsewhere returns where a root has, at another path, what another one has at the path: arrays with the same
// identities, or the same directory.
func (e *Eraser) Elsewhere(ctx context.Context, of, in tree.Root) (paths []string, err error) {
	var dirs [2]tree.Root
	for i, root := range []tree.Root{of, in} {
		if dirs[i], _, err = e.s.Dir(ctx, root, DirPath(e.path)); err != nil {
			return nil, err
		}
	}
	want, err := e.arrays(ctx, dirs[0])
	if err != nil || dirs[0] == dirs[1] || dirs[0].Entries == 0 {
		return nil, err
	}
	still, err := e.arrays(ctx, dirs[1])
	if err != nil {
		return nil, err
	}
	moved := dirs[1].Entries == 0
	for id := range want {
		_, stays := still[id]
		moved = moved || !stays
	}
	for pending := []dirSub{{"", in}}; moved && len(pending) > 0; {
		d := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if d.name == DirPath(e.path) {
			continue
		}
		info, err := e.s.readDir(ctx, d.root)
		if err != nil {
			return nil, err
		}
		has, err := e.arrays(ctx, d.root)
		if err != nil {
			return nil, err
		}
		same := d.root == dirs[0] || len(has) > 0
		for id, at := range has {
			as, ok := want[id]
			same = same && ok && as == at
		}
		_, array := want[info.id]
		if d.name != "" && (same || info.hasID && array) {
			paths = append(paths, strings.TrimSuffix(d.name, "/"))
			continue
		}
		for sub, err := range e.s.subDirs(ctx, d.root, info) {
			if err != nil {
				return nil, err
			}
			pending = append(pending, dirSub{d.name + sub.name, sub.root})
		}
	}
	return paths, nil
}

// arrays returns the arrays of a directory, and where in it they are.
func (e *Eraser) arrays(ctx context.Context, dir tree.Root) (map[[16]byte]string, error) {
	if at, ok := e.ids[dir]; ok {
		return at, nil
	}
	info, err := e.s.readDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	at := map[[16]byte]string{}
	if info.hasID {
		at[info.id] = ""
	}
	for sub, err := range e.s.subDirs(ctx, dir, info) {
		if err != nil {
			return nil, err
		}
		below, err := e.arrays(ctx, sub.root)
		if err != nil {
			return nil, err
		}
		for id, path := range below {
			at[id] = sub.name + path
		}
	}
	if len(e.ids) > mostRemembered {
		clear(e.ids)
	}
	e.ids[dir] = at
	return at, nil
}
