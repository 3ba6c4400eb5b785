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
	"github.com/zarrdb/zarrdb/kv/redact"
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
	// recall returns what was allowed earlier. It is called until it succeeds.
	recall func() (Follow, error)
	base   string // the folder below which everything is followed, or ""

	mu    sync.Mutex
	rules *refs.Rules          // nil before recall has succeeded
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
	// asking is full while somebody asks for the file. Others wait for the answer,
	// each as long as its context lasts.
	asking chan struct{}

	mu   sync.Mutex
	file kv.Value // located; nil for files of this machine, which are asked each time
}

// anew is r without what it found out of files.
func (r *resolver) anew() *resolver {
	return &resolver{env: r.env, folder: r.folder, memory: r.memory, recall: r.recall, base: r.base}
}

func (p *referent) local() bool { return strings.HasPrefix(p.place.Root, "file://") }

// follows returns the rules, and the referent of a URL if it is known.
func (r *resolver) follows(url string) (*refs.Rules, *referent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rules == nil {
		follow := r.env.follow
		if r.recall != nil {
			more, err := r.recall()
			if err != nil {
				return nil, nil, err
			}
			follow = follow.with(more)
		}
		rules := follow.rules(r.base)
		r.rules = &rules
	}
	return r.rules, r.known[url], nil
}

// referent applies the rules to a URL.
func (r *resolver) referent(url string) (*referent, error) {
	rules, p, err := r.follows(url)
	if err != nil || p != nil {
		return p, err
	}
	place, err := rules.Resolve(url)
	if err != nil {
		return nil, err
	}
	p = &referent{place: place, mapped: place.Mapped, asking: make(chan struct{}, 1)}
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
	if file := p.found(stale); file != nil {
		return file, nil
	}
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if file := p.found(stale); file != nil {
		return file, nil
	}
	v, _, err := r.open(ctx, p, kv.Span(0, 0), 0)
	if err == nil {
		p.mu.Lock()
		p.file = v
		p.mu.Unlock()
	}
	return v, err
}

// found is the file as it was located last, nil if that is stale.
func (p *referent) found(stale kv.Value) kv.Value {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == stale {
		return nil
	}
	return p.file
}

// forget has a file looked for anew, if it is the one that is known.
func (r *resolver) forget(p *referent, file kv.Value) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == file {
		p.file = nil
	}
}

// open asks for a file, and for a part of it in the same request if that is
// possible. See [kv.LocateRange].
func (r *resolver) open(ctx context.Context, p *referent, rng kv.Range, limit int64) (kv.Value, []byte, error) {
	if p.place.Root == insideBase && r.folder != nil {
		return kv.LocateRange(ctx, r.folder, p.place.Path, rng, limit)
	}
	return r.env.reference(ctx, p.place.Root, p.place.Path, rng, limit)
}

// spacing says how the parts of a file are best read.
func (r *resolver) spacing(ctx context.Context, p *referent) (gap, most int64) {
	if p.place.Root == insideBase && r.folder != nil {
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
	return fmt.Errorf("virtual value in %s: %w", redact.URL(src.URL), err)
}

func (r *resolver) find(ctx context.Context, src tree.Source, offset, length uint64, stale kv.Value) (*virtual, error) {
	p, err := r.referent(src.URL)
	if err != nil {
		return nil, err
	}
	file, err := r.locate(ctx, p, stale)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, errNoFile // hidden: the key is not
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

// virtual is a part of a file. It stays of the version that was seen when it was
// located, as soon as anybody knows something of that: its identity, under which
// others keep what they read, or bytes of it. A shard's index is of one version
// and leads astray in another. Before that any version will do, if none was
// recorded.
type virtual struct {
	r      *resolver
	p      *referent
	src    tree.Source
	file   kv.Value // nil if it was not looked for
	off, n int64
	id     kv.ID

	state atomic.Int32
	// next is what stands in for it: what was found of a file that was not looked
	// for, or another version if the state is stateMoved.
	next atomic.Pointer[virtual]
}

const (
	stateFree   = iota // nobody knows anything of its version
	statePinned        // somebody does
	stateMoved         // it is of another version
)

var _ kv.Validator = (*virtual)(nil)

// current is the part that is read, v if it was not looked for yet.
func (v *virtual) current() *virtual {
	if next := v.next.Load(); next != nil && (v.file == nil || v.state.Load() == stateMoved) {
		return next.current()
	}
	return v
}

// pin makes sure that v stays of its version, and reports whether it is of it.
func (v *virtual) pin() bool {
	return v.state.CompareAndSwap(stateFree, statePinned) || v.state.Load() == statePinned
}

// Size implements [kv.Value].
func (v *virtual) Size() int64 { return v.n }

// ID implements [kv.Value]: that of the bytes in the version of the file that
// was seen, zero if nothing tells versions.
func (v *virtual) ID() kv.ID {
	for {
		at := v.current()
		if at.id == (kv.ID{}) || at.pin() {
			return at.id
		}
	}
}

// Validator implements [kv.Validator]: that of the file.
func (v *virtual) Validator() string {
	at := v.current()
	if at.file == nil {
		return at.src.Validator
	}
	return validatorOf(at.file)
}

// Spacing implements [kv.Spacer].
func (v *virtual) Spacing() (gap, most int64) {
	if at := v.current(); at.file != nil {
		return kv.Spacing(at.file)
	}
	return v.r.spacing(context.Background(), v.p) // opens a view, and asks nobody
}

// found is the part that is read, which is looked for if need be.
func (v *virtual) found(ctx context.Context) (*virtual, error) {
	at := v.current()
	if at.file != nil {
		return at, nil
	}
	found, err := v.r.find(ctx, v.src, uint64(v.off), uint64(v.n), nil)
	if err != nil {
		return nil, virtualError(v.src, err)
	}
	if v.id != (kv.ID{}) && found.id != v.id {
		return nil, virtualError(v.src, fmt.Errorf("%w since its identity was told", kv.ErrChanged))
	}
	if v.state.Load() == statePinned {
		found.pin()
	}
	v.next.CompareAndSwap(nil, found)
	return v.current(), nil
}

// moved is the part in another version of the file than was seen when it was
// located, if there may be one.
func (v *virtual) moved(ctx context.Context, changed error) (*virtual, error) {
	if v.state.Load() == statePinned {
		v.r.forget(v.p, v.file)
		return nil, changed
	}
	again, err := v.r.find(ctx, v.src, uint64(v.off), uint64(v.n), v.file)
	if err != nil {
		return nil, err
	}
	if again.n != v.n { // a whole file, whose size was told
		return nil, changed
	}
	again.pin() // this is as often as it is tried
	v.next.CompareAndSwap(nil, again)
	if !v.state.CompareAndSwap(stateFree, stateMoved) && v.state.Load() == statePinned {
		return nil, changed
	}
	return v.next.Load(), nil
}

// errMoved is for bytes of a version that others do not see any more.
var errMoved = fmt.Errorf("%w while it was read", kv.ErrChanged)

// View implements [kv.Value].
func (v *virtual) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(v.n)
	if err != nil {
		return err
	}
	at, err := v.found(ctx)
	if err != nil {
		return err
	}
	called := false
	err = at.file.View(ctx, kv.Span(at.off+off, n), func(b []byte) error {
		if !at.pin() {
			return errMoved
		}
		called = true
		return fn(b)
	})
	if !called && errors.Is(err, kv.ErrChanged) {
		var again *virtual
		if again, err = at.moved(ctx, err); err == nil {
			return again.View(ctx, rng, fn)
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
		err = errNoFile
	}
	return virtualError(v.src, err)
}

var _ kv.RangesViewer = (*virtual)(nil)

// ViewsRanges implements [kv.RangesViewer]: parts of files of servers do.
func (v *virtual) ViewsRanges() bool {
	if at := v.current(); at.file != nil {
		return kv.ViewsRanges(at.file)
	}
	return !v.p.local()
}

// ViewRanges implements [kv.RangesViewer].
func (v *virtual) ViewRanges(ctx context.Context, parts []kv.Range, fn func(i int, b []byte) error) error {
	at, err := v.found(ctx)
	if err != nil {
		return err
	}
	within, err := kv.Within(parts, at.off, at.n)
	if err != nil {
		return err
	}
	var called, callers atomic.Bool
	err = kv.ViewRanges(ctx, at.file, within, func(i int, b []byte) error {
		if !at.pin() {
			return errMoved
		}
		called.Store(true)
		err := fn(i, b)
		if err != nil {
			callers.Store(true)
		}
		return err
	})
	if !called.Load() && errors.Is(err, kv.ErrChanged) {
		// All parts are read again: they are of one version.
		var again *virtual
		if again, err = at.moved(ctx, err); err == nil {
			return again.ViewRanges(ctx, parts, fn)
		}
	}
	return v.failed(err, callers.Load())
}
