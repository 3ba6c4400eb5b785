package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

// surveyPieces opens every node of all pieces. l are the labels of a new dimension, or nil.
func surveyPieces(ctx context.Context, pieces []Piece, o AppendOptions, l *labels) ([]*appendPiece, error) {
	all := make([]*appendPiece, len(pieces))
	var left atomic.Int64
	left.Store(maxKept)
	var mu sync.Mutex
	known := map[[sha256.Size]byte]*zarr.Meta{} // thousands of pieces mostly have equal metadata
	err := gather.Each(ctx, piecesAtOnce, len(pieces), func(ctx context.Context, i int) error {
		kept := &keptRefs{left: &left}
		a := &appendPiece{Piece: pieces[i], label: zurl.Redact(pieces[i].Name), arrays: map[string]*appendArray{}}
		found, registry, err := surveyPiece(ctx, pieces[i], o.Link, kept)
		if err == nil && l != nil {
			found, err = l.stack(o.Dim, found, l.elems[i], registry)
		}
		if err != nil {
			return a.failed(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, n := range found {
			n.piece = a
			if n.sum, err = metaSum(n.meta); err != nil {
				return a.failed(fmt.Errorf("/%s: %w", n.path, err))
			}
			if known[n.sum] == nil {
				known[n.sum] = n.meta
			}
			n.meta = known[n.sum]
		}
		if a.found, all[i] = found, a; o.Link && kept.left != nil {
			a.kept = kept
		}
		return nil
	})
	return all, err
}

// surveyPiece opens every node of a piece. It keeps the references of a JSON set that is
// linked, if they are not too many. It returns the codecs of the piece, too.
func surveyPiece(ctx context.Context, p Piece, link bool, keep *keptRefs) (found []*appendArray, registry *codecs.Registry, err error) {
	src, err := p.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	from := selection{src: src, open: src.open}
	if link {
		from.at.View, err = src.setDocuments(ctx, keep)
	} else {
		from, err = src.selection(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	for n, err := range from.nodes(ctx) {
		if err != nil {
			return nil, nil, err
		}
		if n.Version() == zarr.Draft3 { // its groups cannot be compared
			return nil, nil, fmt.Errorf("/%s: %w", n.Path(), errJoin)
		}
		is := &appendArray{path: names.Relative(n.Path(), from.at.Path), meta: n.Meta()}
		if a, ok := n.Array(); ok {
			is.dims = a.DimensionNames()
		}
		found = append(found, is)
	}
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("%w: there is no array and no group", ErrFormat)
	}
	return found, from.open.Registry, nil
}

// failed adds the name of the piece to an error.
func (p *appendPiece) failed(err error) error {
	if err != nil {
		err = fmt.Errorf("append %s: %w", p.label, err)
	}
	return err
}

// maxDocuments bounds the metadata of one reference set in memory.
const maxDocuments = 128 << 20

// keptRefs are the entries of a JSON set that was read for its metadata, so that
// it needs not be read again.
type keptRefs struct {
	list []refs.Entry
	left *atomic.Int64 // bytes that the lists of all pieces may still take; nil once they took more
}

// maxKept bounds the references that all pieces of a plan keep: about a quarter
// of a million. Tests make it small.
var maxKept int64 = 32 << 20

// keep takes an entry. The URL does not count: most entries share it with others.
func (k *keptRefs) keep(e *refs.Entry) {
	if k.left == nil {
		return
	}
	n := int64(len(e.Key)+len(e.Data)) + int64(unsafe.Sizeof(*e))
	if k.left.Add(-n) < 0 {
		*k = keptRefs{}
		return
	}
	k.list = append(k.list, *e)
}

// entries yields the kept entries.
func (k *keptRefs) entries(context.Context) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		for _, e := range k.list {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// setDocuments reads the metadata documents of a reference set, in one pass over
// a JSON set, and over other sets if their references are kept, too.
func (s *Source) setDocuments(ctx context.Context, keep *keptRefs) (*kv.Mem, error) {
	set, prefix, err := s.env.ReferenceSet(ctx, s.at)
	if err != nil {
		return nil, err
	}
	entries, err := set.Documents(ctx)
	if err != nil {
		return nil, err
	}
	if entries == nil || set.Foreign() && keep.left.Load() > 0 {
		entries = set.Entries(ctx)
	} else {
		*keep = keptRefs{}
	}
	docs, size := kv.NewMem(), int64(0)
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		keep.keep(&e)
		key, ok := strings.CutPrefix(e.Key, prefix)
		if !ok || !names.IsDocument(key) {
			continue
		}
		b, err := set.Document(ctx, &e.Reference)
		if err != nil {
			return nil, keyFailed(e.Key, err)
		}
		if size += int64(len(b)); size > maxDocuments {
			return nil, fmt.Errorf("%w: more than %d MiB of metadata", zarr.ErrTooLarge, maxDocuments>>20)
		}
		if err := docs.Set(ctx, strings.Clone(key), b); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// heldRefs is a view of the references whose values an append reads, and does not only link.
// All references are held before the first read.
type heldRefs struct {
	set  *source.Set
	refs map[string]refs.Reference
	size int64
	url  string // that came last
}

var _ kv.Reader = (*heldRefs)(nil)

// maxHeld bounds the references in a heldRefs, and maxHeldValue the size of a value that they name.
const (
	maxHeld      = 64 << 20
	maxHeldValue = 128 << 20
)

func (h *heldRefs) hold(key string, r refs.Reference) error {
	if r.URL != h.url {
		h.url = strings.Clone(r.URL) // it is a part of a larger string
	}
	r.URL = h.url
	h.refs[strings.Clone(key)] = r
	if h.size += int64(len(key)+len(r.Data)) + 160; h.size > maxHeld {
		return fmt.Errorf("%w: more than %d MiB of references have to be read to join arrays", zarr.ErrTooLarge, maxHeld>>20)
	}
	return nil
}

func (h *heldRefs) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	r, ok := h.refs[key]
	if !ok {
		return nil, kv.ErrNotFound
	}
	b, err := h.set.Bytes(ctx, &r, maxHeldValue)
	if err != nil {
		return nil, err
	}
	return kv.ReadValue(ctx, kv.Bytes(b), rng)
}

// maxFetched bounds the bytes that are fetched of one piece, and maxFetchedAlone
// one of the values.
const (
	maxFetched      = 4 << 20
	maxFetchedAlone = 1 << 20
)

// fetch reads short values that are in files, at the least cost, so that reading
// the arrays sends no request for each of them. A value that cannot be read stays a
// reference, and reading it later gives the error.
func (h *heldRefs) fetch(ctx context.Context) error {
	var values []kv.Value
	var wants []kv.Want
	left := int64(maxFetched)
	for _, key := range slices.Sorted(maps.Keys(h.refs)) {
		r := h.refs[key]
		n := r.Length
		if r.Whole() {
			n = maxFetchedAlone
		}
		if r.Inline() || n > min(left, maxFetchedAlone) {
			continue
		}
		left -= n
		values = append(values, &virtual.Mention{Src: tree.Source{URL: r.URL, Whole: r.Whole()}, Off: uint64(r.Offset), N: uint64(r.Length)})
		wants = append(wants, kv.Want{Key: key, Limit: maxFetchedAlone})
	}
	var mu sync.Mutex
	err := h.set.Files().GatherMentions(ctx, values, wants, kv.Gathering{Take: func(ctx context.Context, i int, v kv.Value) error {
		if v == nil || v.Size() > maxFetchedAlone {
			return nil
		}
		b, err := kv.ReadValue(ctx, v, kv.All())
		if err == nil {
			mu.Lock()
			h.refs[wants[i].Key] = refs.Reference{Data: b}
			mu.Unlock()
		}
		return err
	}})
	if ctx.Err() != nil {
		return err
	}
	return nil
}

// array finds the array that a key of the piece belongs to, and its name in the
// piece.
func (p *appendPiece) array(last *appendArray, key string) (a *appendArray, name string) {
	if last != nil {
		if name, ok := strings.CutPrefix(key, names.Dir(last.path)); ok && last.path != "" {
			return last, name
		}
	}
	for at := len(key); ; {
		at = strings.LastIndexByte(key[:at], '/')
		if a := p.arrays[key[:max(at, 0)]]; a != nil {
			return a, key[at+1:]
		}
		if at < 0 {
			return nil, ""
		}
	}
}

// renumberer gives chunks other numbers. Keys made one after the other share
// memory, so one that is kept keeps about 8 KiB.
type renumberer struct {
	coords []int64
	text   []byte
}

// maxChunkKey bounds the name of a chunk: a prefix, numbers and a separator.
const maxChunkKey = 2 + 20*zarr.MaxRank

// key gives the name of a chunk in a piece the number that it has in the joined
// array. put is false for a chunk whose elements are encoded again, and for a chunk outside of
// the array. chunk is false for the name of anything else.
func (r *renumberer) key(a *appendArray, name string) (key string, put, chunk bool) {
	m := cmp.Or(a.own, a.meta)
	if r.coords, chunk = m.Keys.AppendCoords(r.coords[:0], name); !chunk {
		return "", false, false
	}
	for d, n := range m.Shape {
		if r.coords[d] >= m.Grid.Count(d, n) {
			return "", false, true
		}
	}
	if a.own != nil {
		r.coords = slices.Insert(r.coords, 0, 0)
	}
	axis := a.base.axis
	put = !a.rewrite || a.meta.Grid.Start(axis, r.coords[axis]) < a.kept
	r.coords[axis] += a.first
	if cap(r.text)-len(r.text) < len(a.path)+1+maxChunkKey {
		r.text = make([]byte, 0, 8<<10+len(a.path))
	}
	start := len(r.text)
	if a.path != "" {
		r.text = append(append(r.text, a.path...), '/')
	}
	r.text = a.base.meta.Keys.Append(r.text, r.coords)
	return unsafe.String(&r.text[start], len(r.text)-start), put, true
}

// maxRewrite is how many bytes of elements a linking append writes anew for an
// array of a piece.
const maxRewrite = 16 << 20

// metaSize is the number of bytes of all elements, at most 2^63-1.
func metaSize(m *zarr.Meta) int64 {
	size := uint64(max(m.Type.Size(), 1))
	for _, n := range m.Shape {
		hi, lo := bits.Mul64(size, uint64(n))
		if size = lo; hi != 0 || lo > 1<<63-1 {
			size = 1<<63 - 1
		}
	}
	return int64(size)
}
