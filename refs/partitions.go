package refs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

// lazySet is a parquet set whose partitions are read when they are needed.
type lazySet struct {
	*partitioned
	dir   kv.Reader
	o     ReadOptions
	cache *lru.Cache[partitionID, *partition]

	mu      sync.Mutex
	present map[*array]presence
}

type partitionID struct {
	a      *array
	number int64
}

// presence is the result of existing.
type presence struct {
	numbers []int64
	all     bool
}

// existing caches the result of the function of that name for each array.
func (s *lazySet) existing(ctx context.Context, a *array) (numbers []int64, all bool, err error) {
	s.mu.Lock()
	p, ok := s.present[a]
	s.mu.Unlock()
	if ok {
		return p.numbers, p.all, nil
	}
	numbers, all, err = existing(ctx, s.dir, a)
	if err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.present == nil {
		s.present = map[*array]presence{}
	}
	s.present[a] = presence{numbers, all}
	return numbers, all, nil
}

func openPartitions(ctx context.Context, dir kv.Reader, o Options) (*lazySet, error) {
	p, err := readZmetadata(ctx, dir, o.Read)
	if err != nil {
		return nil, err
	}
	cache := lru.New[partitionID](o.CacheBytes, func(p *partition) int64 { return p.bytes })
	return &lazySet{partitioned: p, dir: dir, o: o.Read, cache: cache}, nil
}

func (s *lazySet) Lookup(ctx context.Context, key string) (Reference, error) {
	if data, ok := s.doc(key); ok {
		return Reference{Data: data, Form: FormText}, nil
	}
	a, n := s.chunk(key)
	if a == nil {
		return Reference{}, kv.ErrNotFound
	}
	p, err := s.partition(ctx, a, n/s.recordSize)
	if err != nil {
		return Reference{}, err
	}
	ref, err := p.reference(n % s.recordSize)
	if err != nil && err != kv.ErrNotFound {
		err = keyError(key, err)
	}
	return ref, err
}

func (s *lazySet) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return streamPartitions(ctx, s.dir, s.partitioned, s.o)
}

// partition is the references of one file in memory.
type partition struct {
	urls  []string // different ones
	rows  []packedRow
	raw   map[int64][]byte
	bytes int64
}

// packedRow is a reference; url is a number, or one of the constants below.
type packedRow struct {
	offset, length int64
	url            int32
}

const (
	rowMissing = -1 - iota
	rowInline
	rowInvalid // looking it up returns the error
)

// reference returns a row, or kv.ErrNotFound.
func (p *partition) reference(row int64) (Reference, error) {
	if row >= int64(len(p.rows)) { // only a missing file has fewer rows than chunks
		return Reference{}, kv.ErrNotFound
	}
	r := p.rows[row]
	switch r.url {
	case rowMissing:
		return Reference{}, kv.ErrNotFound
	case rowInline:
		return Reference{Data: p.raw[row]}, nil
	case rowInvalid:
		_, err := rowReference("?", r.offset, r.length, nil)
		if err == nil {
			_, err = rowReference("", 0, 0, p.raw[row])
		}
		return Reference{}, err
	}
	return Reference{URL: p.urls[r.url], Offset: r.offset, Length: r.length}, nil
}

// exists reports whether a row has a value.
func (p *partition) exists(row int64) bool {
	return row < int64(len(p.rows)) && p.rows[row].url != rowMissing
}

// rowReference makes a reference of a row, whose raw bytes or URL is given.
// Raw bytes that begin with "base64:" are decoded, as in fsspec; a length
// and an offset of 0 mean the whole file.
func rowReference(url string, offset, size int64, raw []byte) (Reference, error) {
	if raw != nil {
		if !bytes.HasPrefix(raw, []byte(base64Prefix)) {
			return Reference{Data: raw}, nil
		}
		data, err := decodeBase64(raw[len(base64Prefix):])
		return Reference{Data: data, Form: FormBase64}, err
	}
	switch {
	case offset < 0:
		return Reference{}, invalid("negative offset %d", offset)
	case size < 0:
		return Reference{}, invalid("negative size %d", size)
	case offset == 0 && size == 0:
		return Reference{URL: url, Length: WholeFile}, nil
	}
	return Reference{URL: url, Offset: offset, Length: size}, nil
}

// partition returns a partition from the cache, or reads it. A missing file is
// a partition without references.
func (s *lazySet) partition(ctx context.Context, a *array, number int64) (*partition, error) {
	return s.cache.Get(ctx, partitionID{a, number}, func() (*partition, error) {
		return s.read(ctx, a, number)
	})
}

// Memory of a row and of a string, about.
const (
	rowBytes    = 24
	stringBytes = 16
)

func (s *lazySet) read(ctx context.Context, a *array, number int64) (*partition, error) {
	p := &partition{bytes: 256}
	rows := a.rows(number)
	known := map[string]int32{}
	lastURL, last := "", int32(rowMissing)
	var file partitionReader
	err := file.each(ctx, s.dir, a, number, s.o, func(b *parquet.Batch) error {
		if p.bytes += rowBytes * int64(b.Len()); p.rows == nil {
			p.rows = make([]packedRow, 0, b.Len())
		}
		for i, url := range b.Path {
			r := packedRow{b.Offset[i], b.Size[i], rowMissing}
			switch {
			case b.Raw[i] != nil:
				raw := bytes.Clone(b.Raw[i])
				ref, err := rowReference("", 0, 0, raw)
				if r.url = rowInline; err != nil {
					r.url = rowInvalid
				} else {
					raw = ref.Data
				}
				if p.raw == nil {
					p.raw = map[int64][]byte{}
				}
				p.raw[int64(len(p.rows))] = raw
				p.bytes += int64(len(raw)) + 64
				r.offset, r.length = 0, 0
			case url != "":
				ref, err := rowReference(url, r.offset, r.length, nil)
				if err != nil {
					r.url = rowInvalid
					break
				}
				r.offset, r.length = ref.Offset, ref.Length
				if url != lastURL {
					n, ok := known[url]
					if !ok {
						n = int32(len(p.urls))
						p.urls = append(p.urls, url)
						known[url] = n
						p.bytes += int64(len(url)) + stringBytes
					}
					lastURL, last = url, n
				}
				r.url = last
			}
			p.rows = append(p.rows, r)
		}
		if p.bytes > s.o.Partition {
			return limit("%s takes more than %d bytes in memory (Partition)", a.file(number), s.o.Partition)
		}
		return nil
	})
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	if err == nil && int64(len(p.rows)) < rows {
		return nil, tooFewRows(a, number, int64(len(p.rows)))
	}
	return p, nil
}

func tooFewRows(a *array, number, got int64) error {
	return &invalidError{fmt.Sprintf("refs: %s has %d rows, %d are needed", a.file(number), got, a.rows(number)), kv.ErrCorrupt}
}

// partitionReader reads one partition after the other into the same memory.
type partitionReader struct {
	file  parquet.Reader
	batch parquet.Batch
}

// each calls fn with the rows of a partition that are chunks. A missing file is
// kv.ErrNotFound. fn may change the columns.
func (r *partitionReader) each(ctx context.Context, dir kv.Reader, a *array, number int64, o ReadOptions, fn func(*parquet.Batch) error) error {
	v, err := kv.Locate(ctx, dir, a.file(number))
	if err != nil {
		if errors.Is(err, kv.ErrNotFound) {
			return kv.ErrNotFound
		}
		return fmt.Errorf("refs: %s: %w", a.file(number), err)
	}
	in := func(err error) error {
		if errors.Is(err, kv.ErrNotFound) { // it was removed meanwhile
			err = fmt.Errorf("%w: %v", ErrUnreachable, err)
		}
		if errors.Is(err, kv.ErrCorrupt) || errors.Is(err, errors.ErrUnsupported) {
			return invalidBecause(err, "refs: %s", a.file(number))
		}
		return fmt.Errorf("refs: %s: %w", a.file(number), err)
	}
	if err := r.file.Open(ctx, v, &parquet.Options{MaxBytes: o.Partition}); err != nil {
		return in(err)
	}
	for left := a.rows(number); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := &r.batch
		if err := r.file.Next(b); err == io.EOF {
			return nil
		} else if err != nil {
			return in(err)
		}
		if int64(b.Len()) > left { // the rest is padding
			n := int(left)
			b.Path, b.Offset, b.Size, b.Raw = b.Path[:n], b.Offset[:n], b.Size[:n], b.Raw[:n]
		}
		if left -= int64(b.Len()); b.Len() > 0 {
			if err := fn(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// existing returns the numbers of the existing partitions of an array,
// ascending. all means that no partition is missing, or that the missing ones are unknown.
func existing(ctx context.Context, dir kv.Reader, a *array) (numbers []int64, all bool, err error) {
	probe := func() ([]int64, bool, error) {
		if a.partitions() > maxProbed {
			return nil, false, limit("array %s could have %d partitions, and they cannot be listed", quote(a.prefix), a.partitions())
		}
		return nil, true, nil
	}
	l, ok := dir.(kv.Lister)
	if !ok {
		return probe()
	}
	prefix := a.prefix + "refs."
	for key, err := range l.List(ctx, kv.ListOptions{Prefix: prefix}) {
		if errors.Is(err, errors.ErrUnsupported) {
			return probe()
		}
		if err != nil {
			return nil, false, err
		}
		word, ok := strings.CutSuffix(key[len(prefix):], ".parq")
		if n, err := strconv.ParseInt(word, 10, 64); ok && err == nil && n >= 0 && n < a.partitions() && key == a.file(n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, int64(len(numbers)) == a.partitions(), nil
}
