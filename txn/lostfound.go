package txn

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

type packRecord = pack.Record

// lostAndFound walks through the packs behind what the restored index knows and
// puts what it finds on a branch of the staged index.
func (v *salvager) lostAndFound(ctx context.Context, staged string, best *candidate) (err error) {
	ends := map[pack.ID]uint64{}
	if best != nil && best.r.Found == 0 {
		// The index is exact: whatever it does not name before its ends is dead.
		if ends, err = packEnds(v.fs, best.path); err != nil {
			return err
		}
	}
	db, err := open(v.dir, staged, v.opts, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	f := finder{db: db, r: v.r, ends: ends, arrays: map[[16]byte]string{}, progress: v.o.Progress}
	// A damaged index has to be read in order to know what it names.
	if best != nil && best.r.Found > 0 {
		c := newChecker(db, CheckOptions{})
		err := c.walkAll(ctx)
		c.snap.Close()
		if err != nil {
			return err
		}
		f.known = &c.payloads
	}
	return f.run(ctx)
}

// packEnds reads the table of packs of an index.
func packEnds(fs index.FS, path string) (ends map[pack.ID]uint64, err error) {
	idx, err := index.Open(path, &index.Options{FS: fs, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, idx.Close()) }()
	ends = map[pack.ID]uint64{}
	for i, err := range catalog.Packs.All(idx) {
		if err != nil {
			return nil, err
		}
		ends[i.ID] = i.End
	}
	return ends, nil
}

// finder puts payloads that nobody knows on a branch.
type finder struct {
	db       *DB
	r        *SalvageReport
	ends     map[pack.ID]uint64
	known    *reach.AddressSet // named by what could be read; nil if ends say it all
	arrays   map[[16]byte]string
	s        *Session
	progress func(CheckProgress)
	done     CheckProgress
}

func (f *finder) run(ctx context.Context) error {
	infos := f.db.packs.Infos()
	for _, i := range infos {
		f.done.TotalBytes += int64(i.Size - min(f.ends[i.ID], i.Size))
	}
	for _, i := range infos {
		from := f.ends[i.ID]
		if i.Missing || from >= i.Size {
			continue
		}
		before := f.done.Bytes
		for rec, err := range f.db.packs.Records(ctx, i.ID, from) {
			var damage *pack.CorruptError
			if errors.As(err, &damage) {
				f.r.Damaged++
				continue
			}
			if err == nil {
				err = f.record(ctx, rec)
			}
			if err != nil {
				return err
			}
			f.done.Bytes = before + int64(rec.Offset+rec.Length-min(from, rec.Offset))
			f.report()
		}
		f.done.Bytes = before + int64(i.Size-from)
		f.report()
	}
	if f.s == nil {
		return nil
	}
	_, err := f.s.Commit(ctx, CommitOptions{
		Message: fmt.Sprintf("salvage: %d payloads of %d bytes in %d arrays, newer than %s", f.r.Found, f.r.FoundBytes, f.r.Arrays, orNothing(f.r.Source)),
		op:      "salvage",
	})
	return err
}

func (f *finder) report() {
	if f.progress != nil {
		f.done.Payloads = f.r.Found
		f.progress(f.done)
	}
}

func orNothing(source string) string {
	if source == "" {
		return "nothing"
	}
	return source
}

// record puts one payload on the branch, if it is sound and nobody knows it.
func (f *finder) record(ctx context.Context, rec packRecord) error {
	if f.known != nil && rec.Length >= reach.AddressSlot && f.known.Has(rec.Address) {
		return nil
	}
	sum, err := f.db.sumOf(ctx, rec)
	var damage *pack.CorruptError
	if errors.As(err, &damage) {
		f.r.Damaged++
		return nil
	}
	if err != nil {
		return err
	}
	if f.s == nil {
		if f.s, err = f.db.beginLostAndFound(ctx); err != nil {
			return err
		}
	}
	key, err := f.key(ctx, rec)
	if err != nil {
		return err
	}
	old, err := f.s.lookup(ctx, key)
	switch {
	case err == nil && old.ContentSum() == sum:
		return nil
	case err == nil:
		a := addressOf(old)
		if err := f.put(ctx, fmt.Sprintf("older/%v-%d/%s", a.Pack, a.Offset, key), old); err != nil {
			return err
		}
	case !errors.Is(err, kv.ErrNotFound):
		return err
	}
	f.r.Found++
	f.r.FoundBytes += int64(rec.Length)
	return f.put(ctx, key, nativeValue(rec, sum))
}

func nativeValue(rec packRecord, sum digest.Sum) tree.Value {
	return tree.Value{Kind: tree.KindNative, Sum: sum, Pack: tree.PackID(rec.Pack), Offset: rec.Offset, Length: rec.Length}
}

func (f *finder) put(ctx context.Context, key string, v tree.Value) error {
	return f.s.put(ctx, namespace.Edit{Key: key, Value: v}, nil)
}

// key is where a payload belongs on the branch.
func (f *finder) key(ctx context.Context, rec packRecord) (string, error) {
	name := string(rec.Owner.Key)
	key := "documents/" + name
	if rec.Owner.Array != [16]byte{} {
		dir, err := f.array(ctx, rec.Owner.Array)
		if err != nil {
			return "", err
		}
		key = dir + name
	}
	if namespace.CheckKey(key) != nil {
		key = fmt.Sprintf("unknown/%v-%d", rec.Pack, rec.Offset)
	}
	return key, nil
}

// array returns the directory of an array. If a branch has the array, its
// metadata is put there, so that the chunks can be read as one.
func (f *finder) array(ctx context.Context, id [16]byte) (string, error) {
	if dir, ok := f.arrays[id]; ok {
		return dir, nil
	}
	dir := "arrays/" + hex.EncodeToString(id[:]) + "/"
	f.arrays[id] = dir
	f.r.Arrays++
	for _, head := range f.db.Branches() {
		c, err := f.db.Lookup(ctx, head.Commit)
		if err != nil {
			continue // damaged; the report says so
		}
		docs, err := f.db.space.Documents(ctx, c.Root, id)
		if err != nil {
			continue
		}
		for name, v := range docs {
			if err := f.put(ctx, dir+name, v); err != nil {
				return "", err
			}
		}
		if len(docs) > 0 {
			break
		}
	}
	return dir, nil
}

// beginLostAndFound opens a session on the branch, which is made if it is not
// there, without a parent.
func (db *DB) beginLostAndFound(ctx context.Context) (*Session, error) {
	if _, ok := db.heads.get(catalog.HeadRef(LostAndFound)); !ok {
		now := db.opts.Now().UTC()
		first := &Commit{Author: db.opts.Author, Time: now, Message: "lost and found"}
		rec := catalog.SealCommit(first)
		db.commit.lock()
		defer db.commit.unlock()
		batch := db.idx.NewBatch()
		defer batch.Close()
		catalog.PutCommit(batch, first.ID, rec)
		moves := []RefMove{{Ref: catalog.HeadRef(LostAndFound), New: first.ID, Time: now, Author: db.opts.Author, Op: "salvage"}}
		if err := db.commitRefs(batch, nil, moves); err != nil {
			return nil, err
		}
	}
	return db.Begin(ctx, LostAndFound)
}
