package policy

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/zarr"
)

// Separators adds to v2 documents the dimension_separator that they lack.
// NestedDirectoryStore of zarr-python before 2.8 wrote chunks under keys such as 0/1, and no
// dimension_separator, without which the keys are 0.1. For each array of at least two
// dimensions whose document has none, it asks the store once for the chunk at the origin
// under both names. If there is neither, it looks among the first keys of a store that can
// be listed. Without any chunk the document stays as it is.
type Separators struct {
	store kv.Reader
	// Listed says that chunks are looked for by listing alone: chunks of a session may
	// be virtual values, which cannot be located without their files.
	Listed bool
	known  sync.Map // of bool: whether the chunk keys have slashes, by directory with a slash at its end
}

// NewSeparators returns the separators of a store.
func NewSeparators(store kv.Reader) *Separators { return &Separators{store: store} }

// sound reports whether the document under a key was found to lack nothing.
func (s *Separators) sound(key string) bool {
	dir, name := path.Split(key)
	nested, known := s.known.Load(dir)
	return name == names.V2Array && known && nested == false
}

// hasSeparators reports whether a document describes v2 arrays.
func hasSeparators(key string) bool {
	return strings.HasSuffix(key, names.V2Array) || strings.HasSuffix(key, names.V2Metadata)
}

// Correct returns the text under a key: of a .zarray and a .zmetadata with the separators
// that it lacks, other documents and parts of documents as they are.
func (s *Separators) Correct(ctx context.Context, key string, text []byte) ([]byte, error) {
	dir, name := path.Split(key)
	switch name {
	case names.V2Array:
		docs, err := s.correct(ctx, map[string]json.RawMessage{dir: text})
		if fixed := docs[dir]; fixed != nil {
			text = fixed
		}
		return text, err
	case names.V2Metadata:
		all, err := ParseObject(text)
		if err != nil {
			return text, nil // opening the node returns the error
		}
		list, err := ParseObject(all.Values["metadata"])
		if err != nil {
			return text, nil
		}
		docs := map[string]json.RawMessage{}
		for _, k := range list.Keys {
			if at, name := path.Split(k); name == names.V2Array {
				docs[dir+at] = list.Values[k]
			}
		}
		if docs, err = s.correct(ctx, docs); err != nil || len(docs) == 0 {
			return text, err
		}
		for at, doc := range docs {
			list.Set(strings.TrimPrefix(at, dir)+names.V2Array, doc)
		}
		all.Set("metadata", list.Print())
		return all.Print(), nil
	}
	return text, nil
}

// correct returns the documents of arrays that change, by directory.
func (s *Separators) correct(ctx context.Context, docs map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	lack := map[string]*Object{}
	var ask []string
	var reqs []kv.Request
	for dir, doc := range docs {
		a, err := ParseObject(doc)
		if err != nil {
			continue
		}
		var shape []json.RawMessage
		_ = json.Unmarshal(a.Values["shape"], &shape) // opening the array returns the error
		if len(a.Values["dimension_separator"]) > 0 || len(shape) < 2 || len(shape) > zarr.MaxRank {
			s.known.Store(dir, false)
			continue
		}
		lack[dir] = a
		if _, ok := s.known.Load(dir); !ok {
			ask = append(ask, dir)
			for _, sep := range []string{".0", "/0"} {
				if !s.Listed {
					reqs = append(reqs, kv.Request{Key: dir + "0" + strings.Repeat(sep, len(shape)-1), Range: kv.Span(0, 0)})
				}
			}
		}
	}
	found, err := kv.GetMany(ctx, s.store, reqs)
	if err != nil {
		return nil, err
	}
	var unknown []string
	for i, dir := range ask {
		switch {
		case !s.Listed && found[2*i] != nil:
			s.known.Store(dir, false)
		case !s.Listed && found[2*i+1] != nil:
			s.known.Store(dir, true)
		default:
			unknown = append(unknown, dir)
		}
	}
	// Each listing is a request of a remote store.
	if err := gather.Each(ctx, 8, len(unknown), func(ctx context.Context, i int) error { return s.list(ctx, unknown[i]) }); err != nil {
		return nil, err
	}
	changed := map[string]json.RawMessage{}
	for dir, a := range lack {
		if nested, _ := s.known.Load(dir); nested == true {
			a.Set("dimension_separator", json.RawMessage(`"/"`))
			changed[dir] = a.Print()
		}
	}
	return changed, nil
}

// list looks for a chunk among the first keys of a directory.
func (s *Separators) list(ctx context.Context, dir string) error {
	const most = 100
	list, ok := s.store.(kv.Lister)
	if !ok {
		return nil
	}
	seen := 0
	for key, err := range list.List(ctx, kv.ListOptions{Prefix: dir}) {
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, kv.ErrNotFound) {
			break
		}
		if err != nil {
			return err
		}
		if name := key[len(dir):]; name[0] != '.' && strings.Trim(name, "0123456789./") == "" {
			s.known.Store(dir, !strings.Contains(name, "."))
			break
		}
		if seen++; seen == most {
			break
		}
	}
	return nil
}
