package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/redact"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

// The kerchunk: adapter, a project scheme beside the schemes of ZEP 8: it opens
// a reference set, a JSON file or a directory of parquet files, as the store
// that the set describes.

// docParquet is at the root of a parquet set, and of a v2 hierarchy beside its
// own documents.
const docParquet = names.V2Metadata

func isReferenceSet(e Evidence) bool {
	if e.heads != nil {
		return e.has(docParquet) && !isZarr2(e) && !e.has(names.V3)
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
	at, err := placeIn(set, part)
	at.set = set
	return at, err
}

// Set is a reference set that was found. Its view is opened by the
// first read: linking needs only one pass over the set.
type Set struct {
	// file is a JSON set, dir a parquet set, foreign a set in a foreign format; two
	// of them are nil.
	file    kv.Value
	dir     kv.Reader
	foreign refs.Set
	opts    refs.Options
	// files reads the referenced bytes, of many keys at once.
	files *virtual.Resolver

	opening ctxlock.Lock                // of view
	base    func(context.Context) error // finds the base of relative URLs, once view is open; or nil
	view    *refs.View
}

var (
	_ kv.ReadLister = (*Set)(nil)
	_ kv.DirLister  = (*Set)(nil)
	_ kv.Locator    = (*Set)(nil)
	_ kv.Gatherer   = (*Set)(nil)
)

// Get implements [kv.Reader].
func (s *Set) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	v, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	return v.Get(ctx, key, rng)
}

// Locate implements [kv.Locator].
func (s *Set) Locate(ctx context.Context, key string) (kv.Value, error) {
	v, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	return v.Locate(ctx, key)
}

// Gathers implements [kv.Gatherer].
func (s *Set) Gathers(context.Context, string) bool { return true }

// Gather implements [kv.Gatherer].
func (s *Set) Gather(ctx context.Context, wants []kv.Want, g kv.Gathering) error {
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
func (s *Set) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
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
func (s *Set) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
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
func (e *Env) set(ctx context.Context, at Place) (*Set, error) {
	if at.set != nil {
		return at.set, nil
	}
	s := e.newSet(baseOf(at))
	if at.Kind != Directory {
		v, err := at.File(ctx)
		if err == nil {
			s.file = v
			return s, nil
		}
		if at.Kind == File || !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, kv.ErrInvalidKey) {
			return nil, err
		}
	}
	s.dir = at.Dir()
	s.base = func(ctx context.Context) error { return e.chooseBase(ctx, s, at) }
	return s, nil
}

// skipped warns of a key of a reference set or foreign format, once, and of no more than a few.
func (e *Env) skipped(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Warn == nil || len(e.told) == maxTold || slices.Contains(e.told, key) {
		return
	}
	e.told = append(e.told, key)
	e.Warn(fmt.Sprintf("key %q is left out: no store can have such a key", key))
}

// warning returns a function that passes the warnings of a format about at to Warn.
func (e *Env) warning(at Place) func(text string) {
	if e.Warn == nil {
		return nil
	}
	return func(text string) { e.Warn(at.URL.Redacted() + ": " + text) }
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

func (s *Set) open(ctx context.Context) (_ *refs.View, err error) {
	if err := s.opening.Lock(ctx); err != nil {
		return nil, err
	}
	defer s.opening.Unlock()
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

// Entries yields the set as it is stored.
func (s *Set) Entries(ctx context.Context) iter.Seq2[refs.Entry, error] {
	if s.foreign != nil {
		return s.foreign.Entries(ctx)
	}
	if s.dir != nil {
		return refs.ReadParquet(ctx, s.dir, &s.opts.Read)
	}
	return refs.ReadJSON(ctx, s.file, &s.opts.Read)
}

// Below yields the references whose keys begin with a prefix.
func (s *Set) Below(ctx context.Context, prefix string) iter.Seq2[refs.Entry, error] {
	if prefix == "" {
		return s.Entries(ctx)
	}
	return func(yield func(refs.Entry, error) bool) {
		for key, err := range s.List(ctx, kv.ListOptions{Prefix: prefix}) {
			e := refs.Entry{Key: key}
			if err == nil {
				e.Reference, err = s.view.Lookup(ctx, key)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Foreign reports whether the set is something in a foreign format.
func (s *Set) Foreign() bool { return s.foreign != nil }

// Documents yields the documents of a set that has them apart from its other keys; it is nil
// for another set.
func (s *Set) Documents(ctx context.Context) (iter.Seq2[refs.Entry, error], error) {
	if apart, ok := s.foreign.(interface {
		Documents(ctx context.Context) iter.Seq2[refs.Entry, error]
	}); ok {
		return apart.Documents(ctx), nil
	}
	p, err := s.Parquet(ctx)
	if p == nil {
		return nil, err
	}
	return func(yield func(refs.Entry, error) bool) {
		p.Documents()(func(e refs.Entry) bool { return yield(e, nil) })
	}, nil
}

// Parquet reads the index of a set of parquet files; it is nil for another set.
func (s *Set) Parquet(ctx context.Context) (*refs.ParquetSet, error) {
	if s.dir == nil {
		return nil, nil
	}
	return refs.OpenParquetSet(ctx, s.dir, &s.opts.Read)
}

// Versions returns the store if the set is a version of a store in a format with
// versions, else nil.
func (s *Set) Versions() formats.Versioned {
	v, _ := s.foreign.(formats.Versioned)
	return v
}

// At returns another version of the same store as a set.
func (s *Set) At(v formats.Versioned) *Set { return &Set{foreign: v, opts: s.opts, files: s.files} }

// Rules returns the rules for the URLs of the set; their Base is the folder of the
// set.
func (s *Set) Rules() refs.Rules { return s.opts.Rules }

// Files returns the reader of the files that the set refers to.
func (s *Set) Files() *virtual.Resolver { return s.files }

// Document reads a metadata document, which may lie in a file.
func (s *Set) Document(ctx context.Context, ref *refs.Reference) ([]byte, error) {
	return s.Bytes(ctx, ref, policy.MaxDocument)
}

// Bytes reads the value of a reference. A value of more than most bytes is
// zarr.ErrTooLarge, a missing file ErrUnreachable.
func (s *Set) Bytes(ctx context.Context, e *refs.Reference, most int64) ([]byte, error) {
	if e.Inline() {
		return e.Data, nil
	}
	at, err := s.opts.Rules.Resolve(e.URL)
	if err != nil {
		return nil, err
	}
	v, err := s.opts.Open(ctx, at.Root, at.Path)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, &refs.MissingError{Place: at}
	}
	if err != nil {
		return nil, err
	}
	rng, n := kv.All(), v.Size()
	if !e.Whole() {
		rng, n = kv.Span(e.Offset, e.Length), e.Length
	}
	if n > most {
		return nil, fmt.Errorf("%w: a value of %d bytes", zarr.ErrTooLarge, n)
	}
	b, err := kv.ReadValue(ctx, v, rng)
	if errors.Is(err, kv.ErrRange) {
		err = fmt.Errorf("%w: %d bytes from %d on, of %s, a file of %d", ErrUnreachable, n, e.Offset, redact.URL(at.URL()), v.Size())
	}
	return b, err
}
