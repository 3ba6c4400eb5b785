package catalog

import (
	"errors"
	"iter"

	"github.com/zarrdb/zarrdb/kv/index"
)

// Table is a space of records with its keys K and values V.
type Table[K, V any] struct {
	space  index.Space
	key    func(K) []byte
	encode func(V) (key, value []byte)
	// Decode decodes a record.
	Decode func(key, value []byte) (V, error)
}

// Getter reads a record: an index, or a snapshot of one.
type Getter interface {
	Get(s index.Space, key []byte) ([]byte, error)
}

// Scanner yields records in the order of their keys: an index, or a snapshot of
// one.
type Scanner interface {
	Scan(s index.Space, from, to []byte, reverse bool) iter.Seq2[index.Record, error]
}

// Put stores a record.
func (t *Table[K, V]) Put(b *index.Batch, v V) {
	key, value := t.encode(v)
	b.Set(t.space, key, value)
}

// Delete deletes a record.
func (t *Table[K, V]) Delete(b *index.Batch, k K) { b.Delete(t.space, t.key(k)) }

// Record returns a record as it is stored, or index.ErrNotFound.
func (t *Table[K, V]) Record(in Getter, k K) ([]byte, error) { return in.Get(t.space, t.key(k)) }

// Get reads a record. The error is index.ErrNotFound if it is not there.
func (t *Table[K, V]) Get(in Getter, k K) (v V, err error) {
	b, err := t.Record(in, k)
	if err != nil {
		return v, err
	}
	return t.Decode(t.key(k), b)
}

// Has reports whether a record is there. It does not decode it.
func (t *Table[K, V]) Has(in Getter, k K) (bool, error) {
	_, err := t.Record(in, k)
	if errors.Is(err, index.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Scan yields the records as they are stored, in the order of their keys. It is for readers
// that go on after records that [Table.Decode] cannot read.
func (t *Table[K, V]) Scan(in Scanner) iter.Seq2[index.Record, error] {
	return in.Scan(t.space, nil, nil, false)
}

// All yields the records in the order of their keys, up to the first error.
func (t *Table[K, V]) All(in Scanner) iter.Seq2[V, error] { return t.scan(in, nil, nil, false) }

func (t *Table[K, V]) scan(in Scanner, from, to []byte, reverse bool) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for rec, err := range in.Scan(t.space, from, to, reverse) {
			var v V
			if err == nil {
				v, err = t.Decode(rec.Key, rec.Value)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}
