package codecs

import (
	"errors"
	"fmt"
)

// Bound is a chain for chunks of one data type, shape and fill value. It is
// safe for concurrent use and has no state of its own.
//
//	caller's array ─(axis order)─ stages[0] … stages[n-1] ─ stored bytes
//	                              └ array ┘ └ tail ┘
type Bound struct {
	// in is a chunk in the caller's axis order, stored the same after the
	// leading transposes of the chain, and out the encoded value.
	in, stored, out Rep
	// perm is the axis order of those transposes: axis i of stored is axis
	// perm[i] of in. nil is the identity.
	perm []int

	callerBox, storedBox layout
	// last is the name of the codec that makes the encoded value.
	last string

	// stages are the running stages, in encoding order. tail are the stages
	// behind the array-to-bytes codec.
	stages, tail pipeline
	// partial is the array-to-bytes stage if it decodes boxes and is the first
	// stage; identity if it does nothing else than locate elements, and so is
	// not among stages.
	partial  partialStage
	identity bool
	// shard is partial if that is a shard.
	shard *shardStage
}

// Bind fixes data type, shape and fill value of a chunk (the other fields of
// rep are filled in; Max may bound the decoded size of a chunk of
// variable-length elements). Every error is a [ConfigError].
func (c Chain) Bind(rep Rep) (*Bound, error) {
	whole := link{list: c.member, index: -1}
	if err := c.checkOrder(); err != nil {
		return nil, err
	}
	rep.Array = true
	if err := rep.measure(); err != nil {
		return nil, whole.fail(err)
	}
	b := &Bound{in: rep}
	cur, lead := rep, !rep.Type.Variable()
	for i := range c.links {
		l := &c.links[i]
		if l.codec == nil {
			continue
		}
		if t, ok := l.codec.(*transpose); ok && lead {
			next, err := t.permute(cur)
			if err != nil {
				return nil, l.fail(err)
			}
			if b.perm == nil {
				b.perm = t.order
			} else {
				b.perm = permuted(t.order, b.perm)
			}
			cur = next
			continue
		}
		if lead {
			lead = false
			b.stored = cur
		}
		next, err := b.add(l, cur, c.v2 != nil)
		if err != nil {
			return nil, l.fail(err)
		}
		cur, b.last = next, l.name
	}
	if lead || cur.Array {
		return nil, whole.fail(errors.New("no codec makes bytes of the array"))
	}
	if rep.Type.Variable() {
		b.stored = rep
	}
	b.out = cur
	if identityOrder(b.perm) {
		b.perm = nil
	}
	b.callerBox, b.storedBox = b.in.layout(), b.stored.layout()
	b.stages.finish()
	b.tail.finish()
	return b, nil
}

// add binds one codec to cur and returns its output.
func (b *Bound) add(l *link, cur Rep, v2 bool) (Rep, error) {
	kind := l.entry.Kind
	if cur.Array == (kind == BytesToBytes) && !(v2 && kind == ArrayToArray) {
		return Rep{}, fmt.Errorf("the %v codec is at a wrong position", kind)
	}
	st, next, err := l.codec.Bind(cur)
	if err != nil {
		return Rep{}, err
	}
	if next.Array {
		if err := next.measure(); err != nil {
			return Rep{}, err
		}
	}
	s := newStage(l.name, st, cur, next)
	if kind == ArrayToBytes {
		if len(b.stages) == 0 {
			b.partial, _ = st.(partialStage)
			b.shard, _ = st.(*shardStage)
		}
		if raw, ok := st.(*bytesStage); ok && raw.identity() {
			b.identity = true
			return next, nil
		}
	}
	if st == nil {
		return next, nil
	}
	b.stages = append(b.stages, s)
	if !cur.Array {
		b.tail = append(b.tail, s)
	}
	return next, nil
}

// InnerShape returns the shape of the inner chunks if the chunks are shards,
// as the caller sees them, else nil. It must not be changed.
func (b *Bound) InnerShape() []int {
	if b.shard == nil {
		return nil
	}
	inner := b.shard.inner.in.Shape
	if b.perm == nil {
		return inner
	}
	shape := make([]int, len(inner))
	for i, axis := range b.perm {
		shape[axis] = inner[i]
	}
	return shape
}

// MaxEncodedSize bounds the length of an encoded chunk; for compressors it is
// much larger than usual.
func (b *Bound) MaxEncodedSize() int64 {
	if b.out.Size >= 0 {
		return b.out.Size
	}
	return b.out.Max
}

// EncodedSize returns the length that every encoded chunk has, or -1 if it
// depends on the data.
func (b *Bound) EncodedSize() int64 { return b.out.Size }

// Rep returns the Rep that the chain was bound to, with Size and Max filled in.
func (b *Bound) Rep() Rep { return b.in }
