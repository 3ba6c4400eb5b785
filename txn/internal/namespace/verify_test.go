package namespace

import (
	"context"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Verify checks that everything below a root follows the rules in dir.go and
// that every key is at its home. It reads all index pages and the node
// documents; the error is kv.ErrCorrupt and names the place.
func (s *Space) Verify(ctx context.Context, root tree.Root) error {
	return s.verifyDir(ctx, root, "", nil)
}

func (s *Space) verifyDir(ctx context.Context, root tree.Root, path string, above []dirFrame) error {
	if err := CheckPath(ctx, path); err != nil {
		return err
	}
	info, err := s.readDir(ctx, root)
	if err != nil {
		return err
	}
	frames := append(slices.Clip(above), dirFrame{path, root, info})
	nodes := 0
	for e, err := range s.Tree.Scan(ctx, root, tree.Span{}) {
		if err != nil {
			return err
		}
		key := path + string(e.Key)
		switch {
		case isReserved(e.Key):
		case isSub(e.Key):
			if e.Value.Kind != tree.KindChild || e.Value.Child.Entries == 0 {
				return corrupt("directory %q: no entries", key)
			}
			err = s.verifyDir(ctx, e.Value.Child, key, frames)
		default:
			var node bool
			if node, err = s.verifyDoc(ctx, key, e, frames); node {
				nodes++
			}
		}
		if err != nil {
			return err
		}
	}
	if nodes != len(info.nodes) {
		return corrupt("directory %q: %d node documents, %d known", path, nodes, len(info.nodes))
	}
	state := info.dirState
	state.forms = slices.Clone(state.forms)
	if s.normalize(&state); len(stateEdits(&info.dirState, &state)) > 0 {
		return corrupt("directory %q: forms %v, nodes %v, identity %v do not fit", path, info.forms, info.nodes, info.hasID)
	}
	for i := range info.forms {
		if err := s.verifyMap(ctx, path, root, info, &info.forms[i]); err != nil {
			return err
		}
	}
	return nil
}

// verifyDoc checks a document and reports whether it is a node document.
func (s *Space) verifyDoc(ctx context.Context, key string, e tree.Entry, frames []dirFrame) (bool, error) {
	if e.Value.Kind == tree.KindChild {
		return false, corrupt("document %q is a directory", key)
	}
	for _, fr := range frames {
		for i := range fr.info.forms {
			if _, ok := fr.info.forms[i].parse(nil, key[len(fr.path):]); ok {
				return false, corrupt("document %q should be a chunk of directory %q", key, fr.path)
			}
		}
	}
	name := string(e.Key)
	if !s.IsNode(name) {
		return false, nil
	}
	want, err := s.describe(ctx, name, e.Value)
	if err != nil {
		return false, err
	}
	if have := findNode(frames[len(frames)-1].info.nodes, name); have == nil || !have.equal(want) {
		return false, corrupt("document %q declares %+v, its entry has %+v", key, want, have)
	}
	return true, nil
}

// verifyMap checks the chunks of one form.
func (s *Space) verifyMap(ctx context.Context, path string, root tree.Root, info *dirInfo, f *dirForm) error {
	alone := info.allSubs && len(info.subs) == 0
	var key []byte
	for e, err := range s.Tree.Scan(ctx, f.root, tree.Span{}) {
		if err != nil {
			return err
		}
		var ok bool
		if key, ok = f.print(key[:0], e.Key); !ok || e.Value.Kind == tree.KindChild {
			return corrupt("chunk map of %q: coordinates %x", path, e.Key)
		}
		if alone {
			continue
		}
		deeper, err := s.matchesDeeper(ctx, root, info, string(key))
		if err != nil {
			return err
		}
		if deeper {
			return corrupt("chunk %q of directory %q: a directory further down has a form that matches it", key, path)
		}
	}
	return nil
}

// matchesDeeper reports whether a directory below one has a form that matches a key.
func (s *Space) matchesDeeper(ctx context.Context, root tree.Root, info *dirInfo, key string) (bool, error) {
	for {
		slash := strings.IndexByte(key, '/')
		if slash < 0 {
			return false, nil
		}
		child, ok, err := s.subDir(ctx, root, info, key[:slash+1])
		if err != nil || !ok {
			return false, err
		}
		root, key = child, key[slash+1:]
		if info, err = s.readDir(ctx, root); err != nil {
			return false, err
		}
		for i := range info.forms {
			if _, ok := info.forms[i].parse(nil, key); ok {
				return true, nil
			}
		}
	}
}
