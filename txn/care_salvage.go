package txn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

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

// SalvageReport says what [Salvage] did.
type SalvageReport struct {
	// Dir is the database that can be opened now.
	Dir string
	// Source is what the index was restored from: "checkpoints/NAME", "index"
	// if that has the fewest problems, or "" if there was nothing.
	Source string
	// AsOf is when a branch or tag was last moved in what Source is: a commit
	// that was made later is lost, but for its payloads (Found).
	AsOf time.Time
	// Refused says of each better candidate why it was not taken.
	Refused []string
	// Problems that are left in what was restored.
	Problems []Problem
	// Quarantine is where the damaged index is now, "" if there was none.
	Quarantine string
	// Found payloads of FoundBytes, newer than the index, are on the branch
	// [LostAndFound]; Arrays is how many arrays they belong to. Damaged is how
	// many stretches of packs hold no readable record.
	Found, FoundBytes, Arrays, Damaged int64
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
	v := salvager{fs: opts.FS, from: dir, dir: dir, opts: opts, o: o, r: &SalvageReport{Dir: dir}}
	err := v.run(ctx)
	if err != nil && v.dir != dir { // copyPacks made it; else the next attempt would find it
		err = errors.Join(err, v.fs.RemoveAll(v.dir))
	}
	if err != nil && !errors.Is(err, ErrSound) {
		err = fmt.Errorf("salvage %s: %w", dir, err)
	}
	return v.r, err
}

type salvager struct {
	fs   index.FS
	from string // what is salvaged
	dir  string // the database that is made; the same in place
	opts Options
	o    SalvageOptions
	r    *SalvageReport

	refused []string // checkpoints of this directory that are no good
}

// candidate is an index that may be restored. Without any such index the name is empty.
type candidate struct {
	name string // in the directory
	*care.Checker
	packs []pack.Info
}

// stagedIndex is the new index until it is complete. Before it takes its place, it
// has a checkpoint: after a crash, that is the one to begin from.
const stagedIndex = "index.salvage"

func (v *salvager) run(ctx context.Context) error {
	if err := v.isDatabase(); err != nil {
		return err
	}
	var err error
	if v.o.To != "" {
		err = v.copyPacks(ctx)
	} else {
		err = index.MakeDir(v.fs, v.fs.PathJoin(v.dir, packDir)) // it may be lost too
	}
	if err != nil {
		return err
	}
	best, err := v.choose(ctx)
	if err != nil {
		return err
	}
	staged := v.fs.PathJoin(v.dir, stagedIndex)
	if err := v.stage(staged, best); err != nil {
		return err
	}
	// Checkpoints that are no good are newer than the new index will be, by name, and must
	// not be taken for its copies. The checkpoint from which the new index was made stays
	// until the new index is in place.
	for _, name := range v.refused {
		if name == best.name {
			continue
		}
		if _, err := v.setAside(name); err != nil {
			return err
		}
	}
	if err := v.lostAndFound(ctx, staged, best); err != nil {
		return err
	}
	return v.install(staged)
}

// isDatabase refuses directories that hold none.
func (v *salvager) isDatabase() error {
	err := readFormat(v.fs, v.from)
	if errors.Is(err, ErrNotDatabase) {
		// The packs alone are worth something too, and so is an index.
		names, _ := v.fs.List(v.fs.PathJoin(v.from, packDir))
		copies, _ := listCheckpoints(v.fs, v.from)
		begun, ierr := index.Begun(v.fs, v.fs.PathJoin(v.from, indexDir))
		if len(names) > 0 || len(copies) > 0 || begun || errors.Is(ierr, kv.ErrCorrupt) {
			return nil
		}
	}
	return err
}

// copyPacks gives a new directory the packs, by links if possible, and the name of the remote that has what is away. Packs do not
// change: the new database writes packs of its own.
func (v *salvager) copyPacks(ctx context.Context) error {
	fs := v.fs
	if _, err := fs.Stat(v.o.To); err == nil {
		return fmt.Errorf("%s: %w", v.o.To, ErrExists)
	}
	v.dir, v.r.Dir = v.o.To, v.o.To
	to, from := fs.PathJoin(v.dir, packDir), fs.PathJoin(v.from, packDir)
	if err := errors.Join(index.MakeTop(fs, v.dir), fs.MkdirAll(to, 0o777)); err != nil {
		return err
	}
	if b, err := index.ReadSmall(fs, fs.PathJoin(v.from, awayFile)); err == nil {
		if err := index.ReplaceSmall(fs, v.dir, awayFile, b); err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	names, err := fs.List(from)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := index.LinkOrCopy(fs, fs.PathJoin(from, name), fs.PathJoin(to, name)); err != nil {
			return err
		}
	}
	return errors.Join(index.SyncDir(fs, to), index.SyncDir(fs, v.dir), index.SyncDir(fs, fs.PathDir(v.dir)))
}

// choose looks at the present index and at the checkpoints, newest first, and
// returns the first one without problems, else the one with the fewest.
func (v *salvager) choose(ctx context.Context) (*candidate, error) {
	list, err := listCheckpoints(v.fs, v.from)
	if err != nil {
		return nil, err
	}
	best := &candidate{Checker: &care.Checker{}}
	names := []string{indexDir}
	for _, c := range slices.Backward(list) {
		names = append(names, checkpointDir+"/"+c.Name)
	}
	for _, name := range names {
		c, err := v.look(ctx, name)
		switch {
		case errors.Is(err, index.ErrLocked), errors.Is(err, ErrAway), care.Stop(err):
			return nil, err
		case err == nil && slices.ContainsFunc(c.Report.Problems, func(p Problem) bool { return errors.Is(p.Err, ErrAway) }):
			return nil, fmt.Errorf("%s: %v; nobody can tell before the remote can be read", name, c.Report.Problems[0])
		case err != nil:
			v.r.Refused = append(v.r.Refused, fmt.Sprintf("%s: %v", name, err))
		case c.Report.Found == 0 && name == indexDir && readFormat(v.fs, v.from) == nil:
			return nil, ErrSound
		case c.Report.Found == 0:
			return c, nil
		default:
			v.r.Refused = append(v.r.Refused, fmt.Sprintf("%s: %d problems, the first: %v", name, c.Report.Found, c.Report.Problems[0]))
			if best.name == "" || c.Report.Found < best.Report.Found {
				best = c
			}
		}
		if name != indexDir && v.dir == v.from {
			v.refused = append(v.refused, name)
		}
	}
	return best, nil
}

// look checks a candidate without changing it.
func (v *salvager) look(ctx context.Context, name string) (_ *candidate, err error) {
	opts := v.opts
	opts.ReadOnly = true
	db, err := open(v.dir, v.fs.PathJoin(v.from, name), opts, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c := &candidate{name: name, Checker: &care.Checker{Gone: name != indexDir}, packs: db.packs.Infos()}
	return c, db.look(ctx, c.Checker)
}

// stage puts the new index where a crash leaves it unused. It becomes one of this
// directory: with an incarnation of its own, so that no name of a pack is used
// twice, and with packs that reach as far as their files, on disk. The old ones do
// not grow any more, and those that a collection has removed since the checkpoint
// are forgotten.
func (v *salvager) stage(staged string, best *candidate) error {
	if err := v.fs.RemoveAll(staged); err != nil {
		return err
	}
	v.r.Source, v.r.AsOf, v.r.Problems = best.name, best.Moved, best.Report.Problems
	if best.name == "" {
		opts := v.opts
		opts.Durability = DurabilitySync
		db, err := open(v.dir, staged, opts, true)
		if err != nil {
			return err
		}
		best.packs = db.packs.Infos()
		if err := errors.Join(db.writeFirstCommit(), db.Close()); err != nil {
			return err
		}
	} else if err := index.Clone(v.fs, v.fs.PathJoin(v.from, best.name), staged); err != nil {
		return err
	}
	idx, err := index.Open(staged, &index.Options{FS: v.fs, MemTableBytes: v.opts.MemTableBytes})
	if err != nil {
		return err
	}
	batch := idx.NewBatch()
	for _, i := range best.packs {
		named := func(p Problem) bool { return p.Address.Pack == i.ID } // and missed
		if i.Missing && !slices.ContainsFunc(v.r.Problems, named) {
			catalog.Packs.Delete(batch, i.ID)
			continue
		}
		if !i.Missing && i.Size > i.End {
			err = errors.Join(err, v.syncPack(i.ID))
			i.End = i.Size
		}
		i.Sealed = true
		catalog.Packs.Put(batch, i)
	}
	var id [8]byte
	rand.Read(id[:])
	catalog.PutIncarnation(batch, id)
	if err == nil {
		err = batch.Commit(true)
	}
	batch.Close()
	return errors.Join(err, idx.Close())
}

// syncPack makes what a process wrote and did not sync durable.
func (v *salvager) syncPack(id pack.ID) error {
	f, err := v.fs.OpenReadWrite(v.fs.PathJoin(v.dir, packDir, pack.FileName(id)), index.WriteCategory)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// setAside puts something of the database into its quarantine.
func (v *salvager) setAside(name string) (string, error) {
	return care.SetAside(v.fs, v.dir, v.fs.PathJoin(v.dir, name), v.opts.Now())
}

// install puts the new index in the place of the damaged one, which is kept.
func (v *salvager) install(staged string) (err error) {
	fs, place := v.fs, v.fs.PathJoin(v.dir, indexDir)
	if exists(fs, place) {
		if v.r.Quarantine, err = v.setAside(indexDir); err != nil {
			return err
		}
	}
	err = errors.Join(care.Move(fs, staged, place), index.SyncDir(fs, v.dir))
	if err == nil && slices.Contains(v.refused, v.r.Source) {
		_, err = v.setAside(v.r.Source)
	}
	if err != nil {
		return err
	}
	if readFormat(fs, v.dir) == nil {
		return nil
	}
	return writeFormat(fs, v.dir)
}
