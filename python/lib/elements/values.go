package elements

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
)

// inline is the longest value whose bytes come with the answer. For a longer one the caller brings the memory.
const inline = 64 << 10

// The kinds of a range: its first integer. What follows are an offset and a number of bytes.
const (
	rangeAll  = iota
	rangeFrom // from a byte on
	rangeSpan // so many bytes from a byte on
	rangeLast // so many bytes at the end
	rangeNone // no bytes
)

// getValue reads a range of the value of the key that the text names. The answer is the size of the value and the number of bytes in
// the range, 8 bytes each, and the identity of the value, then these bytes if they are few. More bytes go into the
// memory if that has just their length; else the caller comes again with such memory.
func getValue(ctx context.Context, r *Request) ([]byte, error) {
	v, err := of[*view](r.Handle)
	if err != nil {
		return nil, err
	}
	value, err := kv.Locate(ctx, v.reader(), r.Text)
	if err != nil {
		return nil, err
	}
	off, n, rng := r.Ints[1], r.Ints[2], kv.All()
	switch r.Ints[0] {
	case rangeFrom:
		rng = kv.From(off)
	case rangeSpan:
		rng = kv.Span(off, n)
	case rangeLast:
		rng = kv.Last(n)
	case rangeNone:
		rng = kv.Span(0, 0)
	}
	if off, n, err = rng.Resolve(value.Size()); err != nil {
		return nil, err
	}
	id := value.ID()
	var buf [36]byte
	out := binary.LittleEndian.AppendUint64(buf[:0], uint64(value.Size()))
	out = append(binary.LittleEndian.AppendUint64(out, uint64(n)), id[:]...)
	switch {
	case n == 0:
	case int64(len(r.Body)) == n:
		err = value.View(ctx, kv.Span(off, n), func(b []byte) error {
			copy(r.Body, b)
			return nil
		})
	case n <= inline:
		err = value.View(ctx, kv.Span(off, n), func(b []byte) error {
			out = append(out, b...)
			return nil
		})
	}
	return out, err
}

// setValue stores the memory under a key, or removes the key if the second integer is 1. The text is the identity of the value that is expected,
// and the key; the first integer is 0 if any value is, 1 if none is, 2 for that identity. The answer is the identity of the new value.
func setValue(ctx context.Context, r *Request) ([]byte, error) {
	v, err := of[*view](r.Handle)
	if err != nil {
		return nil, err
	}
	if v.session == nil || len(r.Text) < len(kv.ID{}) {
		return nil, fmt.Errorf("%w: a version cannot be written", engine.ErrReadOnly)
	}
	key := r.Text[len(kv.ID{}):]
	want := engine.Expect{Absent: r.Ints[0] == 1}
	if r.Ints[0] == 2 {
		want.ID = kv.ID([]byte(r.Text[:len(kv.ID{})]))
	}
	if r.Ints[1] == 1 {
		return nil, v.session.DeleteIf(ctx, key, want)
	}
	id, err := v.session.SetIf(ctx, key, r.Body, want)
	if err != nil {
		return nil, err
	}
	return id[:], nil
}

// maxPage bounds the bytes of a page of names.
const maxPage = 2 << 20

// listKeys lists names: keys that begin with a prefix, or its children if the first integer is 1. The second one is how many at most, the
// third one the length of the prefix in the text; behind it is the name to begin after. If the fourth one is 1, the prefix of that name is left out too.
// The answer is 1 if there are more, then each name with a zero byte behind it; a child that is a prefix has a slash at its end.
func listKeys(ctx context.Context, r *Request) ([]byte, error) {
	v, err := of[*view](r.Handle)
	if err != nil {
		return nil, err
	}
	limit, prefix, after, afterPrefix := r.Ints[1], r.Text[:r.Ints[2]], r.Text[r.Ints[2]:], r.Ints[3] == 1
	out, n := []byte{0}, int64(0)
	full := func(name string) bool {
		if n == limit || len(out) > maxPage {
			out[0] = 1
			return true
		}
		out, n = append(append(out, name...), 0), n+1
		return false
	}
	if r.Ints[0] == 0 {
		for key, err := range v.reader().(kv.Lister).List(ctx, kv.ListOptions{Prefix: prefix, After: after}) {
			if err != nil || full(key) {
				return out, err
			}
		}
		return out, nil
	}
	for e, err := range kv.ListDir(ctx, v.reader().(kv.Lister), prefix) {
		if err != nil {
			return nil, err
		}
		if (after != "" || afterPrefix) && (e.Name < after || e.Name == after && (afterPrefix || !e.Prefix)) {
			continue
		}
		name := e.Name
		if e.Prefix {
			name += "/"
		}
		if full(name) {
			break
		}
	}
	return out, nil
}
