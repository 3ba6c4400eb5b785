package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Validate says of which files a linking import records the version, so that
// reading finds out when they change.
type Validate uint8

// Which files are asked for their version.
const (
	// ValidateLocal asks files of this machine.
	ValidateLocal Validate = iota
	// ValidateAll asks servers too, once for each file.
	ValidateAll
	// ValidateNone checks no file, and later reads accept any version of a file. References to
	// missing files are linked too; see [ErrNotHere].
	ValidateNone
)

// linker is one import of references under way.
type linker struct {
	db     *DB
	src    *Source
	o      ImportOptions
	set    *source.Set
	prefix string
	base   string // URL of the folder of the set
	bulk   *txn.Bulk
	meter  *transfer.Meter
	// entries yields the references to import: from the set, or from an earlier pass over it.
	entries func(context.Context) iter.Seq2[refs.Entry, error]
	// place, if set, returns the destination of a key, and whether the key is imported.
	place func(key string, e *refs.Entry) (to string, put bool, err error)

	files   linkedFiles // of entries
	columns linkedFiles // of columns, which the reading goroutine prepares
}

func newLinker(db *DB, src *Source, o ImportOptions, set *source.Set, prefix string) *linker {
	files := linkedFiles{
		set: set, base: set.Rules().Base, validate: o.Validate,
		adapters: []*Adapters{src.env.Adapters, db.opts.Adapters},
	}
	had, _ := db.Granted() // Grant returns the same error
	files.granted = src.env.Follow.With(db.opts.Follow).With(had).Rules()
	l := &linker{
		db: db, src: src, o: o, set: set, prefix: prefix, base: files.base,
		meter: &transfer.Meter{}, entries: set.Entries, files: files, columns: files,
	}
	if db.opts.FS == nil {
		l.files.own, l.columns.own = extent.Against(extent.Extent{Path: db.Dir()}), extent.Against(extent.Extent{Path: db.Dir()})
	}
	return l
}

// link imports a reference set as virtual values, keys and metadata as they
// are, as one commit. It is one pass over the set in bounded memory.
func (db *DB) link(ctx context.Context, src *Source, o ImportOptions) (*ImportResult, error) {
	set, prefix, err := src.referenceSet(ctx)
	if err != nil {
		return nil, err
	}
	l := newLinker(db, src, o, set, prefix)
	o.Resume = false // it starts over
	s, err := db.beginImport(ctx, importLabel(src, o.To), o, nil, func(ctx context.Context, s *Session, _ string) error {
		if o.Overwrite {
			return nil // the old nodes are replaced when the rest is complete
		}
		return vacant(ctx, s, o.To)
	})
	if err != nil {
		return nil, err
	}
	res, err := l.run(ctx, s)
	if err != nil {
		return nil, o.abandon(s, fmt.Errorf("import %s: %w", src.name(), err))
	}
	res.Forbidden, res.NotGranted = db.grantLinked(l.grants(), l.forbidden())
	return res, nil
}

// grants returns what the import was allowed to follow: reading is allowed the same.
func (l *linker) grants() Follow {
	f := l.src.env.Follow
	if (l.files.inFolder || l.columns.inFolder) && l.base != virtual.Inside {
		f = f.With(Follow{Allow: []string{l.base}})
	}
	return f
}

// forbidden are prefixes that reading may not follow.
func (l *linker) forbidden() []string { return slices.Concat(l.files.forbidden, l.columns.forbidden) }

func (l *linker) run(ctx context.Context, s *Session) (*ImportResult, error) {
	var err error
	if l.bulk, err = s.Bulk(ctx, l.o.To, false); err != nil {
		return nil, err
	}
	if err := l.copy(ctx); err != nil {
		return nil, err
	}
	if err := l.bulk.Finish(ctx); err != nil {
		return nil, err
	}
	found, err := verifyNodes(ctx, s, l.o.To)
	if err != nil {
		return nil, err
	}
	res := &ImportResult{Nodes: found.Nodes, Unreadable: found.Unreadable, AllUnreadable: found.AllUnreadable, Keys: l.meter.Keys.Load(), Bytes: l.meter.Bytes.Load()}
	if found.version != 0 {
		if res.Strange, err = s.nodes.strangeAt(ctx, l.o.To, found.version); err != nil {
			return nil, err
		}
	}
	res.Commit, err = l.o.finish(ctx, s)
	return res, err
}

// verifyNodes opens every node at and below a path that was imported, adds the separators
// that documents lack, and makes groups above.
func verifyNodes(ctx context.Context, s *Session, to string) (found Survey, err error) {
	separators := policy.NewSeparators(s)
	separators.Listed = true
	for n, err := range s.Walk(ctx, to) {
		if found.Nodes == 0 && errors.Is(err, zarr.ErrNotFound) {
			break
		}
		path, m, err := found.opened(n, err)
		if err != nil {
			return found, err
		}
		if path == to {
			found.version = m.Version
		}
		if m.Version == zarr.V2 {
			for _, name := range []string{names.V2Array, names.V2Metadata} {
				if err := correctStored(ctx, s, separators, names.Dir(path)+name); err != nil {
					return found, err
				}
			}
		}
	}
	if found.Nodes == 0 {
		return found, fmt.Errorf("%w: the set has no array and no group", ErrFormat)
	}
	if to == "" {
		return found, nil
	}
	if err := checkNewPath(found.version, to); err != nil {
		return found, fmt.Errorf("import to /%s: %w", to, err)
	}
	if err := s.groupsAbove(ctx, to, found.version, false); err != nil {
		return found, fmt.Errorf("import to /%s: %w", to, err)
	}
	return found, s.copies.Above(ctx, to)
}

// correctStored corrects a document of a session, if there is one.
func correctStored(ctx context.Context, s *Session, separators *policy.Separators, key string) error {
	b, err := s.Get(ctx, key, kv.AtMost(policy.MaxDocument))
	if errors.Is(err, kv.ErrNotFound) || errors.Is(err, kv.ErrTooLarge) {
		return nil
	}
	if err != nil {
		return err
	}
	fixed, err := separators.Correct(ctx, key, b)
	if err != nil || len(fixed) == len(b) {
		return err
	}
	return s.Set(ctx, key, fixed)
}

// batchEntries is how many references go from one goroutine to the other.
const batchEntries = 4096

// linkBatch is the unit that goes: entries, or references to chunks of one array.
type linkBatch struct {
	entries []refs.Entry
	grid    *txn.ChunkGrid // nil for entries
	refs    txn.References
}

// copy reads the set in one goroutine and writes it in another.
func (l *linker) copy(ctx context.Context) error {
	fresh := func() *linkBatch { return new(linkBatch) }
	read := func(ctx context.Context, pass func(*linkBatch) (*linkBatch, error)) error {
		r := linkReader{linker: l, pass: pass, batch: fresh()}
		return r.read(ctx)
	}
	return transfer.Relay(ctx, fresh, read, func(batch *linkBatch) error {
		if err := l.put(ctx, batch); err != nil {
			return err
		}
		clear(batch.entries)
		batch.entries, batch.grid = batch.entries[:0], nil
		return nil
	})
}

// put writes a batch.
func (l *linker) put(ctx context.Context, batch *linkBatch) error {
	if batch.grid == nil {
		return l.putEntries(ctx, batch.entries)
	}
	if err := l.bulk.SetReferences(ctx, batch.grid, &batch.refs); err != nil {
		return err
	}
	n := int64(0)
	for _, url := range batch.refs.URL {
		if url != "" {
			n++
		}
	}
	l.meter.AddMany(n, 0, l.o.Progress)
	return nil
}

// putEntries writes references with their keys.
func (l *linker) putEntries(ctx context.Context, batch []refs.Entry) error {
	err := l.files.ask(ctx, len(batch), func(i int) string { return batch[i].URL }, func(i int) string { return batch[i].Key })
	if err != nil {
		return err
	}
	var keys, bytes int64
	for i := range batch {
		e := &batch[i]
		key, ok := strings.CutPrefix(e.Key, l.prefix)
		if !ok {
			continue
		}
		var err error
		if l.place != nil {
			if key, ok, err = l.place(key, e); err != nil {
				return keyFailed(e.Key, err)
			}
			if !ok {
				continue
			}
		}
		switch {
		case e.Inline():
			err = l.bulk.Set(ctx, key, e.Data)
			bytes += int64(len(e.Data))
		case isMetadata(e.Key):
			var b []byte
			if b, err = l.set.Document(ctx, &e.Reference); err == nil {
				err = l.bulk.Set(ctx, key, b)
			}
		default:
			var src tree.Source
			var offset, length uint64
			if src, offset, length, err = l.files.virtual(&e.Reference); err == nil {
				err = l.bulk.SetVirtual(ctx, key, src, offset, length)
			}
		}
		if err != nil {
			return keyFailed(e.Key, err)
		}
		keys++
	}
	l.meter.AddMany(keys, bytes, l.o.Progress)
	return nil
}

func keyFailed(key string, err error) error {
	return fmt.Errorf("key %q: %w", key, err)
}

// metadataNames are the documents that must be in the database itself.
var metadataNames = map[string]bool{
	names.V3: true, names.V2Array: true, names.V2Group: true, names.V2Attrs: true, names.V2Metadata: true, names.V1Array: true, names.V1Attrs: true,
}

// isMetadata reports whether a key is one of them.
func isMetadata(key string) bool {
	if n := len(key); n > 0 && key[n-1]-'0' < 10 {
		return false // as most names of chunks end, which are millions
	}
	return metadataNames[path.Base(key)]
}

// foundSet is a reference set, and the prefix of the source in it.
type foundSet struct {
	set    *source.Set
	prefix string
}

// referenceSet returns the reference set that the source is. A set that IsReferenceSet has
// found is not looked for again, which costs a request or two.
func (s *Source) referenceSet(ctx context.Context) (*source.Set, string, error) {
	s.mu.Lock()
	found := s.set
	s.mu.Unlock()
	if found != nil {
		return found.set, found.prefix, nil
	}
	return s.env.ReferenceSet(ctx, s.at)
}

// IsReferenceSet makes sure that the source is a reference set, without reading
// all of it.
func (s *Source) IsReferenceSet(ctx context.Context) error {
	set, prefix, err := s.env.ReferenceSet(ctx, s.at)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.set = &foundSet{set, prefix}
	s.mu.Unlock()
	for _, err := range set.Entries(ctx) {
		if err != nil {
			err = fmt.Errorf("import %s: %w", s.name(), err)
		}
		return err
	}
	return nil
}

// ExpandReferences writes the JSON reference set that src names as version 0:
// templates rendered, generators written out. Bytes written before an error are
// no complete document.
func ExpandReferences(ctx context.Context, src *Source, w io.Writer) error {
	v, err := src.File(ctx)
	if errors.Is(err, ErrFormat) {
		return fmt.Errorf("%w (a set of parquet files has nothing to expand)", err)
	}
	if err != nil {
		return err
	}
	if err := refs.Expand(ctx, w, v, nil); err != nil {
		return fmt.Errorf("%s: %w", src.name(), err)
	}
	return nil
}
