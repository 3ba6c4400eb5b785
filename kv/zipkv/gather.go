package zipkv

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
)

// Members of an archive on a server are read together, each with its local
// header, which has the offset of its bytes:
//
//	archive   │ head │ bytes of "a" │ head │ bytes of "b" │ … │ head │ bytes of "z" │
//	requests  └─────────────── one, if close ─────────────┘   └──────── one ────────┘

const (
	// gatherRequests is the number of simultaneous requests of one Gather.
	gatherRequests = 16
	// gatherMemory bounds the bytes that all Gathers of an archive hold; a
	// single run of members may be longer.
	gatherMemory = 256 << 20
	// gatherMost is the longest member that is read ahead. Longer ones are read
	// in pieces when they are used.
	gatherMost = 64 << 20
	// headSlack is the expected upper bound of the extra field of a local
	// header. If it is longer, a second request reads the end of the member.
	headSlack = 64
)

// Spacing implements [kv.Spacer]: the spacing of the archive.
func (r *Reader) Spacing() (gap, most int64) { return kv.Spacing(r.archive) }

// Gathers implements [kv.Gatherer]: true if the archive is a [kv.Spacer].
func (r *Reader) Gathers(context.Context, string) bool {
	_, far := r.archive.(kv.Spacer)
	return far
}

// Gather implements [kv.Gatherer].
func (r *Reader) Gather(ctx context.Context, wants []kv.Want, g kv.Gathering) error {
	if !r.Gathers(ctx, "") {
		return errors.ErrUnsupported
	}
	b := &gathering{r: r, wants: wants, g: &g, members: make([]*member, len(wants)), values: make([]kv.Value, len(wants))}
	if err := b.sort(ctx); err != nil {
		return err
	}
	err := g.Each(ctx, len(b.ready), func(ctx context.Context, k int) error {
		i := b.ready[k]
		return g.Take(ctx, i, b.values[i])
	})
	if err != nil {
		return err
	}
	gap, most := r.Spacing()
	o := gather.Options{Gap: gap, Most: most, Parallel: gatherRequests, Memory: r.memory()}
	if err := gather.Read(ctx, b.heads, headGathering{b}, o); err != nil {
		return err
	}
	for _, i := range b.parts {
		b.data = append(b.data, b.part(i))
	}
	return gather.Read(ctx, b.data, b, o)
}

// memory bounds the bytes that are read ahead.
func (r *Reader) memory() *gather.Memory {
	r.ahead.Do(func() { r.held = gather.NewMemory(gatherMemory) })
	return r.held
}

// gathering is one call of Gather.
type gathering struct {
	r       *Reader
	wants   []kv.Want
	g       *kv.Gathering
	members []*member  // nil for a missing key
	values  []kv.Value // values that read from the archive, for ready wants

	ready []int         // numbers of wants for which nothing is read ahead
	heads []gather.Part // local headers needed to find the offset of a part
	parts []int         // numbers of the other wants
	data  []gather.Part
}

// sort divides the wants into ready, heads and parts.
func (b *gathering) sort(ctx context.Context) error {
	for i := range b.wants {
		w := &b.wants[i]
		m, err := b.r.member(ctx, w.Key)
		if err == kv.ErrNotFound {
			b.ready = append(b.ready, i)
			continue
		}
		if err == nil {
			b.members[i] = m
			b.values[i], err = b.r.value(m, unknown, b.r.archive)
		}
		if err != nil {
			return err
		}
		_, n := b.span(i)
		switch {
		case n == 0 || n > gatherMost || w.Limit > 0 && m.size > w.Limit,
			b.values[i].ID() != (kv.ID{}) && b.g.Has != nil && b.g.Has(i, b.values[i]):
			b.ready = append(b.ready, i)
			continue
		case n < m.packed && m.headLen() == 0:
			b.heads = append(b.heads, gather.Part{Off: m.offset, N: min(m.headMost(), b.r.dataEnd-m.offset), Want: i})
		}
		b.parts = append(b.parts, i)
	}
	return nil
}

// span is the range of a member's stored bytes to read first: all if they are
// compressed.
func (b *gathering) span(i int) (off, n int64) {
	m := b.members[i]
	if m.offset == outside {
		return 0, 0 // reading it returns the error
	}
	if m.method == methodStore {
		if off, n, err := b.wants[i].Range.Resolve(m.size); err == nil {
			return off, n
		}
	}
	return 0, m.packed // reading beyond the end returns the error
}

// part returns the range of the archive to read for a want.
func (b *gathering) part(i int) gather.Part {
	m := b.members[i]
	off, n := b.span(i)
	p := gather.Part{Off: m.offset, N: m.headMost() + n, Want: i}
	if head := m.headLen(); head > 0 {
		p.Off, p.N = m.offset+head+off, n
	}
	p.N = min(p.N, b.r.dataEnd-p.Off)
	return p
}

// headLen is the length of the local header, 0 if it is not known yet.
func (m *member) headLen() int64 { return int64(atomic.LoadUint32(&m.head) &^ rawName) }

// headMost is the expected upper bound of the length of the local header.
func (m *member) headMost() int64 { return lenLocal + int64(m.rawLen) + headSlack }

func (b *gathering) Open(_ context.Context, _ int, _ kv.Range, _ int64, stale kv.Value) (kv.Value, []byte, error) {
	if stale != nil {
		return nil, nil, kv.ErrChanged // the archive differs from the one that was opened
	}
	return b.r.archive, nil, nil
}

func (b *gathering) Take(ctx context.Context, p gather.Part, _ kv.Value, bytes []byte, err error) error {
	v, err := b.at(ctx, p, bytes, err)
	if err != nil {
		return err
	}
	return b.g.Take(ctx, p.Want, v)
}

// at returns the member of a part as a value that holds the bytes b.
func (b *gathering) at(ctx context.Context, p gather.Part, bytes []byte, err error) (kv.Value, error) {
	m := b.members[p.Want]
	if err != nil {
		return nil, fmt.Errorf("zipkv: member %q: %w", b.r.name(m), err)
	}
	archive := kv.Held(b.r.archive, p.Off, bytes)
	at, err := b.r.dataAt(ctx, archive, m)
	if err != nil {
		return nil, err
	}
	return b.r.value(m, at, archive)
}

// headGathering reads local headers.
type headGathering struct{ *gathering }

func (h headGathering) Take(ctx context.Context, p gather.Part, _ kv.Value, bytes []byte, err error) error {
	_, err = h.at(ctx, p, bytes, err)
	return err
}
