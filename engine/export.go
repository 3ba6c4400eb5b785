package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/engine/internal/convert"
	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/internal/listing"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/zipkv"
	"github.com/zarrdb/zarrdb/zarr"
)

// ExportOptions say how an export is written. The zero value works.
type ExportOptions struct {
	// Overwrite replaces the Zarr store or zip archive at the destination;
	// anything else that lies there is left alone. A directory or archive is
	// written beside the old one, which goes when the new one is complete: until
	// then, and if the export fails, it is as it was. In a bucket and in memory
	// nothing can be renamed: there values are overwritten one by one, and keys
	// that the export has not go last. An export that was stopped leaves a mixture
	// there, and the same one repairs it.
	Overwrite bool
	// Resume goes on with an export of the same version to the same directory
	// that was stopped. Values at the destination are compared and kept. A key
	// there that the version does not have is an error.
	Resume bool
	// Format, if not 0, is the format that the nodes are written in: [zarr.V2]
	// or [zarr.V3]. Chunks are copied as they are, under the keys that the
	// format usually has; consolidated metadata is made again. A node that has
	// no form in the format is [ErrConvert], and nothing is written. Keys that
	// belong to no node stay behind. Such an export cannot be resumed. If all nodes
	// are in the format, keys are copied as without it.
	Format zarr.Version
	// Recode encodes the chunks of an array anew where they do not mean the
	// same in Format: the inner chunks of shards become chunks, filters go.
	Recode bool
	// Skip are paths of arrays and groups that a conversion to Format, or to one of
	// [ForeignSkips], leaves out, relative to the exported node. A path without a node
	// is zarr.ErrNotFound.
	Skip []string
	// Foreign, if its Format is not empty, is the foreign format to write.
	Foreign ForeignOptions
	// Workers is how many keys are copied at a time; default as the source.
	Workers int
	// Progress, if set, is called from time to time with how far the export is. Calls
	// do not overlap.
	Progress func(Progress)
}

// ExportResult counts what an export wrote.
type ExportResult struct {
	Keys, Bytes int64
	// LeftOut are the paths of databases in the source, which are not copied.
	LeftOut []string
	// Notes name the first few nodes of which something has no form in another format: an
	// attribute in which a bare NaN or infinity became a text, since other JSON readers
	// refuse it, or metadata of OME-Zarr that stayed as it is. AllNotes counts all.
	Notes    []string
	AllNotes int64
	// Behind name the first few things that a conversion left behind: arrays and groups
	// of Skip, members of metadata that the format has no form for, and keys that belong to
	// no node. AllBehind counts all.
	Behind    []string
	AllBehind int64
	// Stale are the paths of the first few groups whose consolidated metadata was copied as
	// it is and differs from the documents below; AllStale counts all. A conversion makes it
	// again.
	Stale    []string
	AllStale int64
	// Versions were written and Expired ones, without contents, left out, with
	// [ForeignOptions].History. Keys then counts their changes.
	Versions, Expired int64
}

// Export copies the hierarchy that src names to a directory, or to a zip archive
// if dest ends in ".zip" or ".ozx", or to where a URL such as s3://bucket/path leads if
// that can be written: keys and bytes as they are stored. Metadata is written
// last, so that an export that was stopped does not pass for a complete array; a
// zip archive appears when it is complete. Something at
// the destination is ErrExists. A destination that is, holds or lies in the
// source, or holds or lies in a database, is [ErrOverlap]. The error is
// ErrResumable if ctx ended and Resume goes on with the copied part.
func Export(ctx context.Context, src *Source, dest string, o ExportOptions) (*ExportResult, error) {
	from, err := src.selection(ctx)
	if err != nil {
		return nil, err
	}
	if err := from.holdsNode(ctx); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	ex := &exporter{selection: from, o: o, pool: src.pool}
	if o.Workers > 0 {
		ex.pool = transfer.NewPool(o.Workers)
	}
	if o.Format != 0 {
		if o.Resume {
			return nil, fmt.Errorf("export: to another format, resumed: %w", errors.ErrUnsupported)
		}
		if ex.plan, ex.private, err = from.planConversion(ctx, o.Format, convert.Options{Recode: o.Recode, Written: writtenMissing, Skip: o.Skip}); err != nil {
			return nil, fmt.Errorf("export: %w", err)
		}
		open := *from.open
		open.Version = o.Format // all that is copied, if nothing is converted
		ex.open = &open
	}
	if len(o.Skip) > 0 && o.Format == 0 && !slices.Contains(ForeignSkips(), o.Foreign.Format) {
		return nil, fmt.Errorf("export: skip without a format that arrays are converted to: %w", errors.ErrUnsupported)
	}
	if o.Foreign.Format != "" {
		if o.Resume || o.Format != 0 {
			return nil, fmt.Errorf("export: to a foreign format, resumed or of a version of Zarr: %w", errors.ErrUnsupported)
		}
		if ex.foreign, err = ex.planForeign(ctx); err != nil {
			return nil, fmt.Errorf("export: %w", convertError(err))
		}
	}
	if o.Format == 0 && o.Foreign.Format == "" {
		if ex.private, err = from.notePrivate(ctx); err != nil {
			return nil, fmt.Errorf("export: %w", err)
		}
	}
	d, err := src.destination(ctx, dest)
	if err == nil {
		err = extent.Separate(d.lies, ex.at.Extent)
	}
	there := false
	if err == nil {
		there, err = d.check(ctx, o)
	}
	if err == nil && there {
		err = src.unreferred(ctx, ex.at, d.lies)
	}
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	copied := ex.plan == nil && ex.foreign == nil
	if copied && o.Progress != nil {
		if ex.meter.Total, err = transfer.Count(ex.keys(ctx)); err != nil {
			return nil, err
		}
	}
	replace := there && !o.Resume
	kept := copied && !replace // the copied part, if it is not all
	local := ex.toDir
	if IsArchive(d.lies.Path) {
		kept, local = false, ex.toZip
		ex.ozx = strings.EqualFold(path.Ext(d.lies.Path), ".ozx") && ex.foreign == nil
	}
	switch {
	case d.store != nil && replace:
		err = ex.overStore(ctx, d.store)
	case d.store != nil:
		err = ex.toStore(ctx, d.store, noSync)
	case replace:
		err = dirkv.Replace(d.lies.Path, func(name string) error { return local(ctx, name) })
	default:
		err = local(ctx, d.lies.Path)
	}
	if err != nil {
		err = fmt.Errorf("export to %s: %w", zurl.Redact(dest), err)
		if kept && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", err, ErrResumable)
		}
		return nil, err
	}
	res := &ExportResult{Keys: ex.meter.Keys.Load(), Bytes: ex.meter.Bytes.Load(), LeftOut: src.leftOut(), Versions: ex.versions, Expired: ex.expired, Stale: ex.stale, AllStale: ex.allStale}
	if ex.plan != nil {
		res.fromPlan(ex.plan)
	} else {
		res.Notes, res.AllNotes = ex.private[:min(len(ex.private), maxNoted)], int64(len(ex.private))
	}
	if n, ok := ex.foreign.(formats.Noter); ok {
		notes, behind := n.Notes()
		res.Notes, res.AllNotes = notes[:min(len(notes), maxNoted)], int64(len(notes))
		res.Behind, res.AllBehind = behind[:min(len(behind), maxNoted)], int64(len(behind))
	}
	return res, nil
}

// maxNoted bounds the notes of an export to a foreign format.
const maxNoted = 10

// fromPlan copies the notes of a conversion.
func (r *ExportResult) fromPlan(p *convert.Plan) {
	r.Notes, r.AllNotes, r.Behind, r.AllBehind = p.Notes, p.AllNotes, p.Behind, p.AllBehind
}

// writtenMissing bounds the missing chunks of an array that an export writes, since v2
// does not define their contents.
const writtenMissing = 16 << 30

// planConversion makes the metadata of every node in another format. The plan is nil if all
// are in that format, none is skipped and consolidated metadata is true, so that keys can be
// copied as they are; private then names the arrays that other programs do not read.
func (x *selection) planConversion(ctx context.Context, to zarr.Version, how convert.Options) (plan *convert.Plan, private []string, err error) {
	needed := len(how.Skip) > 0
	for n, err := range zarr.Walk(ctx, x.view, x.at.Path, x.open) {
		path, m, err := opened(n, err)
		if needed = needed || err != nil || m.Version != to; needed {
			break
		}
		if line := x.privateLine(path, m); line != "" {
			private = append(private, line)
			needed = how.Recode
		}
		if !m.Array && (to == zarr.V2 || m.CarriesNodes()) {
			if needed, err = staleCopies(ctx, x.view, x.open, path, to); err != nil {
				return nil, nil, err
			}
		}
		if needed {
			break
		}
	}
	if !needed {
		return nil, private, nil
	}
	plan, err = convert.New(ctx, x.view, x.at.Path, x.open, to, how)
	if err != nil || x.told() {
		return plan, nil, err // the listing has no other keys
	}
	return plan, nil, plan.LeaveKeys(x.keys(ctx))
}

// privateLine names the part of an array that other programs do not read, "" if they read all.
func (x *selection) privateLine(path string, m *zarr.Meta) string {
	if what := convert.Private(m); what != "" {
		return fmt.Sprintf("/%s: %s: %s; an export with --format zarr3 --recode is for them", names.Relative(path, x.at.Path), what, convert.NotRead)
	}
	return ""
}

// notePrivate names the arrays of a store in a foreign format that other programs do not read.
func (x *selection) notePrivate(ctx context.Context) (private []string, err error) {
	last := x.at.URL.Last().Scheme
	if !slices.ContainsFunc(source.Formats(), func(f formats.Format) bool { return f.Scheme == last && f.Create == nil }) {
		return nil, nil // keys are as another program wrote them
	}
	for n, err := range x.nodes(ctx) {
		path, m, err := opened(n, err)
		if err != nil {
			return nil, err
		}
		if line := x.privateLine(path, m); line != "" {
			private = append(private, line)
		}
	}
	return private, nil
}

// staleCopies reports whether a group of a format carries consolidated metadata that differs
// from the documents below the group, and could be made again.
func staleCopies(ctx context.Context, view kv.ReadLister, o *zarr.OpenOptions, group string, v zarr.Version) (bool, error) {
	key := names.Dir(group) + map[zarr.Version]string{zarr.V2: names.V2Metadata, zarr.V3: names.V3}[v]
	stored, err := kv.Get(ctx, view, key)
	if err == nil {
		var made []byte
		if made, err = policy.TrueDocument(ctx, view, o, key, stored); err == nil && !bytes.Equal(made, stored) {
			copies, _ := policy.Policy{}.Copies(names.V3, made)
			return v == zarr.V2 || copies != nil, nil
		}
	}
	if errors.Is(err, kv.ErrNotFound) {
		err = nil
	}
	return false, err
}

// holdsNode makes sure that there is a node.
func (x *selection) holdsNode(ctx context.Context) error {
	for n, err := range x.nodes(ctx) {
		_, m, err := opened(n, err)
		if err == nil {
			err = wholeDraft(m, x.at)
		}
		return err
	}
	return zarr.ErrNotFound
}

// wholeDraft refuses a part of a store in the early v3 draft where keys are
// copied: they do not begin with the path.
func wholeDraft(m *zarr.Meta, at source.Place) error {
	if m.Version == zarr.Draft3 && at.Path != "" {
		return fmt.Errorf("/%s: %w: keys of the early v3 draft begin at the root", at.Path, zarr.ErrNoForm)
	}
	return nil
}

// exporter is one export under way.
type exporter struct {
	selection
	o     ExportOptions
	pool  *transfer.Pool
	meter transfer.Meter
	plan  *convert.Plan // of an export to another format
	// foreign is the plan of an export to a foreign format.
	foreign           formats.Plan
	versions, expired int64 // of a history
	stale             []string
	private           []string // arrays that other programs do not read
	ozx               bool     // an archive of OME-Zarr, whose documents come first
	allStale          int64
}

// maxStale bounds the groups of ExportResult.Stale.
const maxStale = 10

// noteStale notes the groups whose consolidated metadata differs from the documents below.
// documents are the keys of all documents that were copied.
func (ex *exporter) noteStale(ctx context.Context, documents []string) error {
	if ex.told() {
		return nil // the store has no listing to compare the copy with
	}
	var mu sync.Mutex
	var found []string
	err := ex.pool.Run(ctx, len(documents), func(ctx context.Context, i int) error {
		group, name := names.Parent(documents[i]), path.Base(documents[i])
		v := map[string]zarr.Version{names.V2Metadata: zarr.V2, names.V3: zarr.V3}[name]
		if v == 0 {
			return nil
		}
		stale, err := staleCopies(ctx, ex.view, ex.open, group, v)
		if stale {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, names.Relative(group, ex.at.Path))
		}
		return err
	})
	slices.Sort(found)
	ex.allStale, ex.stale = int64(len(found)), found[:min(len(found), maxStale)]
	return err
}

func (ex *exporter) toDir(ctx context.Context, dest string) (err error) {
	store, err := dirkv.Create(dest, &dirkv.Options{NoSync: true})
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, store.Close()); err != nil && ex.foreign != nil {
			err = errors.Join(err, os.RemoveAll(dest)) // nothing goes on with it
		}
	}()
	if ex.o.Resume {
		// A stopped export may have left temporaries.
		if _, err := store.Clean(ctx, 0); err != nil {
			return err
		}
	}
	return ex.toStore(ctx, store, store.Sync)
}

// noSync is for stores whose values need no sync, or get it when the store is closed.
func noSync(context.Context) error { return nil }

// toStore copies everything, documents last. sync makes the copied values durable.
func (ex *exporter) toStore(ctx context.Context, store kv.Writer, sync func(context.Context) error) error {
	if ex.o.Resume {
		if err := ex.onlyOurs(ctx, store.(kv.Store)); err != nil {
			return err
		}
	}
	var documents []string
	steps := []func() error{
		func() error {
			return transfer.Batches(ex.keys(ctx), func(keys []string) error {
				chunks := keys[:0:0]
				for _, k := range keys {
					if names.IsDocument(k) {
						documents = append(documents, k)
					} else {
						chunks = append(chunks, k)
					}
				}
				if ex.ozx {
					return nil
				}
				return ex.copyAll(ctx, store, chunks)
			})
		},
		func() error {
			if ex.ozx {
				slices.SortFunc(documents, names.Above)
			}
			if err := ex.copyAll(ctx, store, documents); err != nil {
				return err
			}
			return ex.noteStale(ctx, documents)
		},
	}
	switch {
	case ex.foreign != nil:
		steps = []func() error{func() error { return ex.writeForeign(ctx, store) }}
	case ex.plan != nil:
		steps = []func() error{
			func() error { return ex.plan.CopyChunks(ctx, store, ex.pool, ex.count) },
			func() error { return ex.plan.CopyDocuments(ctx, store, ex.count) },
		}
	}
	switch {
	case ex.ozx && ex.plan != nil:
		slices.Reverse(steps)
	case ex.ozx:
		steps = append(steps, func() error {
			return transfer.Batches(ex.keys(ctx), func(keys []string) error {
				return ex.copyAll(ctx, store, slices.DeleteFunc(keys, names.IsDocument))
			})
		})
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
		if err := sync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// overStore copies all keys to a store that has contents, and then deletes the
// keys that were not copied.
func (ex *exporter) overStore(ctx context.Context, store kv.Store) error {
	to := &noting{Store: store, set: map[[16]byte]struct{}{}}
	if err := ex.toStore(ctx, to, noSync); err != nil {
		return err
	}
	// Keys are collected first: deleting while the store lists would rely on more
	// than Lister promises.
	after, stale := "", []string(nil)
	for {
		stale = stale[:0]
		for key, err := range store.List(ctx, kv.ListOptions{After: after}) {
			if err != nil {
				return err
			}
			if to.has(key) {
				continue
			}
			if stale = append(stale, key); len(stale) == transfer.BatchKeys {
				break
			}
		}
		if len(stale) == 0 {
			return nil
		}
		if err := kv.DeleteAll(ctx, store, stale); err != nil {
			return err
		}
		after = stale[len(stale)-1]
	}
}

// noting is a store that notes which keys are set, by a hash of 16 bytes.
type noting struct {
	kv.Store
	mu  sync.Mutex
	set map[[16]byte]struct{}
}

func keyHash(key string) [16]byte {
	sum := digest.Of([]byte(key))
	return [16]byte(sum[:16])
}

func (n *noting) Set(ctx context.Context, key string, value []byte) error {
	if err := n.Store.Set(ctx, key, value); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.set[keyHash(key)] = struct{}{}
	return nil
}

// has reports whether a key was set.
func (n *noting) has(key string) bool {
	_, ok := n.set[keyHash(key)]
	return ok
}

// onlyOurs makes sure that a directory holds nothing that is not exported:
// it would become part of the arrays there.
func (ex *exporter) onlyOurs(ctx context.Context, store kv.Lister) error {
	next, stop := iter.Pull2(ex.keys(ctx))
	defer stop()
	ours, err, more := next()
	for key, lerr := range store.List(ctx, kv.ListOptions{}) {
		if lerr != nil {
			return lerr
		}
		for more && err == nil && ours[len(ex.prefix):] < key {
			ours, err, more = next()
		}
		if err != nil {
			return err
		}
		if !more || ours[len(ex.prefix):] != key {
			return fmt.Errorf("%s is there, which this version does not have: %w", key, errThere)
		}
	}
	return nil
}

func (ex *exporter) copyAll(ctx context.Context, to kv.Writer, keys []string) error {
	return ex.pool.Run(ctx, len(keys), func(ctx context.Context, i int) error {
		v, err := listing.Locate(ctx, ex.view, keys[i])
		if v == nil {
			return err
		}
		key := strings.TrimPrefix(keys[i], ex.prefix)
		if !ex.o.Resume || !transfer.Holds(ctx, to.(kv.Store), key, v) {
			if err := transfer.SetValue(ctx, to, key, v); err != nil {
				return fmt.Errorf("%s: %w", keys[i], err)
			}
		}
		ex.meter.Add(v.Size(), ex.o.Progress)
		return nil
	})
}

func (ex *exporter) toZip(ctx context.Context, dest string) error {
	z, err := zipkv.Create(dest)
	if err != nil {
		return err
	}
	ex.pool = transfer.NewPool(1) // a single worker makes the bytes of the archive depend on the input alone
	if err = ex.toStore(ctx, z, noSync); err == nil && ex.ozx {
		err = ex.comment(ctx, z)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		err = errors.Join(err, z.Abort())
	}
	return err
}

// comment sets the comment of an archive of OME-Zarr (RFC-9): the version that the root has.
func (ex *exporter) comment(ctx context.Context, z *zipkv.Writer) error {
	var view kv.Reader = ex.view
	key := ex.prefix + names.V3
	if ex.plan != nil {
		view, key = ex.plan.Documents, names.V3
	}
	doc, err := kv.Get(ctx, view, key)
	if err == nil {
		doc, err = zarr.StrictJSON(doc)
	}
	var root struct {
		Attributes struct {
			OME struct {
				Version string `json:"version"`
			} `json:"ome"`
		} `json:"attributes"`
	}
	if err == nil && json.Unmarshal(doc, &root) == nil && root.Attributes.OME.Version != "" {
		text, _ := json.Marshal(root.Attributes.OME.Version) // of a string
		z.SetComment(fmt.Sprintf(`{"ome": {"version": %s}}`, text))
	}
	if errors.Is(err, kv.ErrNotFound) {
		err = nil
	}
	return err
}

// count notes one more key.
func (ex *exporter) count(bytes int64) { ex.meter.Add(bytes, ex.o.Progress) }
