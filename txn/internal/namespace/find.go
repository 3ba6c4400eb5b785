package namespace

import (
	"bytes"
	"context"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// VirtualBeside reports whether there may be virtual values beside key: among the
// chunks of its array or, for a document, anywhere below its directory.
func (s *Space) VirtualBeside(ctx context.Context, root tree.Root, key string) (bool, error) {
	if root.Flags&tree.HasVirtual == 0 {
		return false, nil
	}
	var buf [maxCoordsLen]byte
	home, _, dir, err := s.home(ctx, root, key, buf[:0])
	if home != nil {
		return home.root.Flags&tree.HasVirtual != 0, err
	}
	return dir.Flags&tree.HasVirtual != 0, err
}

// ChunkOwner finds the array that a key is a chunk of, and the key relative to
// it. ok is false for a document.
func (s *Space) ChunkOwner(ctx context.Context, root tree.Root, key string) (id [16]byte, rel string, ok bool, err error) {
	var buf [maxCoordsLen]byte
	for rest := key; ; {
		info, err := s.readDir(ctx, root)
		if err != nil {
			return id, "", false, err
		}
		for i := range info.forms {
			if _, matches := info.forms[i].parse(buf[:0], rest); matches && info.hasID {
				id, rel, ok = info.id, rest, true
			}
		}
		slash := strings.IndexByte(rest, '/')
		if slash < 0 {
			return id, rel, ok, nil
		}
		child, exists, err := s.subDir(ctx, root, info, rest[:slash+1])
		if err != nil || !exists {
			return id, rel, ok, err
		}
		root, rest = child, rest[slash+1:]
	}
}

// Documents returns the documents in the directory of an array, none if it
// is not there.
func (s *Space) Documents(ctx context.Context, root tree.Root, id [16]byte) (map[string]tree.Value, error) {
	pending := []tree.Root{root}
	for len(pending) > 0 {
		root := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		info, err := s.readDir(ctx, root)
		if err != nil {
			return nil, err
		}
		if !info.hasID || info.id != id {
			for sub, err := range s.subDirs(ctx, root, info) {
				if err != nil {
					return nil, err
				}
				pending = append(pending, sub.root)
			}
			continue
		}
		docs := map[string]tree.Value{}
		for e, err := range s.Tree.Scan(ctx, root, tree.Span{}) {
			if err != nil {
				return nil, err
			}
			if !isReserved(e.Key) && !isSub(e.Key) {
				docs[string(bytes.Clone(e.Key))] = e.Value
			}
		}
		return docs, nil
	}
	return nil, nil
}

// Any reports whether some key begins with prefix.
func (s *Space) Any(ctx context.Context, root tree.Root, prefix string) (bool, error) {
	for {
		if prefix == "" {
			return root.Entries > 0, nil
		}
		info, err := s.readDir(ctx, root)
		if err != nil {
			return false, err
		}
		for i := range info.forms {
			f := &info.forms[i]
			cut, ok := f.cut(prefix)
			if !ok {
				continue
			}
			for from, to := range cut.spans {
				for _, err := range s.Tree.Scan(ctx, f.root, tree.Span{From: from, To: to}) {
					return err == nil, err
				}
			}
		}
		slash := strings.IndexByte(prefix, '/')
		if slash < 0 {
			for _, err := range s.Tree.Scan(ctx, root, tree.Span{From: []byte(prefix), To: keyAfter([]byte(prefix))}) {
				return err == nil, err
			}
			return false, nil
		}
		child, ok, err := s.subDir(ctx, root, info, prefix[:slash+1])
		if err != nil || !ok {
			return false, err
		}
		root, prefix = child, prefix[slash+1:]
	}
}

// Identity returns the identity of the array at a node path, "" for the root.
func (s *Space) Identity(ctx context.Context, root tree.Root, path string) (id [16]byte, ok bool, err error) {
	info, _, err := s.dirAt(ctx, root, DirPath(path))
	if err != nil || info == nil {
		return id, false, err
	}
	return info.id, info.hasID, nil
}
