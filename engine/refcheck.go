package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// RefProblem is a reference that cannot be read.
type RefProblem struct {
	Key, URL string
	// Err is ErrUnreachable, ErrForbidden, kv.ErrChanged, or why a server did
	// not answer.
	Err error
}

// RefCheckOptions say how references are checked. The zero value works.
type RefCheckOptions struct {
	// From leaves out that many references, which a stopped check has seen, in
	// the order of the version or set.
	From int64
	// Problem is called for each problem, one at a time. Its error ends the
	// check.
	Problem func(RefProblem) error
	// Progress, if set, is called from time to time with how far the check is.
	Progress func(Progress)
}

// RefCheckReport is the result of a check.
type RefCheckReport struct {
	// Done counts references from the first on, including those left out: a
	// check that goes on begins From there.
	Done int64
	// Problems were found among them.
	Problems int64
}

// reference is a value that lies in a file.
type reference struct {
	key            string
	src            tree.Source
	offset, length uint64
}

// CheckReferences makes sure that the files exist which references at and below
// the source's path name, in the version that was imported, and that the ranges
// lie inside of them. Each file is asked once for some thousand references, and
// several files at a time. No bytes are read. When ctx ends, the report says
// where to go on.
func (s *Source) CheckReferences(ctx context.Context, o RefCheckOptions) (*RefCheckReport, error) {
	list, files, err := s.references(ctx)
	if err != nil {
		return nil, err
	}
	c := refChecker{o: o, files: files}
	c.meter.Keys.Store(o.From)
	batch := make([]reference, 0, batchEntries)
	var seen int64
	for ref, err := range list {
		if err != nil {
			return &c.report, err
		}
		if seen++; seen <= o.From {
			c.report.Done = seen
			continue
		}
		if batch = append(batch, ref); len(batch) == batchEntries {
			if err := c.check(ctx, batch); err != nil {
				return &c.report, err
			}
			batch = batch[:0]
		}
	}
	return &c.report, c.check(ctx, batch)
}

type refChecker struct {
	o      RefCheckOptions
	files  *virtual.Resolver
	report RefCheckReport
	meter  transfer.Meter
}

// sighting is a version of a file, and the result of asking for it.
type sighting struct {
	src  tree.Source
	size uint64
	err  error
}

// check asks for the files of a batch and compares the ranges.
func (c *refChecker) check(ctx context.Context, batch []reference) error {
	seen := map[tree.Source]int{}
	var files []sighting
	for i := range batch {
		src := batch[i].src
		src.Whole = true
		if _, ok := seen[src]; !ok {
			seen[src] = len(files)
			files = append(files, sighting{src: src})
		}
	}
	err := gather.Each(ctx, virtual.Requests, len(files), func(ctx context.Context, i int) error {
		f := &files[i]
		v, err := c.files.Locate(ctx, f.src, 0, 0)
		if err != nil {
			f.err = err
			return ctx.Err()
		}
		f.size = uint64(v.Size())
		return nil
	})
	if err != nil {
		return err
	}
	for i := range batch {
		ref := &batch[i]
		whole := ref.src
		whole.Whole = true
		f := &files[seen[whole]]
		err := f.err
		if err == nil && !ref.src.Whole && (ref.offset > f.size || ref.length > f.size-ref.offset) {
			err = fmt.Errorf("%w: %d bytes from %d on, of a file of %d", ErrUnreachable, ref.length, ref.offset, f.size)
		}
		if err != nil {
			c.report.Problems++
			if c.o.Problem != nil {
				if err := c.o.Problem(RefProblem{ref.key, ref.src.URL, err}); err != nil {
					return err
				}
			}
		}
		c.report.Done++
	}
	c.meter.AddMany(int64(len(batch)), 0, c.o.Progress)
	return nil
}

// version is a snapshot or a session.
type version interface {
	Values(ctx context.Context, prefix string) iter.Seq2[txn.KeyValue, error]
}

// versionOf returns the version of a database that a place is in, and the reader of
// its virtual values; nil if it is in none that is open here.
func versionOf(at source.Place) (version, *virtual.Resolver) {
	switch view := at.View.(type) {
	case *Snapshot:
		return view, view.db.files
	case *Session:
		return view, view.db.files
	}
	return nil, nil
}

// references yields the references at and below the source's path, of a version
// of a database or of a set, with their resolver. It knows no files yet: a
// check asks for each.
func (s *Source) references(ctx context.Context) (iter.Seq2[reference, error], *virtual.Resolver, error) {
	if v, files := versionOf(s.at); v != nil {
		return virtualValues(v.Values(ctx, names.Dir(s.at.Path))), files.Anew(), nil
	}
	set, prefix, err := s.env.ReferenceSet(ctx, s.at)
	if err != nil {
		return nil, nil, err
	}
	named := linkedFiles{set: set, base: set.Rules().Base, validate: ValidateNone}
	return func(yield func(reference, error) bool) {
		for e, err := range set.Entries(ctx) {
			if err != nil {
				yield(reference{}, err)
				return
			}
			key, ok := strings.CutPrefix(e.Key, prefix)
			if !ok || e.Inline() {
				continue
			}
			ref := reference{key: key, offset: uint64(e.Offset), length: uint64(e.Length)}
			if ref.src, err = named.source(e.URL); err != nil {
				ref.src.URL = e.URL // lies in an archive beside the set, or is forbidden
			}
			ref.src.Whole, ref.src.Validator = e.Whole(), e.Condition
			if !yield(ref, nil) {
				return
			}
		}
	}, set.Files().Anew(), nil
}

func virtualValues(values iter.Seq2[txn.KeyValue, error]) iter.Seq2[reference, error] {
	return func(yield func(reference, error) bool) {
		for v, err := range values {
			if err == nil && v.Kind != "virtual" {
				continue
			}
			src := tree.Source{URL: v.URL, Validator: v.Validator, Whole: v.Length < 0}
			if !yield(reference{v.Key, src, v.Offset, uint64(max(v.Length, 0))}, err) || err != nil {
				return
			}
		}
	}
}

// LocalizeOptions choose the values that are localised. The zero value is everything.
type LocalizeOptions struct {
	// Select, if set, is the part of the array at the path whose chunks are
	// copied, as [zarr.Array.Chunks] gives them: a chunk, or a whole shard, as
	// soon as one of its elements is selected, and nothing besides.
	Select *zarr.Selection
	// Progress, if set, is called from time to time with the copied keys and bytes.
	Progress func(Progress)
}

// Localize copies the virtual values at and below a path into the database, in
// a session of it, or the values that o.Select chooses. Native values stay. It
// returns how many values and bytes were copied. A reference that cannot be
// read ends it. Errors: zarr.ErrNotFound if nothing is at the path; with a
// selection zarr.ErrKind if the path is no array, zarr.ErrSelection if the
// selection does not fit it. Memory is bounded by some thousand keys and their
// values.
func (db *DB) Localize(ctx context.Context, s *Session, path string, o LocalizeOptions) (keys, bytes int64, err error) {
	path = names.Clean(path)
	var virtual iter.Seq2[string, error]
	if o.Select != nil {
		a, err := s.Array(ctx, path)
		if err == nil {
			_, err = a.Resolve(*o.Select)
		}
		if err != nil {
			return 0, 0, err
		}
		virtual = virtualChunks(ctx, s, a, *o.Select)
	} else {
		if found, err := kv.Any(ctx, s, names.Dir(path)); err != nil || !found {
			return 0, 0, errors.Join(err, notFound("localize", path))
		}
		virtual = virtualKeys(s.Values(ctx, names.Dir(path)))
	}
	var m transfer.Meter
	var done atomic.Int64
	err = transfer.Batches(virtual, func(keys []string) error {
		return transfer.EachValue(ctx, db.pool, s, keys, func(ctx context.Context, key string, b []byte) error {
			if err := s.Set(ctx, key, b); err != nil {
				return err
			}
			done.Add(1)
			m.Add(int64(len(b)), o.Progress)
			return nil
		})
	})
	if err != nil {
		err = fmt.Errorf("localize %w", err)
	}
	return done.Load(), m.Bytes.Load(), err
}

func virtualKeys(values iter.Seq2[txn.KeyValue, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for ref, err := range virtualValues(values) {
			if !yield(strings.Clone(ref.key), err) || err != nil {
				return
			}
		}
	}
}

// virtualChunks yields the keys of the chunks that a selection touches and that
// are virtual. Each is looked up, so that a few of very many cost little.
func virtualChunks(ctx context.Context, s *Session, a *zarr.Array, sel zarr.Selection) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for c, err := range a.Chunks(ctx, sel) {
			var v txn.KeyValue
			if err == nil {
				v, err = s.Value(ctx, c.Key)
			}
			if errors.Is(err, kv.ErrNotFound) || err == nil && v.Kind != "virtual" {
				continue
			}
			if !yield(c.Key, err) || err != nil {
				return
			}
		}
	}
}
