package virtual

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
)

// Virtual values are read together: what lies close in one file by one request,
// files of servers many at a time, files of this machine in the order of their
// bytes.
//
//	wants ─▶ references, without asking any file
//	          ├─ native, missing, or cached ──────────▶ as usual
//	          ├─ files of this machine: by file, offset ▶ each found once a run
//	          └─ files of servers ─▶ kv/gather ───────▶ few ranged requests, whose
//	                                                    answers tell the versions

// version is a snapshot or session, whose virtual values can be found without being opened.
type version interface {
	LocateWith(ctx context.Context, key string, r txn.Resolver) (kv.Value, error)
	VirtualBeside(ctx context.Context, key string) (bool, error)
}

// Mention is a virtual value whose file was not opened yet.
type Mention struct {
	kv.Value // nil: it is never read
	Src      tree.Source
	Off, N   uint64
	Optional bool // there is no value where the file is missing
}

// mentions is the resolver that finds them.
type mentions struct{}

func (mentions) Locate(_ context.Context, src tree.Source, offset, length uint64) (kv.Value, error) {
	return &Mention{Src: src, Off: offset, N: length}, nil
}

// locateAtOnce is how many keys one goroutine looks up in a row.
const locateAtOnce = 256

// Gather reads values of a version.
func (r *Resolver) Gather(ctx context.Context, at version, wants []kv.Want, g kv.Gathering) error {
	values := make([]kv.Value, len(wants))
	err := g.Each(ctx, (len(wants)+locateAtOnce-1)/locateAtOnce, func(ctx context.Context, block int) error {
		for i := block * locateAtOnce; i < min((block+1)*locateAtOnce, len(wants)); i++ {
			v, err := at.LocateWith(ctx, wants[i].Key, mentions{})
			if err != nil && !errors.Is(err, kv.ErrNotFound) {
				return fmt.Errorf("get %q: %w", wants[i].Key, err)
			}
			values[i] = v
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.GatherMentions(ctx, values, wants, g)
}

// GatherMentions reads values of which some are mentions.
func (r *Resolver) GatherMentions(ctx context.Context, values []kv.Value, wants []kv.Want, g kv.Gathering) error {
	b := &batch{r: r, values: values, wants: wants, g: &g, numbers: map[*referent]int{}}
	if err := b.sort(ctx); err != nil {
		return err
	}
	err := g.Each(ctx, len(b.ready), func(ctx context.Context, k int) error {
		i := b.ready[k]
		return g.Take(ctx, i, values[i])
	})
	if err == nil && len(b.local) > 0 {
		err = b.readLocal(ctx)
	}
	if err == nil && len(b.remote) > 0 {
		err = b.readRemote(ctx)
	}
	return err
}

// batch is one call of [Resolver.Gather].
type batch struct {
	r      *Resolver
	values []kv.Value // nil where there is none, mentions until they are found
	wants  []kv.Want
	g      *kv.Gathering

	files         []*referent
	numbers       map[*referent]int
	ready         []int // numbers of wants that need no file to be read here
	local, remote []gather.Part

	mu   sync.Mutex
	seen map[int]string // validator of a file that nothing was recorded of
}

// sort tells the wants apart.
func (b *batch) sort(ctx context.Context) error {
	for i, v := range b.values {
		m, ok := v.(*Mention)
		if !ok {
			b.ready = append(b.ready, i)
			continue
		}
		p, err := b.r.referent(m.Src.URL)
		if err != nil {
			return b.failed(i, err)
		}
		known := b.r.unread(p, m)
		if known.id != (kv.ID{}) && b.g.Has != nil && b.g.Has(i, known) {
			b.values[i] = known
			b.ready = append(b.ready, i)
			continue
		}
		file, ok := b.numbers[p]
		if !ok {
			file = len(b.files)
			b.numbers[p] = file
			b.files = append(b.files, p)
		}
		part, ok := partOf(m, &b.wants[i])
		switch part.File, part.Want = file, i; {
		case p.local() && (ok || !m.Src.Whole):
			part.Off = int64(min(m.Off, math.MaxInt64)) // of which nothing is read here
			b.local = append(b.local, part)
			continue
		case ok:
			b.remote = append(b.remote, part)
			continue
		case m.Src.Whole: // its length has to be known
			if known, err = b.r.find(ctx, m.Src, m.Off, m.N, nil); m.Optional && errors.As(err, new(*refs.MissingError)) {
				b.values[i] = nil
				b.ready = append(b.ready, i)
				continue
			}
			if err != nil {
				return b.failed(i, err)
			}
		}
		b.values[i] = known // is looked for when it is read
		b.ready = append(b.ready, i)
	}
	return nil
}

// partOf returns the range of a mention that is wanted first, as a part of its
// file; ok is false if that range is unknown.
func partOf(m *Mention, w *kv.Want) (part gather.Part, ok bool) {
	if m.Src.Whole {
		return gather.Part{N: -1, Limit: w.Limit}, m.Off == 0 && w.Range.IsAll()
	}
	if m.Off > math.MaxInt64 || m.N > math.MaxInt64-m.Off || w.Limit > 0 && m.N > uint64(w.Limit) {
		return part, false
	}
	off, n, err := w.Range.Resolve(int64(m.N))
	if err != nil {
		off, n = 0, int64(m.N) // a range beyond the value is an error when it is read
	}
	return gather.Part{Off: int64(m.Off) + off, N: n}, n > 0 || m.N == 0
}

// unread is a mention as a value, with the identity that it must have.
func (r *Resolver) unread(p *referent, m *Mention) *value {
	v := &value{r: r, p: p, src: m.Src, off: int64(m.Off), n: int64(m.N)}
	if p.local() || m.Src.Whole {
		return v // the file tells, at the cost of a system call, or the length
	}
	seen := m.Src.Validator
	if file := p.found(nil); file != nil {
		if seen = ValidatorOf(file); checkVersion(m.Src.Validator, file, p.place.Mapped) != nil {
			return v
		}
	} else if p.place.Mapped || isCondition(seen) {
		seen = ""
	}
	if seen != "" {
		v.id = partID(p.place.URL(), seen, m.Off, m.N)
	}
	return v
}

func (b *batch) failed(i int, err error) error {
	return fmt.Errorf("get %q: %w", b.wants[i].Key, virtualError(b.values[i].(*Mention).Src, err))
}

// atOnce is how many parts of a file of this machine are a piece of work.
const atOnce = 16

// readLocal hands out parts of files of this machine, in the order of files and
// offsets. They are not read here: a page of the cache of the system is better
// decoded than copied first.
func (b *batch) readLocal(ctx context.Context) error {
	runs := gather.Rows(b.local, atOnce)
	return b.g.Each(ctx, len(runs), func(ctx context.Context, i int) error {
		parts := runs[i]
		file, err := b.r.locate(ctx, b.files[parts[0].File], nil)
		for _, p := range parts {
			if err := b.Take(ctx, p, file, nil, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// Requests is how many requests to servers are under way for one reading or
// check, and remoteMemory how many bytes of their files all readings of a database
// hold, but for one run of chunks alone.
const (
	Requests     = 16
	remoteMemory = 256 << 20
)

func (b *batch) readRemote(ctx context.Context) error {
	gap, most := int64(-1), int64(0)
	for i := range b.remote {
		// Roots may want different gaps; the smallest suits all.
		if i > 0 && b.remote[i].File == b.remote[i-1].File {
			continue
		}
		g, m := b.r.spacing(ctx, b.files[b.remote[i].File])
		if gap < 0 || g < gap {
			gap = g
		}
		most = max(most, m)
	}
	return gather.Read(ctx, b.remote, b, gather.Options{Gap: gap, Most: most, Parallel: Requests, Memory: b.r.memory})
}

func (b *batch) Open(ctx context.Context, file int, rng kv.Range, limit int64, stale kv.Value) (kv.Value, []byte, error) {
	p := b.files[file]
	if known := p.found(stale); known != nil {
		return known, nil, nil
	}
	v, bytes, err := b.r.open(ctx, p, rng, limit)
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	if p.file == nil || p.file == stale {
		p.file = v
	}
	p.mu.Unlock()
	return v, bytes, nil
}

func (b *batch) Take(ctx context.Context, part gather.Part, file kv.Value, bytes []byte, err error) error {
	i := part.Want
	m := b.values[i].(*Mention)
	switch {
	case errors.Is(err, kv.ErrNotFound) && m.Optional:
		return b.g.Take(ctx, i, nil)
	case errors.Is(err, kv.ErrNotFound):
		return b.failed(i, &refs.MissingError{Place: b.files[part.File].place}) // hidden: the key is not
	case err != nil && !errors.Is(err, kv.ErrRange):
		return b.failed(i, err)
	}
	v, err := b.r.part(m.Src, m.Off, m.N, b.files[part.File], file)
	if err == nil {
		err = b.sameVersion(part.File, file)
	}
	if err != nil {
		return b.failed(i, err)
	}
	v.pin() // a read uses a single version of the file
	if len(bytes) == 0 {
		return b.g.Take(ctx, i, v)
	}
	return b.g.Take(ctx, i, kv.Held(v, part.Off-int64(m.Off), bytes))
}

// sameVersion makes sure that one reading sees one version of a file, whether or
// not one was recorded.
func (b *batch) sameVersion(file int, v kv.Value) error {
	now := ValidatorOf(v)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[int]string{}
	}
	was, ok := b.seen[file]
	if !ok {
		b.seen[file] = now
	}
	if ok && was != now {
		return fmt.Errorf("%w while it was read: it was %q and is %q", kv.ErrChanged, was, now)
	}
	return nil
}
