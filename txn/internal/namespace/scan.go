package namespace

import (
	"context"
	"iter"
	"strings"
	"unsafe"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Scan yields every key that begins with prefix, in an order that is fast: a
// directory's documents and chunk maps as they are stored. Keys made one after
// the other share memory, so one that is kept keeps about 8 KiB.
func (s *Space) Scan(ctx context.Context, root tree.Root, prefix string) iter.Seq2[Item, error] {
	return s.scan(ctx, root, prefix, false)
}

// ScanDocuments is scan without chunks: it reads no page of a chunk map.
func (s *Space) ScanDocuments(ctx context.Context, root tree.Root, prefix string) iter.Seq2[Item, error] {
	return s.scan(ctx, root, prefix, true)
}

func (s *Space) scan(ctx context.Context, root tree.Root, prefix string, documents bool) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		sc := scanner{s: s, ctx: ctx, yield: yield, documents: documents}
		if _, err := sc.dir("", root, prefix); err != nil {
			yield(Item{}, err)
		}
	}
}

type scanner struct {
	s     *Space
	ctx   context.Context
	yield func(Item, error) bool
	keys  keyArena

	documents bool // and no chunks
}

// dir yields the keys of a directory that go on with rel; more is false when
// the consumer stopped.
func (sc *scanner) dir(path string, root tree.Root, rel string) (more bool, err error) {
	if root.Entries == 0 {
		return true, nil
	}
	if err := CheckPath(sc.ctx, path); err != nil {
		return false, err
	}
	info, err := sc.s.readDir(sc.ctx, root)
	if err != nil {
		return false, err
	}
	for i := range info.forms {
		if sc.documents {
			break
		}
		if more, err := sc.chunks(path, &info.forms[i], rel); err != nil || !more {
			return more, err
		}
	}
	b := listBounds{rel, rel}
	for e, err := range ahead(sc.ctx, sc.s.Tree, sc.s.Tree.Scan(sc.ctx, root, b.entries()), subRoot) {
		if err != nil {
			return false, err
		}
		switch {
		case isReserved(e.Key):
		case isSub(e.Key):
			name := string(e.Key)
			below, ok := b.below(name)
			if !ok {
				continue
			}
			if more, err := sc.dir(path+name, e.Value.Child, below.prefix); err != nil || !more {
				return more, err
			}
		case strings.HasPrefix(string(e.Key), rel):
			key := append(append(sc.keys.reserve(len(path)+len(e.Key)), path...), e.Key...)
			if !sc.yield(Item{sc.keys.keep(key), e.Value}, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}

func (sc *scanner) chunks(path string, f *dirForm, rel string) (more bool, err error) {
	cut, ok := f.cut(rel)
	if !ok {
		return true, nil
	}
	size := len(path) + len(f.Prefix) + f.Rank*(maxDigits+1)
	for from, to := range cut.spans {
		for e, err := range sc.s.Tree.Scan(sc.ctx, f.root, tree.Span{From: from, To: to}) {
			if err != nil {
				return false, err
			}
			key, ok := f.print(append(sc.keys.reserve(size), path...), e.Key)
			if !ok {
				return false, corrupt("chunk map of %q: coordinates %x", path, e.Key)
			}
			if !sc.yield(Item{sc.keys.keep(key), e.Value}, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}

// keyArena makes strings that share memory.
type keyArena struct{ buf []byte }

const keyArenaSize = 8 << 10

// reserve returns an empty slice with room for n bytes.
func (a *keyArena) reserve(n int) []byte {
	if cap(a.buf)-len(a.buf) < n {
		a.buf = make([]byte, 0, max(n, keyArenaSize))
	}
	return a.buf[len(a.buf):]
}

// keep makes a string of what was appended to the slice of the last reserve,
// within its room; its memory is not written again.
func (a *keyArena) keep(b []byte) string {
	a.buf = a.buf[:len(a.buf)+len(b)]
	return unsafe.String(unsafe.SliceData(b), len(b))
}
