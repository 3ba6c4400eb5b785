package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/icechunk"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
)

// ExportIcechunkOptions say what goes into an Icechunk repository. The zero value
// writes one version.
type ExportIcechunkOptions struct {
	// History writes every version that a branch or tag reaches, and those, in place
	// of the one version that the source names.
	History bool
	// Progress, if set, is told how many versions are written. Calls do not overlap.
	Progress func(Progress)
}

// ExportIcechunkResult is what was written.
type ExportIcechunkResult struct {
	Versions int64
	// Keys were written or deleted, over all versions; Bytes copied.
	Keys, Bytes int64
	// Expired versions have no data any more and were left out.
	Expired int64
}

// Names of metadata of snapshots that are written.
const (
	metaCommit = "zarrdb.commit"
	metaMerged = "zarrdb.merged"
	metaAuthor = "author"
)

// ExportIcechunk writes the database that src names a version of, at and below its
// path, as a new Icechunk repository of version 1 of the specification: nodes of Zarr
// v3 as they are, chunks of the database as chunks, virtual chunks as virtual chunks.
// A commit becomes a snapshot on its first parent; a merge names the snapshots of its
// other parents in the metadata "zarrdb.merged". Keys that belong to no node of Zarr v3
// are formats.ErrUnsupported.
//
// The branch main of the repository, which makes it one, is written last. If the export
// fails, a directory of this machine is removed. Something at dest is fs.ErrExist.
func ExportIcechunk(ctx context.Context, src *Source, dest string, o ExportIcechunkOptions) (*ExportIcechunkResult, error) {
	at := src.at
	view, ok := at.View.(*Snapshot)
	if !ok || at.db == nil {
		return nil, fmt.Errorf("%s: %w: only a database becomes an Icechunk repository", src.name(), ErrFormat)
	}
	d, err := src.destination(ctx, dest)
	if err == nil {
		err = separate(d.lies, at.lies)
	}
	if err == nil {
		_, err = d.check(ctx, ExportOptions{})
	}
	if err == nil {
		err = src.unreferred(ctx, at, d.lies)
	}
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	ex := &icechunkExporter{db: at.db, pool: src.pool, prefix: names.Dir(at.Path), o: o, ids: map[txn.CommitID]string{}}
	if d.store != nil {
		err = ex.run(ctx, d.store, view.Commit())
	} else {
		err = ex.toDir(ctx, d.lies.path, view.Commit())
	}
	if err != nil {
		return nil, fmt.Errorf("export to %s: %w", dest, err)
	}
	ex.res.Bytes = ex.bytes.Load()
	return &ex.res, nil
}

type icechunkExporter struct {
	db     *DB
	pool   *pool
	prefix string // of keys
	o      ExportIcechunkOptions
	w      *icechunk.Writer
	ids    map[txn.CommitID]string // snapshots of commits
	bytes  atomic.Int64
	res    ExportIcechunkResult
}

func (ex *icechunkExporter) toDir(ctx context.Context, dest string, head *txn.Commit) (err error) {
	store, err := dirkv.Create(dest, &dirkv.Options{NoSync: true})
	if err != nil {
		return err
	}
	if err = ex.run(ctx, store, head); err == nil {
		err = store.Sync(ctx)
	}
	if err = errors.Join(err, store.Close()); err != nil {
		err = errors.Join(err, os.RemoveAll(dest))
	}
	return err
}

func (ex *icechunkExporter) run(ctx context.Context, to icechunk.Store, head *txn.Commit) (err error) {
	if ex.w, err = icechunk.Create(ctx, to); err != nil {
		return err
	}
	list := []*txn.Commit{head}
	refs := []formats.Name{{Name: txn.MainBranch}}
	commits := []txn.CommitID{head.ID}
	if ex.o.History {
		refs, commits = nil, nil
		for i, set := range [][]Ref{ex.db.Branches(), ex.db.Tags()} {
			for _, r := range set {
				refs = append(refs, formats.Name{Tag: i == 1, Name: r.Name})
				commits = append(commits, r.Commit)
			}
		}
		if list, err = ex.commits(ctx, commits); err != nil {
			return err
		}
	}
	for i, c := range list {
		if err := ex.commit(ctx, c); err != nil {
			return fmt.Errorf("commit %v: %w", c.ID, err)
		}
		if ex.o.Progress != nil {
			ex.o.Progress(Progress{Keys: int64(i + 1), TotalKeys: int64(len(list)), Bytes: ex.bytes.Load()})
		}
	}
	for i := range refs {
		refs[i].ID = ex.ids[commits[i]]
	}
	return ex.w.Finish(ctx, slices.DeleteFunc(refs, func(n formats.Name) bool { return n.ID == "" }))
}

// commits lists what the heads reach, parents before children.
func (ex *icechunkExporter) commits(ctx context.Context, heads []txn.CommitID) ([]*txn.Commit, error) {
	seen := map[txn.CommitID]*txn.Commit{}
	for waiting := slices.Clone(heads); len(waiting) > 0; {
		id := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if seen[id] != nil {
			continue
		}
		c, err := ex.db.Lookup(ctx, id)
		if err != nil {
			return nil, err
		}
		seen[id] = c
		waiting = append(waiting, c.Parents...)
	}
	return slices.SortedFunc(maps.Values(seen), func(a, b *txn.Commit) int {
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), a.Time.Compare(b.Time), strings.Compare(a.ID.String(), b.ID.String()))
	}), nil
}

// commit writes the snapshot of a commit.
func (ex *icechunkExporter) commit(ctx context.Context, c *txn.Commit) error {
	if gone, err := ex.db.Expired(ctx, c.ID); gone || err != nil {
		ex.res.Expired++
		return err
	}
	snap, err := ex.db.Snapshot(ctx, c.ID)
	if err != nil {
		return err
	}
	defer snap.Close()
	changes := ex.everything(ctx, snap)
	out := icechunk.WriterCommit{Name: c.ID.String(), Message: c.Message, Time: c.Time, Metadata: maps.Clone(c.Properties)}
	if len(c.Parents) > 0 && ex.ids[c.Parents[0]] != "" {
		out.Parent = ex.ids[c.Parents[0]]
		changes = ex.db.Diff(ctx, c.Parents[0], c.ID, ex.prefix)
	} else if empty, err := isEmpty(ctx, snap); err != nil {
		return err
	} else if empty && len(c.Parents) == 0 {
		ex.ids[c.ID] = icechunk.Initial()
		return nil
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	out.Metadata[metaCommit] = c.ID.String()
	if c.Author != "" {
		out.Metadata[metaAuthor] = c.Author
	}
	if len(c.Parents) > 1 {
		var others []string
		for _, p := range c.Parents[1:] {
			others = append(others, ex.ids[p])
		}
		out.Metadata[metaMerged] = strings.Join(others, ",")
	}
	if ex.ids[c.ID], err = ex.w.Commit(ctx, out, ex.written(ctx, snap, changes)); err == nil {
		ex.res.Versions++
	}
	return err
}

func isEmpty(ctx context.Context, l kv.Lister) (bool, error) {
	any, err := kv.Any(ctx, l, "")
	return !any, err
}

// everything is what a version holds, as changes.
func (ex *icechunkExporter) everything(ctx context.Context, snap *Snapshot) iter.Seq2[txn.Change, error] {
	return func(yield func(txn.Change, error) bool) {
		for v, err := range snap.Values(ctx, ex.prefix) {
			if !yield(txn.Change{Key: v.Key, New: &v}, err) {
				return
			}
		}
	}
}

// written passes changes on, with the values that the repository gets.
func (ex *icechunkExporter) written(ctx context.Context, snap *Snapshot, changes iter.Seq2[txn.Change, error]) iter.Seq2[formats.Change, error] {
	return func(yield func(formats.Change, error) bool) {
		in := make([]txn.Change, 0, batchKeys)
		flush := func() bool {
			out := make([]formats.Change, len(in))
			err := ex.pool.Run(ctx, len(in), func(ctx context.Context, i int) error {
				var err error
				if out[i], err = ex.change(ctx, snap, &in[i]); err != nil {
					err = fmt.Errorf("%s: %w", in[i].Key, err)
				}
				return err
			})
			if err != nil {
				yield(formats.Change{}, err)
				return false
			}
			ex.res.Keys += int64(len(in))
			for _, c := range out {
				if !yield(c, nil) {
					return false
				}
			}
			in = in[:0]
			return true
		}
		for c, err := range changes {
			if err != nil {
				yield(formats.Change{}, err)
				return
			}
			if in = append(in, c); len(in) == batchKeys && !flush() {
				return
			}
		}
		flush()
	}
}

// change stores the value of a change in the repository, unless it is virtual.
func (ex *icechunkExporter) change(ctx context.Context, snap *Snapshot, c *txn.Change) (out formats.Change, err error) {
	out.Key = strings.TrimPrefix(c.Key, ex.prefix)
	switch {
	case c.New == nil:
		out.Deleted = true
		return out, nil
	case c.New.Kind == "virtual":
		out.Reference = refs.Reference{URL: c.New.URL, Offset: int64(c.New.Offset), Length: c.New.Length}
		if c.New.Length < 0 { // Icechunk has no whole files
			v, err := snap.Locate(ctx, c.Key)
			if err != nil {
				return out, err
			}
			out.Offset, out.Length = 0, v.Size()
		}
		return out, nil
	}
	v, err := snap.Locate(ctx, c.Key)
	if err != nil {
		return out, err
	}
	err = viewWhole(ctx, v, func(b []byte) error {
		ex.bytes.Add(int64(len(b)))
		if isMetadata(out.Key) {
			out.Data = slices.Clone(b)
			return nil
		}
		var err error
		out.Reference, err = ex.w.Chunk(ctx, b)
		return err
	})
	return out, err
}
