package tree

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// Kind is the kind of a [Value].
type Kind uint8

const (
	// KindInline is a value whose bytes are in the page itself.
	KindInline Kind = iota
	// KindNative is a payload in a pack file of the database.
	KindNative
	// KindVirtual is a byte range of a resource elsewhere.
	KindVirtual
	// KindChild is another map.
	KindChild

	numKinds = 4
)

func (k Kind) String() string {
	if k < numKinds {
		return [numKinds]string{"inline", "native", "virtual", "child"}[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Limits of a page. Apply, Build and Merge refuse more with
// errLimit.
const (
	maxKey       = 4 << 10 // bytes of a key
	maxInline    = 1 << 10 // bytes of an inline value
	maxURL       = 4 << 10 // bytes of Source.URL
	maxValidator = 1 << 10 // bytes of Source.Validator
	MaxExtent    = 1 << 60 // Offset and Length, each
)

// PackID names a pack file. It is opaque here.
type PackID [16]byte

// Source is the resource of a virtual value. Sources are compared with ==;
// each page keeps the texts that it uses once.
type Source struct {
	URL       string // at most MaxURL bytes
	Validator string // opaque, as seen at import: entity tag, time, size; "" if nothing
	Whole     bool   // the value is the whole resource, its length is unknown
}

// Value is what a key maps to. Fields that do not belong to its kind are not
// kept.
type Value struct {
	Kind   Kind
	Inline []byte     // KindInline: the bytes, at most MaxInline
	Sum    digest.Sum // KindNative: content hash of the payload
	Pack   PackID     // KindNative
	Offset uint64     // KindNative, KindVirtual: at most MaxExtent
	Length uint64     // KindNative, KindVirtual: at most MaxExtent
	Source Source     // KindVirtual
	Child  Root       // KindChild: a map below this key
}

// ContentSum identifies the content of v: equal sums mean equal bytes for
// inline and native values, wherever they are kept. For a virtual value it is a
// hash of the reference, for a child the name of its root page.
func (v Value) ContentSum() digest.Sum {
	switch v.Kind {
	case KindInline:
		return digest.Of(v.Inline)
	case KindNative:
		return v.Sum
	case KindVirtual:
		b := make([]byte, 0, 256)
		b = binary.AppendUvarint(b, uint64(len(v.Source.URL)))
		b = append(b, v.Source.URL...)
		b = binary.AppendUvarint(b, uint64(len(v.Source.Validator)))
		b = append(b, v.Source.Validator...)
		b = binary.AppendUvarint(b, v.Offset)
		b = binary.AppendUvarint(b, v.Length)
		if v.Source.Whole {
			b = append(b, 1)
		}
		return digest.Of(b)
	default:
		return v.Child.Name
	}
}

// Equal reports whether v and w are stored alike: same kind and the same fields
// of that kind.
func (v *Value) Equal(w *Value) bool {
	if v.Kind != w.Kind {
		return false
	}
	switch v.Kind {
	case KindInline:
		return bytes.Equal(v.Inline, w.Inline)
	case KindNative:
		return v.Sum == w.Sum && v.Pack == w.Pack && v.Offset == w.Offset && v.Length == w.Length
	case KindVirtual:
		return v.Offset == w.Offset && v.Length == w.Length && v.Source == w.Source
	default:
		return v.Child == w.Child
	}
}

// bytes returns the number that v adds to Root.Bytes.
func (v *Value) bytes() uint64 {
	switch v.Kind {
	case KindInline:
		return uint64(len(v.Inline))
	case KindChild:
		return v.Child.Bytes
	default:
		return v.Length
	}
}

// flags returns the flags that v adds to Root.Flags.
func (v *Value) flags() Flags {
	switch v.Kind {
	case KindNative:
		return HasNative
	case KindVirtual:
		return HasVirtual
	case KindChild:
		return HasChild | v.Child.Flags
	}
	return 0
}

// check refuses an entry that a leaf page cannot hold.
func (e *Entry) check() error {
	v := &e.Value
	switch {
	case len(e.Key) > maxKey:
		return fmt.Errorf("%w: key %s, at most %d bytes", errLimit, quoteKey(e.Key), maxKey)
	case v.Kind >= numKinds:
		return fmt.Errorf("%w: key %s: value of %v", errInvalid, quoteKey(e.Key), v.Kind)
	case v.Kind == KindInline && len(v.Inline) > maxInline:
		return fmt.Errorf("%w: key %s: inline value of %d bytes, at most %d", errLimit, quoteKey(e.Key), len(v.Inline), maxInline)
	case v.Kind == KindChild && !v.Child.valid():
		return fmt.Errorf("%w: key %s: child %+v is not a root", errInvalid, quoteKey(e.Key), v.Child)
	case v.Kind != KindNative && v.Kind != KindVirtual:
		return nil
	case v.Offset > MaxExtent || v.Length > MaxExtent:
		return fmt.Errorf("%w: key %s: bytes %d+%d, each at most %d", errLimit, quoteKey(e.Key), v.Offset, v.Length, uint64(MaxExtent))
	case v.Kind == KindVirtual && len(v.Source.URL) > maxURL:
		return fmt.Errorf("%w: key %s: URL of %d bytes, at most %d", errLimit, quoteKey(e.Key), len(v.Source.URL), maxURL)
	case v.Kind == KindVirtual && len(v.Source.Validator) > maxValidator:
		return fmt.Errorf("%w: key %s: validator of %d bytes, at most %d", errLimit, quoteKey(e.Key), len(v.Source.Validator), maxValidator)
	}
	return nil
}

// Entry is a key and its value.
//
// Entries that a Tree returns share memory with pages: Key and Inline must not
// be modified, and stay valid for ever. Entries passed in are copied before the
// call returns.
type Entry struct {
	Key   []byte
	Value Value
}

// Edit changes one key. Deleting a missing key does nothing.
type Edit struct {
	Key    []byte
	Value  Value
	Delete bool
}

// Span is a range of keys. The zero Span is all of them.
type Span struct {
	From  []byte // first key; nil is the beginning
	To    []byte // where it ends, exclusive; nil is the end
	After bool   // From itself is excluded
}

// Change is one difference between two maps. Old and New are nil where the key
// is absent. It belongs to the caller.
type Change struct {
	Key      []byte
	Old, New *Value
}
