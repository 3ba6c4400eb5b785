package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"strings"
	"unsafe"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

// foundNode is a node of a piece, by its path in it.
type foundNode struct {
	path string
	meta *zarr.Meta
}

// surveyPiece opens every node of a piece. Of a JSON set that is linked it keeps
// the references, if they are not too many.
func surveyPiece(ctx context.Context, p Piece, link bool, keep *keptRefs) (found []foundNode, err error) {
	src, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	view, path, o := kv.Reader(nil), "", *src.open
	if link {
		if view, err = src.setDocuments(ctx, keep); err != nil {
			return nil, err
		}
	} else {
		sv, err := src.Survey(ctx)
		if err != nil {
			return nil, err
		}
		at, err := src.dataset(ctx)
		if err != nil {
			return nil, err
		}
		_, told := sv.view.(*candidates)
		view, path, o.Version, o.Consolidated = at.View, at.Path, at.Version, told
	}
	for n, err := range zarr.Walk(ctx, view, path, &o) {
		if err != nil {
			return nil, err
		}
		found = append(found, foundNode{relative(n.Path(), path), n.Meta()})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: there is no array and no group", ErrFormat)
	}
	return found, nil
}

// maxDocuments bounds the metadata of one reference set in memory.
const maxDocuments = 128 << 20

// keptRefs are the entries of a JSON set that was read for its metadata, so that
// it needs not be read again.
type keptRefs struct {
	list []refs.Entry
	left int64 // bytes that they may take
	full bool  // there were more
}

// maxKept bounds the references that all pieces of a plan keep: about a quarter
// of a million. Tests make it small.
var maxKept int64 = 32 << 20

// keep takes an entry, whose URL mostly is that of others too.
func (k *keptRefs) keep(e *refs.Entry) {
	if k.full {
		return
	}
	if k.left -= int64(len(e.Key)+len(e.Data)) + int64(unsafe.Sizeof(*e)); k.left < 0 {
		k.list, k.full = nil, true
		return
	}
	k.list = append(k.list, *e)
}

// entries yields what was kept.
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
// a JSON set and from the index of a parquet set.
func (s *Source) setDocuments(ctx context.Context, keep *keptRefs) (*kv.Mem, error) {
	set, prefix, err := s.referenceSet(ctx)
	if err != nil {
		return nil, err
	}
	docs, size := kv.NewMem(), int64(0)
	take := func(e *refs.Entry) error {
		key, ok := strings.CutPrefix(e.Key, prefix)
		if !ok || !isDocument(key) {
			return nil
		}
		b, err := set.document(ctx, e)
		if err != nil {
			return keyFailed(e.Key, err)
		}
		if size += int64(len(b)); size > maxDocuments {
			return fmt.Errorf("%w: more than %d MiB of metadata", zarr.ErrTooLarge, maxDocuments>>20)
		}
		return docs.Set(ctx, strings.Clone(key), b)
	}
	if set.dir != nil {
		keep.full = true
		p, err := refs.OpenParquetSet(ctx, set.dir, &set.opts.Read)
		if err != nil {
			return nil, err
		}
		for e := range p.Documents() {
			if err := take(&e); err != nil {
				return nil, err
			}
		}
		return docs, nil
	}
	for e, err := range set.entries(ctx) {
		if err == nil {
			keep.keep(&e)
			err = take(&e)
		}
		if err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// heldRefs is the part of a reference set that is read and not only linked, as a
// view. It is filled before it is read.
type heldRefs struct {
	set  *refSet
	refs map[string]refs.Reference
	size int64
	url  string // that came last
}

var _ kv.Reader = (*heldRefs)(nil)

// maxHeld bounds what heldRefs holds; maxHeldValue one value that it reads.
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

// Get implements [kv.Reader].
func (h *heldRefs) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	r, ok := h.refs[key]
	if !ok {
		return nil, kv.ErrNotFound
	}
	b, err := h.set.bytes(ctx, &r, maxHeldValue)
	if err != nil {
		return nil, err
	}
	return kv.ReadValue(ctx, kv.Bytes(b), rng)
}

// array finds the array that a key of the piece belongs to, and what it is
// called there.
func (p *appendPiece) array(last *appendArray, key string) (a *appendArray, name string) {
	if last != nil {
		if name, ok := strings.CutPrefix(key, dir(last.path)); ok && last.path != "" {
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

// maxChunkKey bounds the name of a chunk: a prefix, numbers and what separates
// them.
const maxChunkKey = 2 + 20*zarr.MaxRank

// key gives the name of a chunk in a piece the number that it has in the joined
// array; ok is false for what is no chunk of the array.
func (r *renumberer) key(a *appendArray, name string) (key string, ok bool) {
	r.coords, ok = a.meta.Keys.AppendCoords(r.coords[:0], name)
	if !ok {
		return "", false
	}
	for d, n := range a.meta.Shape {
		if r.coords[d] >= a.meta.Grid.Count(d, n) {
			return "", false
		}
	}
	r.coords[a.base.axis] += a.start / a.base.chunk
	if cap(r.text)-len(r.text) < len(a.path)+1+maxChunkKey {
		r.text = make([]byte, 0, 8<<10+len(a.path))
	}
	start := len(r.text)
	if a.path != "" {
		r.text = append(append(r.text, a.path...), '/')
	}
	r.text = a.base.meta.Keys.Append(r.text, r.coords)
	return unsafe.String(&r.text[start], len(r.text)-start), true
}

// maxRewrite is how many bytes of elements a linking append writes anew for an
// array of a piece.
const maxRewrite = 16 << 20

// size is the number of bytes of all elements, at most 2^63-1.
func (a *appendArray) size() int64 {
	size := uint64(max(a.meta.Type.Size(), 1))
	for _, n := range a.meta.Shape {
		hi, lo := bits.Mul64(size, uint64(n))
		if size = lo; hi != 0 || lo > 1<<63-1 {
			size = 1<<63 - 1
		}
	}
	return int64(size)
}
