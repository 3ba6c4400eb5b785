package txn

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/away"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// LostAndFound is the branch that payloads are put on of which no commit is
// known any more.
const LostAndFound = "lost+found"

// SalvageOptions of [Salvage].
type SalvageOptions struct {
	// Options are those of the database. ReadOnly and Durability do not matter.
	Options
	// To is a directory for the restored database; it must not exist. "" is in
	// place: the damaged index is kept in "quarantine".
	To string
	// Progress is called from time to time with how many bytes of packs were walked
	// through. Calls do not overlap.
	Progress func(CheckProgress)
}

// Salvage makes a database with a lost or damaged index one that can be opened.
// The newest checkpoint of the index that is sound, else the one with the
// fewest problems, becomes the index. Payloads in packs that it does not know
// are verified and put on the branch [LostAndFound], under
//
//	arrays/IDENTITY/c/0/1       a chunk, in an array if the metadata is known
//	documents/a/b/doc           a document
//	older/PACK-OFFSET/…         what a later payload of the same name replaced
//
// Nothing is deleted, but for a To that could not be completed. No process may have the database open. Errors: ErrSound if
// the index is fine, ErrNotDatabase, index.ErrLocked.
func Salvage(ctx context.Context, dir string, o SalvageOptions) (*SalvageReport, error) {
	opts := o.Options.withDefaults()
	opts.ReadOnly, opts.Durability, opts.CheckpointCommits = false, DurabilityNone, -1
	if at, err := away.ReadPlace(opts.FS, dir); err != nil || at != nil && o.To != "" {
		return &SalvageReport{}, errors.Join(err, fmt.Errorf("salvage %s: %w of a lazy clone to another directory: restore it in place, or clone %s again", dir, errors.ErrUnsupported, at.Remote()))
	}
	v := &care.Salvager{FS: opts.FS, From: dir, To: o.To, Now: opts.Now, MemTable: opts.MemTableBytes}
	v.Opener = opener{opts, &v.Report, o.Progress}
	err := v.Run(ctx)
	if err != nil && !errors.Is(err, ErrSound) {
		err = fmt.Errorf("salvage %s: %w", dir, err)
	}
	return &v.Report, err
}

// opener opens databases for a salvage.
type opener struct {
	opts     Options
	r        *SalvageReport
	progress func(CheckProgress)
}

var _ care.Opener = opener{}

func (o opener) IsDatabase(dir string) error   { return readFormat(o.opts.FS, dir) }
func (o opener) MakeDatabase(dir string) error { return writeFormat(o.opts.FS, dir) }

func (o opener) Check(ctx context.Context, dir, path string, c *care.Checker) (_ []pack.Info, err error) {
	o.opts.ReadOnly = true
	db, err := open(dir, path, o.opts, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c.Parts = &db.care
	err = c.Run(ctx)
	if errors.Is(err, ErrAway) {
		err = fmt.Errorf("%w: %w", care.ErrUndecided, err)
	}
	return db.packs.Infos(), err
}

func (o opener) Create(dir, path string) ([]pack.Info, error) {
	o.opts.Durability = DurabilitySync
	db, err := open(dir, path, o.opts, true)
	if err != nil {
		return nil, err
	}
	return db.packs.Infos(), errors.Join(db.writeFirstCommit(), db.Close())
}

// Find walks through the packs behind what the restored index knows and
// puts what it finds on a branch of the staged index. Then that is complete, and has
// a checkpoint: with it the next salvage has nothing to look for.
func (o opener) Find(ctx context.Context, dir, staged string, best *care.Candidate) (err error) {
	db, err := open(dir, staged, o.opts, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	f := finder{db: db, r: o.r, ends: map[pack.ID]uint64{}, arrays: map[[16]byte]string{}, progress: o.progress}
	damaged := best.Report.Found > 0
	if damaged {
		f.known = &best.Payloads
	} else {
		// The index is exact: whatever it does not name before its ends is dead.
		for _, i := range best.Table {
			f.ends[i.ID] = i.End
		}
	}
	if err := f.run(ctx); err != nil {
		return err
	}
	err = db.Checkpoint(ctx)
	if damaged && !care.Stop(err) {
		return nil // what is still damaged may be refused as a copy
	}
	return err
}

// finder puts payloads that no version names on a branch.
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
			if err == nil {
				err = f.record(ctx, rec)
			}
			var damage *pack.CorruptError
			if errors.As(err, &damage) {
				f.r.Damaged++
				continue
			}
			if err != nil {
				return err
			}
			f.report(before + int64(rec.Offset+rec.Length-from))
		}
		f.report(before + int64(i.Size-from))
	}
	if f.s == nil {
		return nil
	}
	_, err := f.s.Commit(ctx, CommitOptions{
		Message: fmt.Sprintf("salvage: %d payloads of %d bytes in %d arrays, newer than %s", f.r.Found, f.r.FoundBytes, f.r.Arrays, cmp.Or(f.r.Source, "nothing")),
		op:      "salvage",
	})
	return err
}

func (f *finder) report(bytes int64) {
	f.done.Bytes = bytes
	if f.progress != nil {
		f.progress(f.done)
	}
}

// record puts one payload on the branch, if no version names it. A payload that is
// damaged is a *pack.CorruptError.
func (f *finder) record(ctx context.Context, rec pack.Record) error {
	if f.known != nil && f.known.Has(rec.Address) {
		return nil
	}
	var sum digest.Sum
	err := f.db.packs.Verify(ctx, rec.Address, func(b []byte) error {
		sum = digest.Of(b)
		return nil
	}, rec.Owner)
	if err != nil {
		return err
	}
	if f.s == nil {
		if err := f.begin(ctx); err != nil {
			return err
		}
	}
	key, err := f.key(ctx, rec)
	if err != nil {
		return err
	}
	old, err := f.s.home.lookup(ctx, key)
	switch {
	case err == nil && old.ContentSum() == sum:
		return nil
	case err == nil:
		a := catalog.AddressOf(old)
		if err := f.put(ctx, fmt.Sprintf("older/%v-%d/%s", a.Pack, a.Offset, key), old); err != nil {
			return err
		}
	case !errors.Is(err, kv.ErrNotFound):
		return err
	}
	f.r.Found++
	f.r.FoundBytes += int64(rec.Length)
	return f.put(ctx, key, tree.Value{Kind: tree.KindNative, Sum: sum, Pack: tree.PackID(rec.Pack), Offset: rec.Offset, Length: rec.Length})
}

// begin opens a session on the branch, which is made if it is not there, without a
// parent.
func (f *finder) begin(ctx context.Context) (err error) {
	if _, ok := f.db.heads.get(catalog.HeadRef(LostAndFound)); !ok {
		if err := f.db.beginBranch(LostAndFound, "lost and found", "salvage"); err != nil {
			return err
		}
	}
	f.s, err = f.db.Begin(ctx, LostAndFound)
	return err
}

func (f *finder) put(ctx context.Context, key string, v tree.Value) error {
	return f.s.put(ctx, namespace.Edit{Key: key, Value: v}, nil)
}

// key is where a payload belongs on the branch.
func (f *finder) key(ctx context.Context, rec pack.Record) (string, error) {
	dir := "documents/"
	if rec.Owner.Array != [16]byte{} {
		var err error
		if dir, err = f.array(ctx, rec.Owner.Array); err != nil {
			return "", err
		}
	}
	key := dir + string(rec.Owner.Key)
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
	for _, head := range f.db.heads.list(catalog.HeadPrefix) {
		c, err := f.db.Lookup(ctx, head.Commit)
		if err != nil {
			continue // damaged; the report says so
		}
		docs, err := f.db.space.Documents(ctx, c.Root, id)
		if err != nil || len(docs) == 0 {
			continue
		}
		for name, v := range docs {
			if err := f.put(ctx, dir+name, v); err != nil {
				return "", err
			}
		}
		break
	}
	return dir, nil
}
