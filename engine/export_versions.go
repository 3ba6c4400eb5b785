package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/convert"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// versionsPlan writes keys and bytes as they are stored into a format with versions:
//
//	commits, parents first ─▶ changes ─▶ values several at a time ─▶ formats.Writer
type versionsPlan struct {
	ex     *exporter
	format *formats.Format
	view   kv.Reader // that values are read from, without a history
	db     *DB       // nil if the source is no version of a database
	head   *Commit   // that is exported, nil without a database
	list   []*Commit // that are written, parents before children; with a history
	names  []Ref     // branches and tags, with a history
	tags   int       // how many of names, the last ones, are tags
	mapped func(url string) string
}

// planVersions prepares an export to a format with versions.
func (ex *exporter) planVersions(ctx context.Context, f *formats.Format) (formats.Plan, error) {
	mapped, err := refs.Mapper(ex.src.env.Follow.Map)
	if err != nil {
		return nil, err
	}
	p := &versionsPlan{ex: ex, format: f, view: ex.view, mapped: mapped}
	if snap, ok := ex.at.View.(*Snapshot); ok {
		p.db, p.head = snap.db, snap.Commit()
	}
	if !ex.o.Foreign.History {
		ex.plan, _, err = ex.planConversion(ctx, zarr.V3, convert.Options{OnlyNodes: true})
		if err != nil || ex.plan == nil {
			return p, err
		}
		p.view = convert.NewView(ex.view, ex.open, zarr.V3, p.head != nil)
		return p, nil
	}
	if p.db == nil {
		return nil, fmt.Errorf("%s: only a version of a database has a history, not a store or session: %w", ex.src.name(), errors.ErrUnsupported)
	}
	branches, tags, err := p.db.Versions().Remote().Refs(ctx)
	if err != nil {
		return p, err
	}
	p.names, p.tags = append(branches, tags...), len(tags)
	return p, p.find(ctx)
}

// find lists the commits that names reach and whose contents are there.
func (p *versionsPlan) find(ctx context.Context) error {
	seen := map[txn.CommitID]*Commit{}
	var waiting []txn.CommitID
	for _, r := range p.names {
		waiting = append(waiting, r.Commit)
	}
	for len(waiting) > 0 {
		id := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if seen[id] != nil {
			continue
		}
		c, err := p.db.store.Lookup(ctx, id)
		if err != nil {
			return err
		}
		seen[id] = c
		waiting = append(waiting, c.Parents...)
	}
	for id, c := range seen {
		gone, err := p.db.store.Expired(ctx, id)
		if err != nil {
			return err
		}
		if gone {
			p.ex.expired++
		} else {
			p.list = append(p.list, c)
		}
	}
	slices.SortFunc(p.list, func(a, b *Commit) int {
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), a.Time.Compare(b.Time), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return nil
}

func (p *versionsPlan) Write(ctx context.Context, out formats.Output) error {
	files, ok := out.Dst.(formats.Files)
	if !ok {
		return fmt.Errorf("%s is written to a directory, not a zip archive: %w", p.format.Scheme, errors.ErrUnsupported)
	}
	w, err := p.format.Create(ctx, files)
	if err != nil {
		return err
	}
	if !p.ex.o.Foreign.History {
		v := formats.Version{Time: time.Now()}
		if p.head != nil {
			v = describe(p.head)
		}
		changes := p.all(ctx, p.ex.view)
		if p.ex.plan != nil {
			changes = p.converted(ctx)
		}
		id, err := w.Commit(ctx, v, p.stored(ctx, w, p.view, changes))
		if err != nil {
			return err
		}
		return w.Finish(ctx, []formats.Name{{Name: txn.MainBranch, ID: id}})
	}
	ids := map[txn.CommitID]string{}
	for i, c := range p.list {
		if ids[c.ID], err = p.commit(ctx, w, c, ids); err != nil {
			return fmt.Errorf("version %s: %w", c.ID.Short(), err)
		}
		if p.ex.o.Progress != nil {
			p.ex.o.Progress(Progress{Keys: int64(i + 1), TotalKeys: int64(len(p.list)), Bytes: p.ex.meter.Bytes.Load()})
		}
	}
	var names []formats.Name
	for i, r := range p.names {
		if id := ids[r.Commit]; id != "" {
			names = append(names, formats.Name{Tag: i >= len(p.names)-p.tags, Name: r.Name, ID: id})
		}
	}
	return w.Finish(ctx, names)
}

// describe describes a commit; parents are left to the caller.
func describe(c *Commit) formats.Version {
	return formats.Version{ID: c.ID.String(), Time: c.Time, Message: c.Message, Author: c.Author, Properties: c.Properties}
}

// commit writes the version of a commit: the changes since its first parent if that is
// there, else everything.
func (p *versionsPlan) commit(ctx context.Context, w formats.Writer, c *Commit, ids map[txn.CommitID]string) (string, error) {
	snap, err := p.db.Snapshot(ctx, c.ID)
	if err != nil {
		return "", err
	}
	defer snap.Close()
	v := describe(c)
	changes := p.all(ctx, snap)
	if len(c.Parents) > 0 && ids[c.Parents[0]] != "" {
		changes = p.db.store.Diff(ctx, c.Parents[0], c.ID, p.ex.prefix)
		for _, parent := range c.Parents {
			if id := ids[parent]; id != "" {
				v.Parents = append(v.Parents, id)
			}
		}
	}
	p.ex.versions++
	return w.Commit(ctx, v, p.stored(ctx, w, snap, changes))
}

// all yields the contents of a view as changes.
func (p *versionsPlan) all(ctx context.Context, view kv.ReadLister) iter.Seq2[txn.Change, error] {
	return func(yield func(txn.Change, error) bool) {
		if snap, ok := view.(*Snapshot); ok { // Values tells virtual values from others
			for v, err := range snap.Values(ctx, p.ex.prefix) {
				if (err != nil || wanted(p.ex.open.Version, v.Key)) && !yield(txn.Change{Key: v.Key, New: &v}, err) {
					return
				}
			}
			return
		}
		for key, err := range p.ex.keys(ctx) {
			if !yield(txn.Change{Key: key, New: &txn.KeyValue{Key: key}}, err) {
				return
			}
		}
	}
}

// converted yields the result of the planned conversion, as changes: the new documents, and
// the chunks under their new keys.
func (p *versionsPlan) converted(ctx context.Context) iter.Seq2[txn.Change, error] {
	return func(yield func(txn.Change, error) bool) {
		from := p.ex.prefix
		for key, err := range p.ex.plan.Documents.List(ctx, kv.ListOptions{}) {
			if !yield(txn.Change{Key: from + key, New: &txn.KeyValue{Key: from + key}}, err) {
				return
			}
		}
		for i := range p.ex.plan.Arrays {
			a := &p.ex.plan.Arrays[i]
			prefix, parse := convert.ChunkKeys(a.From)
			for v, err := range p.values(ctx, prefix) {
				coords, ok := []int64(nil), false
				if err == nil {
					coords, ok = parse(v.Key)
				}
				if ok {
					v.Key = from + a.Key(coords)
				}
				if (ok || err != nil) && !yield(txn.Change{Key: v.Key, New: &v}, err) {
					return
				}
			}
		}
	}
}

// values yields the keys with a prefix. For a version of a database it describes their values
// too.
func (p *versionsPlan) values(ctx context.Context, prefix string) iter.Seq2[txn.KeyValue, error] {
	if v, ok := p.ex.view.(version); ok {
		return v.Values(ctx, prefix)
	}
	return func(yield func(txn.KeyValue, error) bool) {
		for key, err := range p.ex.view.List(ctx, kv.ListOptions{Prefix: prefix}) {
			if !yield(txn.KeyValue{Key: key}, err) {
				return
			}
		}
	}
}

// stored passes changes on to a writer that gets their values.
func (p *versionsPlan) stored(ctx context.Context, w formats.Writer, view kv.Reader, changes iter.Seq2[txn.Change, error]) iter.Seq2[formats.Change, error] {
	return func(yield func(formats.Change, error) bool) {
		err := transfer.Batches(changes, func(in []txn.Change) error {
			out, err := p.batch(ctx, w, view, in)
			if err != nil {
				return err
			}
			for i := range out {
				if !yield(out[i], nil) {
					return errEnough
				}
			}
			return nil
		})
		if err != nil && err != errEnough {
			yield(formats.Change{}, err)
		}
	}
}

// batch stores the values of some changes, unless they are virtual and stay so.
func (p *versionsPlan) batch(ctx context.Context, w formats.Writer, view kv.Reader, in []txn.Change) ([]formats.Change, error) {
	out := make([]formats.Change, 0, len(in))
	add := func(c formats.Change, bytes int64) {
		c.Key = strings.TrimPrefix(c.Key, p.ex.prefix)
		out = append(out, c)
		var report func(Progress)
		if !p.ex.o.Foreign.History {
			report = p.ex.o.Progress
		}
		p.ex.meter.Add(bytes, report)
	}
	var copied []string         // keys
	var whole []*formats.Change // virtual ones of whole files, whose length is asked for
	for i := range in {
		c := formats.Change{Entry: refs.Entry{Key: in[i].Key}}
		switch v := in[i].New; {
		case v == nil:
			c.Deleted = true
			add(c, 0)
		case v.Kind != "virtual":
			copied = append(copied, c.Key)
		default:
			c.Reference = refs.Reference{URL: p.mapped(v.URL), Offset: int64(v.Offset), Length: v.Length, Condition: virtual.ConditionOf(v.Validator)}
			if c.URL != v.URL {
				c.Condition = "" // tags and times are of the other place
			}
			if add(c, 0); v.Length < 0 {
				whole = append(whole, &out[len(out)-1])
			}
		}
	}
	err := p.ex.pool.Run(ctx, len(whole), func(ctx context.Context, i int) error {
		v, err := kv.Locate(ctx, view, p.ex.prefix+whole[i].Key)
		if err == nil {
			whole[i].Offset, whole[i].Length = 0, v.Size()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	err = transfer.EachValue(ctx, p.ex.pool, view, copied, func(ctx context.Context, key string, b []byte) error {
		r, err := w.Put(ctx, strings.TrimPrefix(key, p.ex.prefix), b)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			add(formats.Change{Entry: refs.Entry{Key: key, Reference: r}}, int64(len(b)))
		}
		return err
	})
	return out, err
}
