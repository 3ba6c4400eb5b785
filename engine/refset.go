package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/refs"
)

// The kerchunk: adapter, a project scheme beside those of ZEP 8: a JSON file or
// a directory of parquet files that is a reference set, as the store which it
// describes.

// docParquet is what a parquet set has at its root, and a v2 hierarchy beside
// its own documents.
const docParquet = names.V2Metadata

func isReferenceSet(e Evidence) bool {
	if e.heads != nil {
		return e.Has(docParquet) && !isZarr2(e) && !e.Has(names.V3)
	}
	return looksLikeReferences(e.Head)
}

// looksLikeReferences reports whether a file begins as a JSON set does, from
// the first members of the object: a version with templates, generators or
// references (version 1), a key of Zarr metadata, or a key whose value is a
// list (version 0).
func looksLikeReferences(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	if !bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte{'{'}) {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(head))
	if _, err := d.Token(); err != nil {
		return false
	}
	version := false
	for {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return false
		}
		switch name := path.Base(key); {
		case key == "version":
			version = true
		case key == "refs", version && (key == "templates" || key == "gen"):
			return true
		case name == names.V2Array || name == names.V2Group || name == names.V2Attrs || name == names.V3:
			return true
		case key == "zarr_format" || key == "zarr_consolidated_format":
			return false
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return false
		}
		if value[0] == '[' && !version {
			return isReference(value)
		}
	}
}

// isReference reports whether a JSON value is [url] or [url, offset, length].
func isReference(value []byte) bool {
	var list []any
	if json.Unmarshal(value, &list) != nil || len(list) != 1 && len(list) != 3 {
		return false
	}
	_, ok := list[0].(string)
	return ok
}

func openKerchunk(ctx context.Context, e *Env, from Place, part zurl.Part) (Place, error) {
	set, err := e.set(ctx, from)
	if err != nil {
		return from, err
	}
	key, err := part.Key()
	if err != nil {
		return from, err
	}
	at := Place{View: set, Path: names.Clean(key), set: set}
	if part.Directory() {
		at.Kind = Directory
	}
	return at, nil
}

// refSet is a reference set that was found. As a view it is opened when it is
// first read, because linking it needs only one pass over it.
type refSet struct {
	// file is a JSON set, dir a parquet set, foreign what is in a foreign format; the
	// others are nil.
	file    kv.Value
	dir     kv.Reader
	foreign refs.Set
	opts    refs.Options
	// files reads what the set refers to, of many keys at once.
	files *virtual.Resolver

	opening gather.Turn                 // of view
	base    func(context.Context) error // finds out what relative URLs are relative to, once view is open; or nil
	view    *refs.View
}

var (
	_ kv.ReadLister = (*refSet)(nil)
	_ kv.DirLister  = (*refSet)(nil)
	_ kv.Locator    = (*refSet)(nil)
	_ kv.Gatherer   = (*refSet)(nil)
)

// Get implements [kv.Reader].
func (s *refSet) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	v, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	return v.Get(ctx, key, rng)
}

// Locate implements [kv.Locator].
func (s *refSet) Locate(ctx context.Context, key string) (kv.Value, error) {
	v, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	return v.Locate(ctx, key)
}

// Gathers implements [kv.Gatherer].
func (s *refSet) Gathers(context.Context, string) bool { return true }

// Gather implements [kv.Gatherer].
func (s *refSet) Gather(ctx context.Context, wants []kv.Want, g kv.Gathering) error {
	v, err := s.open(ctx)
	if err != nil {
		return err
	}
	values := make([]kv.Value, len(wants))
	for i := range wants {
		ref, err := v.Lookup(ctx, wants[i].Key)
		switch {
		case errors.Is(err, kv.ErrNotFound):
		case err != nil:
			return err
		case ref.Inline():
			values[i] = kv.Bytes(ref.Data)
		default:
			values[i] = &virtual.Mention{Src: tree.Source{URL: ref.URL, Validator: ref.Condition, Whole: ref.Whole()}, Off: uint64(ref.Offset), N: uint64(ref.Length), Optional: ref.Optional}
		}
	}
	return s.files.GatherMentions(ctx, values, wants, g)
}

// List implements [kv.Lister].
func (s *refSet) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		v, err := s.open(ctx)
		if err != nil {
			yield("", err)
			return
		}
		v.List(ctx, o)(yield)
	}
}

// ListDir implements [kv.DirLister].
func (s *refSet) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		v, err := s.open(ctx)
		if err != nil {
			yield(kv.DirEntry{}, err)
			return
		}
		v.ListDir(ctx, prefix)(yield)
	}
}

// set finds the reference set at a place.
func (e *Env) set(ctx context.Context, at Place) (*refSet, error) {
	if at.set != nil {
		return at.set, nil
	}
	s := e.newSet(baseOf(at))
	if at.Kind != Directory {
		v, err := at.file(ctx)
		if err == nil {
			s.file = v
			return s, nil
		}
		if at.Kind == File || !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, kv.ErrInvalidKey) {
			return nil, err
		}
	}
	s.dir = at.dir()
	s.base = func(ctx context.Context) error { return e.chooseBase(ctx, s, at) }
	return s, nil
}

// skipped warns of a key of a reference set or foreign format, once, and of no more than a few.
func (e *Env) skipped(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.warn == nil || len(e.told) == maxUnknown || slices.Contains(e.told, key) {
		return
	}
	e.told = append(e.told, key)
	e.warn(fmt.Sprintf("key %q is left out: no store can have such a key", key))
}

// baseOf returns the URL of the folder that holds a set, and the folder.
func baseOf(at Place) (base string, folder kv.Reader) {
	if at.origin != nil {
		at = *at.origin
	}
	folder = kv.Sub(at.View, names.Dir(names.Parent(at.Path)))
	if len(at.URL.Adapters()) > 0 {
		return virtual.Inside, folder
	}
	url, ok := referred(at.URL.Root())
	if !ok {
		return virtual.Inside, folder
	}
	url, _, _ = strings.Cut(strings.TrimRight(url, "/"), "?")
	if i := strings.LastIndexByte(url, '/') + 1; !strings.HasSuffix(url[:i], "://") || strings.HasPrefix(url, "file://") {
		return url[:i], folder
	}
	return url + "/", folder // a bucket is its own folder
}

func (s *refSet) open(ctx context.Context) (_ *refs.View, err error) {
	if err := s.opening.Take(ctx); err != nil {
		return nil, err
	}
	defer s.opening.Release()
	switch {
	case s.view != nil:
	case s.foreign != nil:
		s.view, err = refs.NewView(s.foreign, &s.opts)
	case s.dir != nil:
		if s.view, err = refs.OpenParquet(ctx, s.dir, &s.opts); err != nil {
			break
		}
		if err = s.base(ctx); err != nil {
			s.view = nil
		}
	default:
		s.view, err = refs.OpenJSON(ctx, s.file, &s.opts)
	}
	return s.view, err
}

// ExpandReferences writes the JSON reference set that src names as version 0:
// templates rendered, generators written out. What was written before an error
// is no complete document.
func ExpandReferences(ctx context.Context, src *Source, w io.Writer) error {
	v, err := src.File(ctx)
	if errors.Is(err, ErrFormat) {
		return fmt.Errorf("%w (a set of parquet files has nothing to expand)", err)
	}
	if err != nil {
		return err
	}
	if err := refs.Expand(ctx, w, v, nil); err != nil {
		return fmt.Errorf("%s: %w", src.name(), err)
	}
	return nil
}
