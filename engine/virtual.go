package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
)

// resolver reads the virtual values of a database: parts of files elsewhere.
//
//	tree.Source ─▶ rules: may it be followed, and where to ─▶ kv.Value of the file
//	            ─▶ is it the version that was imported     ─▶ a part of it
//
// Nothing that a database holds allows anything. What may be followed is what
// its opener allows, and what this machine remembers that the user allowed when
// the references were imported (docs/design/virtual.md).
type resolver struct {
	env *Env
	// folder, if not nil, is what lies in the folder [insideBase].
	folder kv.Reader
	// memory bounds what is held of files of servers.
	memory *gather.Memory
	// recall returns what was allowed earlier. It is called once.
	recall func() (Follow, error)
	base   string // the folder below which everything is followed, or ""

	once    sync.Once
	rules   refs.Rules
	ruleErr error

	mu    sync.Mutex
	known map[string]*referent // by URL
}

var _ txn.Resolver = (*resolver)(nil)

// maxReferents bounds the files that stay resolved.
const maxReferents = 1 << 14

// referent is where a URL leads.
type referent struct {
	place refs.Place
	// mapped says that the bytes are not where the URL says: the versions of
	// the two places have nothing to do with each other, only their sizes.
	mapped bool

	mu   sync.Mutex
	file kv.Value // located; nil for files of this machine, which are asked each time
}

func (p *referent) local() bool { return strings.HasPrefix(p.place.Root, "file://") }

// referent applies the rules to a URL.
func (r *resolver) referent(url string) (*referent, error) {
	r.once.Do(func() {
		follow := r.env.follow
		if r.recall != nil {
			var more Follow
			if more, r.ruleErr = r.recall(); r.ruleErr == nil {
				follow = follow.with(more)
			}
		}
		r.rules = follow.rules(r.base)
	})
	if r.ruleErr != nil {
		return nil, r.ruleErr
	}
	r.mu.Lock()
	p := r.known[url]
	r.mu.Unlock()
	if p != nil {
		return p, nil
	}
	place, err := r.rules.Resolve(url)
	if err != nil {
		return nil, err
	}
	p = &referent{place: place, mapped: len(r.rules.Map) > 0 && place.URL() != url}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.known[url]; old != nil {
		return old, nil
	}
	if r.known == nil {
		r.known = map[string]*referent{}
	}
	if len(r.known) >= maxReferents {
		for other := range r.known { // any one
			delete(r.known, other)
			break
		}
	}
	r.known[url] = p
	return p, nil
}

// locate finds the file of a URL. Of a server, it is asked once and again after
// stale; each read says by itself if the file is another one.
func (r *resolver) locate(ctx context.Context, p *referent, stale kv.Value) (kv.Value, error) {
	if p.local() {
		v, _, err := r.open(ctx, p, kv.Span(0, 0), 0)
		return v, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil && p.file != stale {
		return p.file, nil
	}
	v, _, err := r.open(ctx, p, kv.Span(0, 0), 0)
	if err == nil {
		p.file = v
	}
	return v, err
}

// open asks for a file, and for a part of it in the same request if that is
// possible. See [kv.LocateRange].
func (r *resolver) open(ctx context.Context, p *referent, rng kv.Range, limit int64) (kv.Value, []byte, error) {
	if p.place.Root == insideBase {
		return kv.LocateRange(ctx, r.folder, p.place.Path, rng, limit)
	}
	return r.env.reference(ctx, p.place.Root, p.place.Path, rng, limit)
}

// spacing says how the parts of a file are best read.
func (r *resolver) spacing(ctx context.Context, p *referent) (gap, most int64) {
	if p.place.Root == insideBase {
		return kv.Spacing(r.folder)
	}
	view, err := r.env.below(ctx, p.place.Root)
	if err != nil {
		return 0, 0 // comes again when the file is opened
	}
	return kv.Spacing(view)
}

// Locate implements [txn.Resolver].
func (r *resolver) Locate(ctx context.Context, src tree.Source, offset, length uint64) (kv.Value, error) {
	v, err := r.find(ctx, src, offset, length, nil)
	if err != nil {
		return nil, virtualError(src, err)
	}
	return v, nil
}

func virtualError(src tree.Source, err error) error {
	if errors.Is(err, ErrForbidden) {
		return fmt.Errorf("virtual value: %w", err) // has the URL
	}
	return fmt.Errorf("virtual value in %s: %w", src.URL, err)
}

func (r *resolver) find(ctx context.Context, src tree.Source, offset, length uint64, stale kv.Value) (*virtual, error) {
	p, err := r.referent(src.URL)
	if err != nil {
		return nil, err
	}
	file, err := r.locate(ctx, p, stale)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: the file is missing", ErrUnreachable) // hidden: the key is not
	}
	if err != nil {
		return nil, err
	}
	return r.part(src, offset, length, p, file)
}

// part is a part of a file that was found.
func (r *resolver) part(src tree.Source, offset, length uint64, p *referent, file kv.Value) (*virtual, error) {
	seen := validatorOf(file)
	if err := checkVersion(src.Validator, seen, p.mapped); err != nil {
		return nil, err
	}
	size := uint64(max(file.Size(), 0))
	if src.Whole {
		length = size - min(offset, size)
	}
	if offset > size || length > size-offset {
		return nil, fmt.Errorf("%w: %d bytes from %d on, of a file of %d", ErrUnreachable, length, offset, size)
	}
	v := &virtual{r: r, p: p, src: src, file: file, off: int64(offset), n: int64(length)}
	if seen != "" {
		v.id = partID(p.place.URL(), seen, offset, length)
	}
	return v, nil
}

// partID identifies a part of a version of a file.
func partID(url, validator string, offset, length uint64) kv.ID {
	b := append(make([]byte, 0, 256), "virtual"...)
	b = binary.AppendUvarint(b, uint64(len(url)))
	b = append(b, url...)
	b = binary.AppendUvarint(b, uint64(len(validator)))
	b = append(b, validator...)
	b = binary.AppendUvarint(b, offset)
	b = binary.AppendUvarint(b, length)
	return kv.ID(digest.Of(b))
}

func validatorOf(v kv.Value) string {
	if x, ok := v.(kv.Validator); ok {
		return x.Validator()
	}
	return ""
}

// checkVersion compares what was seen of a file when it was imported with what
// is seen now. Both are texts of [kv.Validator], or empty.
func checkVersion(was, now string, mapped bool) error {
	switch {
	case was == "" || was == now:
		return nil
	case now == "":
		return fmt.Errorf("%w: it was %q, and now nothing tells its version", kv.ErrChanged, was)
	case mapped:
		a, b := sizeIn(was), sizeIn(now)
		if a == b || a == "" || b == "" {
			return nil
		}
	}
	return fmt.Errorf("%w and since it was imported: it was %q and is %q", kv.ErrChanged, was, now)
}

// sizeIn is the size that a validator ends in, "" if it has none.
func sizeIn(validator string) string {
	i := strings.LastIndex(validator, "size:")
	if i < 0 {
		return ""
	}
	return validator[i:]
}

// virtual is a part of a file.
type virtual struct {
	r      *resolver
	p      *referent
	src    tree.Source
	file   kv.Value // nil if it was not looked for
	off, n int64
	id     kv.ID
}

var _ kv.Validator = (*virtual)(nil)

// Size implements [kv.Value].
func (v *virtual) Size() int64 { return v.n }

// ID implements [kv.Value]: that of the bytes in the version of the file that
// was seen, zero if nothing tells versions.
func (v *virtual) ID() kv.ID { return v.id }

// Validator implements [kv.Validator]: that of the file.
func (v *virtual) Validator() string {
	if v.file == nil {
		return v.src.Validator
	}
	return validatorOf(v.file)
}

// Spacing implements [kv.Spacer].
func (v *virtual) Spacing() (gap, most int64) {
	if v.file == nil {
		return v.r.spacing(context.Background(), v.p) // opens a view, and asks nobody
	}
	return kv.Spacing(v.file)
}

// View implements [kv.Value].
func (v *virtual) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(v.n)
	if err != nil {
		return err
	}
	if v.file == nil {
		found, err := v.r.find(ctx, v.src, uint64(v.off), uint64(v.n), nil)
		if err != nil {
			return virtualError(v.src, err)
		}
		return found.View(ctx, rng, fn)
	}
	called := false
	once := func(b []byte) error {
		called = true
		return fn(b)
	}
	err = v.file.View(ctx, kv.Span(v.off+off, n), once)
	if !called && errors.Is(err, kv.ErrChanged) {
		// Another version than was seen when it was located. If none was
		// recorded at import, any will do, as long as one read sees one.
		var again *virtual
		if again, err = v.r.find(ctx, v.src, uint64(v.off), uint64(v.n), v.file); err == nil {
			err = again.file.View(ctx, kv.Span(v.off+off, n), once)
		}
	}
	return v.failed(err, called)
}

// failed is an error of reading the file, unless it is of the caller's.
func (v *virtual) failed(err error, callers bool) error {
	if err == nil || callers {
		return err
	}
	if errors.Is(err, kv.ErrNotFound) {
		err = fmt.Errorf("%w: the file is missing", ErrUnreachable)
	}
	return virtualError(v.src, err)
}

var _ kv.RangesViewer = (*virtual)(nil)

// ViewsRanges implements [kv.RangesViewer]: parts of files of servers do.
func (v *virtual) ViewsRanges() bool {
	if v.file == nil {
		return !v.p.local()
	}
	return kv.ViewsRanges(v.file)
}

// ViewRanges implements [kv.RangesViewer].
func (v *virtual) ViewRanges(ctx context.Context, parts []kv.Range, fn func(i int, b []byte) error) error {
	if v.file == nil {
		found, err := v.r.find(ctx, v.src, uint64(v.off), uint64(v.n), nil)
		if err != nil {
			return virtualError(v.src, err)
		}
		return found.ViewRanges(ctx, parts, fn)
	}
	parts, err := kv.Within(parts, v.off, v.n)
	if err != nil {
		return err
	}
	var called, callers atomic.Bool
	noting := func(i int, b []byte) error {
		called.Store(true)
		err := fn(i, b)
		if err != nil {
			callers.Store(true)
		}
		return err
	}
	err = kv.ViewRanges(ctx, v.file, parts, noting)
	if !called.Load() && errors.Is(err, kv.ErrChanged) {
		// As in View. All parts are read again: they are of one version.
		var again *virtual
		if again, err = v.r.find(ctx, v.src, uint64(v.off), uint64(v.n), v.file); err == nil {
			err = kv.ViewRanges(ctx, again.file, parts, noting)
		}
	}
	return v.failed(err, callers.Load())
}
