package engine

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/convert"
	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// ExportReferencesOptions say how a reference set is written. The zero value
// writes JSON of version 0.
type ExportReferencesOptions struct {
	// Parquet writes a directory of parquet files instead of a JSON file.
	Parquet bool
	// Version of JSON, 0 or 1.
	Version int
	// Inline puts all native values into the set. Otherwise values of more than
	// 512 bytes, or of more than InlineThreshold, stay in the database's packs.
	Inline bool
	// InlineThreshold puts values of at most so many bytes into the set: native
	// values, and virtual values of known length. The export reads these virtual
	// values, and a forbidden reference is an error. Zero puts in native
	// values of at most 512 bytes alone, a negative number none. Values in index
	// pages are always put in, since nothing else could read them.
	InlineThreshold int64
	// Format, if [zarr.V2], writes nodes of Zarr v3 as nodes of Zarr v2: the metadata
	// is made anew, the references to chunks stay. Programs that know Zarr v2 sets
	// only, such as xarray's engine kerchunk and fsspec for parquet, read the result.
	// A node that has no form in v2 is [ErrConvert], and nothing is written. Keys
	// that belong to no node stay behind if there is a node of Zarr v3. 0 writes all
	// keys as they are stored. Other formats are errors.ErrUnsupported.
	Format zarr.Version
	// Skip is as in [ExportOptions].
	Skip []string
	// Progress, if set, is called from time to time with how far the export is. It may
	// count everything twice.
	Progress func(Progress)
}

// inlineReference is the length up to which native values are put into a set.
const inlineReference = 512

// ExportReferences writes the version of a database, the file in a foreign format or the
// reference set that src names, at and below its path, as a reference set (kerchunk): virtual
// values and references keep their URLs, made absolute, or get the URLs to which the mappings
// of src's Follow lead, metadata and small values stand in the set, and other native values are
// ranges of pack files, which are not copied. DEST.packs has hard links to these files, which
// outlive the database. The same version gives the same bytes. Something at dest is ErrExists; a
// dest in a database is [ErrOverlap].
func ExportReferences(ctx context.Context, src *Source, dest string, o ExportReferencesOptions) (*ExportResult, error) {
	ex := &refExporter{o: o, src: src, packs: dest + ".packs", linked: map[string]string{}}
	var ok bool
	var err error
	if ex.mapped, err = refs.Mapper(src.env.Follow.Map); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	var from selection
	if ex.version, ok = src.at.View.(*Snapshot); ok {
		from, err = src.selectionIn(ctx, src.at, ex.version)
	} else {
		from, err = ex.ofSet(ctx)
	}
	ex.view, ex.prefix = from.view, from.prefix
	if err == nil {
		err = from.holdsNode(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	if err := checkExport(dest); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	for _, name := range []string{dest, ex.packs} {
		if err := extent.Separate(extent.Extent{Path: name}, src.at.Extent); err != nil {
			return nil, fmt.Errorf("export: %w", err)
		}
		if _, err := os.Lstat(name); err == nil {
			return nil, fmt.Errorf("export: %s: %w", name, errThere)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("export: %w", err)
		}
	}
	if len(o.Skip) > 0 && o.Format == 0 {
		return nil, fmt.Errorf("export: skip without a format of Zarr: %w", errors.ErrUnsupported)
	}
	if o.Format != 0 {
		if err := ex.planFormat(ctx, &from); err != nil {
			return nil, fmt.Errorf("export: %w", err)
		}
	}
	write := ex.json
	if o.Parquet {
		write = ex.parquet
	}
	if err := write(ctx, dest); err != nil {
		return nil, errors.Join(fmt.Errorf("export to %s: %w", dest, err), os.RemoveAll(dest), os.RemoveAll(ex.packs))
	}
	res := &ExportResult{Keys: ex.keys, Bytes: ex.bytes}
	if ex.plan != nil {
		res.fromPlan(ex.plan)
	}
	return res, nil
}

// refExporter is one export of references under way.
type refExporter struct {
	o      ExportReferencesOptions
	src    *Source
	view   kv.ReadLister
	prefix string        // of the keys in view
	plan   *convert.Plan // nil if keys are written as they are stored
	// The exported version, or set with its files.
	version *Snapshot
	set     *source.Set
	files   linkedFiles
	packs   string
	linked  map[string]string // URLs of links, by pack file
	mapped  func(url string) string
	last    [2]string // a URL and its mapped form: mostly the next URL is the same
	meter   transfer.Meter

	keys, bytes int64 // of the last run through the version
}

// ofSet finds the reference set, or the file in a foreign format, that the source is.
func (ex *refExporter) ofSet(ctx context.Context) (selection, error) {
	set, _, err := ex.src.env.ReferenceSet(ctx, ex.src.at)
	if errors.Is(err, source.ErrNoReferences) {
		err = fmt.Errorf("%s: %w: only versions of a database, reference sets and files in foreign formats become reference sets; import it into a database first", ex.src.name(), ErrFormat)
	}
	if err != nil {
		return selection{}, err
	}
	ex.set, ex.files = set, linkedFiles{set: set, base: set.Rules().Base, validate: ValidateNone}
	return ex.src.selection(ctx)
}

// stored is an exported value: of a version, or a reference of a set.
type stored struct {
	txn.KeyValue
	data []byte // of a reference that has the value
}

// values yields the values whose keys begin with a prefix; documents promises
// that the caller needs documents alone.
func (ex *refExporter) values(ctx context.Context, prefix string, documents bool) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		if ex.version != nil {
			values := ex.version.Values
			if documents {
				values = ex.version.Documents
			}
			for v, err := range values(ctx, prefix) {
				if !yield(stored{KeyValue: v}, err) {
					return
				}
			}
			return
		}
		entries := ex.set.Below(ctx, prefix)
		if documents {
			apart, err := ex.set.Documents(ctx)
			if err != nil {
				yield(stored{}, err)
				return
			}
			if apart != nil {
				entries = apart
			}
		}
		for e, err := range entries {
			if err == nil && !strings.HasPrefix(e.Key, prefix) {
				continue // a document elsewhere
			}
			v := stored{txn.KeyValue{Key: e.Key, Kind: "virtual", URL: e.URL, Offset: uint64(e.Offset), Length: e.Length}, e.Data}
			if err == nil && e.Inline() {
				v.Kind, v.Length = "inline", int64(len(e.Data))
			} else if err == nil {
				var file *linkedFile
				if file, err = ex.files.of(e.URL); err == nil {
					v.URL = file.src.URL
				} else if strings.Contains(e.URL, "://") {
					err = nil // nothing reads it here
				}
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// inlinedMissing bounds the missing chunks of an array that are put into a set, since v2
// does not define their contents.
const inlinedMissing = 64 << 20

// planFormat plans the conversion to Format if there is anything to convert.
func (ex *refExporter) planFormat(ctx context.Context, from *selection) (err error) {
	if ex.o.Format != zarr.V2 {
		return fmt.Errorf("references in format %v: %w", ex.o.Format, errors.ErrUnsupported)
	}
	ex.plan, _, err = from.planConversion(ctx, zarr.V2, convert.Options{Written: inlinedMissing, Skip: ex.o.Skip, OnlyNodes: ex.o.Parquet, KeepNames: true})
	return err
}

func (ex *refExporter) json(ctx context.Context, dest string) (err error) {
	f, err := os.OpenFile(dest, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := refs.WriteJSON(w, ahead(ctx, ex.entries), &refs.WriteOptions{Version: ex.o.Version}); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

func (ex *refExporter) parquet(ctx context.Context, dest string) (err error) {
	store, err := dirkv.Create(dest, &dirkv.Options{NoSync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := refs.WriteParquet(ctx, store, ahead(ctx, ex.entries), nil); err != nil {
		return err
	}
	return store.Sync(ctx)
}

// ahead yields the values of a sequence that runs in another goroutine, some batches ahead: a
// version is read while the set is written. The goroutine ends before the result does.
func ahead(ctx context.Context, seq func(context.Context) iter.Seq2[refs.Entry, error]) iter.Seq2[refs.Entry, error] {
	fresh := func() []refs.Entry { return make([]refs.Entry, 0, batchEntries) }
	fill := func(ctx context.Context, pass func([]refs.Entry) ([]refs.Entry, error)) error {
		batch, failed := fresh(), error(nil)
		for e, err := range seq(ctx) {
			if err != nil {
				failed = err
				break
			}
			if batch = append(batch, e); len(batch) < batchEntries {
				continue
			}
			if batch, err = pass(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
		if _, err := pass(batch); err != nil {
			return err
		}
		return failed
	}
	return func(yield func(refs.Entry, error) bool) {
		err := transfer.Relay(ctx, fresh, fill, func(batch []refs.Entry) error {
			for _, e := range batch {
				if !yield(e, nil) {
					return errEnough
				}
			}
			clear(batch)
			return nil
		})
		if err != nil && err != errEnough {
			yield(refs.Entry{}, err)
		}
	}
}

// entries yields documents first, since the metadata of an array describes its
// chunks.
func (ex *refExporter) entries(ctx context.Context) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		ex.keys, ex.bytes = 0, 0
		b := &entryBatch{ex: ex}
		fill := b.fillStored
		if ex.plan != nil {
			fill = b.fillConverted
		}
		if err := fill(ctx, yield); err != nil && err != errEnough {
			yield(refs.Entry{}, err)
		}
	}
}

// errEnough means that the consumer of a sequence has stopped.
var errEnough = errors.New("enough")

// fillStored adds all keys as they are stored.
func (b *entryBatch) fillStored(ctx context.Context, yield func(refs.Entry, error) bool) error {
	for _, documents := range []bool{true, false} {
		for v, err := range b.ex.values(ctx, b.ex.prefix, documents) {
			if err == nil && isMetadata(v.Key) == documents {
				err = b.add(ctx, strings.TrimPrefix(v.Key, b.ex.prefix), v, yield)
			}
			if err != nil {
				return err
			}
		}
		if err := b.flush(ctx, yield); err != nil {
			return err
		}
	}
	return nil
}

// fillConverted adds the documents of a conversion, and the chunks that they
// describe under their keys there.
func (b *entryBatch) fillConverted(ctx context.Context, yield func(refs.Entry, error) bool) error {
	plan := b.ex.plan
	for key, err := range plan.Documents.List(ctx, kv.ListOptions{}) {
		var doc []byte
		if err == nil {
			doc, err = kv.Get(ctx, plan.Documents, key)
		}
		if err != nil {
			return err
		}
		b.entries = append(b.entries, refs.Entry{Key: key, Reference: refs.Reference{Data: doc}})
	}
	for i := range plan.Arrays {
		a := &plan.Arrays[i]
		prefix, parse := convert.ChunkKeys(a.From)
		for v, err := range b.ex.values(ctx, prefix, false) {
			if err != nil {
				return err
			}
			if coords, ok := parse(v.Key); ok {
				if err := b.add(ctx, a.Key(coords), v, yield); err != nil {
					return err
				}
			}
		}
		for key, chunk := range a.Missing() {
			if b.entries = append(b.entries, refs.Entry{Key: key, Reference: refs.Reference{Data: chunk}}); b.full() {
				if err := b.flush(ctx, yield); err != nil {
					return err
				}
			}
		}
	}
	return b.flush(ctx, yield)
}

// entryBatch is entries in their order, of which some values have to be read:
// together, since many virtual ones are parts of one file.
type entryBatch struct {
	ex      *refExporter
	entries []refs.Entry
	wants   []kv.Want
	of      []int // numbers of the entries that wants belong to
	bytes   int64 // of the values to read
}

// batchInlined bounds the values that are read together, but for one alone.
const batchInlined = 16 << 20

func (b *entryBatch) full() bool { return len(b.entries) >= batchEntries || b.bytes >= batchInlined }

// add makes an entry of a value; one that stands in the set is read by flush. It
// yields the batch if it is full.
func (b *entryBatch) add(ctx context.Context, key string, v stored, yield func(refs.Entry, error) bool) error {
	ex := b.ex
	e := refs.Entry{Key: key}
	switch {
	case v.Kind == "virtual" && (ex.o.InlineThreshold <= 0 || v.Length < 0 || v.Length > ex.o.InlineThreshold):
		if ex.last[0] != v.URL {
			ex.last = [2]string{strings.Clone(v.URL), ex.mapped(v.URL)}
		}
		e.Reference = refs.Reference{URL: ex.last[1], Offset: int64(v.Offset), Length: v.Length}
	case v.data != nil:
		e.Data = v.data
		b.bytes += v.Length
	case v.Kind == "native" && v.Length > cmp.Or(ex.o.InlineThreshold, inlineReference) && !ex.o.Inline && !isMetadata(v.Key):
		file, offset, err := ex.version.PackFile(ctx, v.Key)
		if err != nil {
			return err
		}
		if e.URL, err = ex.link(file); err != nil {
			return fmt.Errorf("%s: %w", v.Key, err)
		}
		e.Offset, e.Length = offset, v.Length
	default:
		b.of = append(b.of, len(b.entries))
		b.wants = append(b.wants, kv.Want{Key: v.Key})
		b.bytes += v.Length
	}
	b.entries = append(b.entries, e)
	if b.full() {
		return b.flush(ctx, yield)
	}
	return nil
}

// flush reads the values that stand in the set, and yields the batch. It returns
// errEnough if the consumer has stopped.
func (b *entryBatch) flush(ctx context.Context, yield func(refs.Entry, error) bool) error {
	ex := b.ex
	err := kv.Gather(ctx, ex.view, b.wants, kv.Gathering{Run: ex.src.pool.Run, Take: func(ctx context.Context, i int, v kv.Value) (err error) {
		if v == nil {
			return fmt.Errorf("%s: %w", b.wants[i].Key, kv.ErrNotFound)
		}
		if b.entries[b.of[i]].Data, err = kv.ReadValue(ctx, v, kv.All()); err != nil {
			return fmt.Errorf("%s: %w", b.wants[i].Key, err)
		}
		return nil
	}})
	if err != nil {
		return err
	}
	size := int64(0)
	for _, e := range b.entries {
		if !yield(e, nil) {
			return errEnough
		}
		size += int64(len(e.Data))
	}
	ex.keys += int64(len(b.entries))
	ex.bytes += size
	ex.meter.AddMany(int64(len(b.entries)), size, ex.o.Progress)
	clear(b.entries)
	b.entries, b.wants, b.of, b.bytes = b.entries[:0], b.wants[:0], b.of[:0], 0
	return nil
}

// link makes a hard link to a pack, or a copy where there are no links, and returns its
// URL.
func (ex *refExporter) link(file string) (string, error) {
	if url, ok := ex.linked[file]; ok {
		return url, nil
	}
	if err := os.MkdirAll(ex.packs, 0o777); err != nil {
		return "", err
	}
	name, err := filepath.Abs(filepath.Join(ex.packs, filepath.Base(file)))
	if err != nil {
		return "", err
	}
	err = os.Link(file, name)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		err = index.LinkOrCopy(index.DefaultFS, file, name)
	}
	if err != nil {
		return "", fmt.Errorf("%w (the destination must be on the file system of the database, or values in the set)", err)
	}
	url := ex.mapped("file://" + slashed(name))
	ex.linked[file] = url
	return url, nil
}

// slashed is an absolute path as URLs have it.
func slashed(name string) string {
	name = filepath.ToSlash(name)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	return name
}
