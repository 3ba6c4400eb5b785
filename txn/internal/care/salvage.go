package care

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
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// ErrSound means that there is nothing to salvage: the index opens and a
// check finds nothing.
var ErrSound = errors.New("txn: the index is sound, there is nothing to salvage")

// SalvageReport says what a salvage did.
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
	// LostAndFound; Arrays is how many arrays they belong to. Damaged is how
	// many stretches of packs hold no readable record.
	Found, FoundBytes, Arrays, Damaged int64
}

// Opener opens the databases that a salvage looks at and makes.
type Opener interface {
	// IsDatabase fails unless a directory has the file that makes it a database, which MakeDatabase writes.
	IsDatabase(dir string) error
	MakeDatabase(dir string) error
	// Check runs a check on the index at a path with the packs in dir, changes neither, and returns the table of packs.
	Check(ctx context.Context, dir, path string, c *Checker) ([]pack.Info, error)
	// Create makes an index with an empty first commit, and returns the table of packs.
	Create(dir, path string) ([]pack.Info, error)
	// Find puts on a branch what lies in the packs of dir and the index at a path does not know.
	Find(ctx context.Context, dir, path string, best *Candidate) error
}

// Salvager makes a database with a lost or damaged index one that can be opened.
type Salvager struct {
	FS       index.FS
	From     string // what is salvaged
	To       string // a new directory for the database; "" is in place
	Now      func() time.Time
	MemTable int // bytes, for the new index
	Opener   Opener
	Report   SalvageReport

	dir     string   // the database that is made
	refused []string // checkpoints of this directory that are no good
}

// Candidate is an index that may be restored. Without any such index the name is empty.
type Candidate struct {
	name string // in the directory
	*Checker
	Table []pack.Info // of packs
}

// Run salvages. Nothing is deleted, but for a To that could not be completed. The error is
// [ErrSound] if the index is fine.
func (v *Salvager) Run(ctx context.Context) error {
	v.dir, v.Report.Dir = v.From, v.From
	err := v.run(ctx)
	if err != nil && v.dir != v.From { // copyPacks made it; else the next attempt would find it
		err = errors.Join(err, v.FS.RemoveAll(v.dir))
	}
	return err
}

// stagedIndex is the new index until it is complete. Before it takes its place, it
// has a checkpoint: after a crash, that is the one to begin from.
const stagedIndex = "index.salvage"

func (v *Salvager) run(ctx context.Context) error {
	if err := v.isDatabase(); err != nil {
		return err
	}
	var err error
	if v.To != "" {
		err = v.copyPacks(ctx)
	} else {
		err = index.MakeDir(v.FS, v.FS.PathJoin(v.dir, PackDir)) // it may be lost too
	}
	if err != nil {
		return err
	}
	best, err := v.choose(ctx)
	if err != nil {
		return err
	}
	staged := v.FS.PathJoin(v.dir, stagedIndex)
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
	if err := v.Opener.Find(ctx, v.dir, staged, best); err != nil {
		return err
	}
	return v.install(staged)
}

// isDatabase refuses directories that hold none.
func (v *Salvager) isDatabase() error {
	err := v.Opener.IsDatabase(v.From)
	if errors.Is(err, catalog.ErrNotDatabase) {
		// The packs alone are worth something too, and so is an index.
		names, _ := v.FS.List(v.FS.PathJoin(v.From, PackDir))
		copies, _ := ListCheckpoints(v.FS, v.From)
		begun, ierr := index.Begun(v.FS, v.FS.PathJoin(v.From, IndexDir))
		if len(names) > 0 || len(copies) > 0 || begun || errors.Is(ierr, kv.ErrCorrupt) {
			return nil
		}
	}
	return err
}

// copyPacks gives a new directory the packs, by links if possible. They do not
// change: the new database writes packs of its own.
func (v *Salvager) copyPacks(ctx context.Context) error {
	fs := v.FS
	if _, err := fs.Stat(v.To); err == nil {
		return fmt.Errorf("%s: %w", v.To, namespace.ErrExists)
	}
	v.dir, v.Report.Dir = v.To, v.To
	to, from := fs.PathJoin(v.dir, PackDir), fs.PathJoin(v.From, PackDir)
	if err := errors.Join(index.MakeTop(fs, v.dir), fs.MkdirAll(to, 0o777)); err != nil {
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

// ErrUndecided means that what is not here may be in a remote, which cannot be asked.
var ErrUndecided = errors.New("txn: whether the index is sound cannot be told without the remote")

// choose looks at the present index and at the checkpoints, newest first, and
// returns the first one without problems, else the one with the fewest.
func (v *Salvager) choose(ctx context.Context) (*Candidate, error) {
	list, err := ListCheckpoints(v.FS, v.From)
	if err != nil {
		return nil, err
	}
	best := &Candidate{Checker: &Checker{}}
	names := []string{IndexDir}
	for _, c := range slices.Backward(list) {
		names = append(names, CheckpointDir+"/"+c.Name)
	}
	for _, name := range names {
		c, err := v.look(ctx, name)
		switch {
		case errors.Is(err, index.ErrLocked), errors.Is(err, ErrUndecided), Stop(err):
			return nil, err
		case err == nil && slices.ContainsFunc(c.Report.Problems, func(p Problem) bool { return errors.Is(p.Err, ErrUndecided) }):
			return nil, fmt.Errorf("%s: %w, such as of %v", name, ErrUndecided, c.Report.Problems[0])
		case err != nil:
			v.Report.Refused = append(v.Report.Refused, fmt.Sprintf("%s: %v", name, err))
		case c.Report.Found == 0 && name == IndexDir && v.Opener.IsDatabase(v.From) == nil:
			return nil, ErrSound
		case c.Report.Found == 0:
			return c, nil
		default:
			v.Report.Refused = append(v.Report.Refused, fmt.Sprintf("%s: %d problems, the first: %v", name, c.Report.Found, c.Report.Problems[0]))
			if best.name == "" || c.Report.Found < best.Report.Found {
				best = c
			}
		}
		if name != IndexDir && v.dir == v.From {
			v.refused = append(v.refused, name)
		}
	}
	return best, nil
}

// look checks a candidate without changing it.
func (v *Salvager) look(ctx context.Context, name string) (c *Candidate, err error) {
	c = &Candidate{name: name, Checker: &Checker{Gone: name != IndexDir}}
	c.Table, err = v.Opener.Check(ctx, v.dir, v.FS.PathJoin(v.From, name), c.Checker)
	return c, err
}

// stage puts the new index where a crash leaves it unused. It becomes one of this
// directory: with an incarnation of its own, so that no name of a pack is used
// twice, and with packs that reach as far as their files, on disk. The old ones do
// not grow any more, and those that a collection has removed since the checkpoint
// are forgotten.
func (v *Salvager) stage(staged string, best *Candidate) error {
	if err := v.FS.RemoveAll(staged); err != nil {
		return err
	}
	v.Report.Source, v.Report.AsOf, v.Report.Problems = best.name, best.Moved, best.Report.Problems
	if best.name == "" {
		var err error
		if best.Table, err = v.Opener.Create(v.dir, staged); err != nil {
			return err
		}
	} else if err := index.Clone(v.FS, v.FS.PathJoin(v.From, best.name), staged); err != nil {
		return err
	}
	idx, err := index.Open(staged, &index.Options{FS: v.FS, MemTableBytes: v.MemTable})
	if err != nil {
		return err
	}
	batch := idx.NewBatch()
	for _, i := range best.Table {
		named := func(p Problem) bool { return p.Address.Pack == i.ID } // and missed
		if i.Missing && !slices.ContainsFunc(v.Report.Problems, named) {
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
func (v *Salvager) syncPack(id pack.ID) error {
	f, err := v.FS.OpenReadWrite(v.FS.PathJoin(v.dir, PackDir, pack.FileName(id)), index.WriteCategory)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// setAside puts something of the database into its quarantine.
func (v *Salvager) setAside(name string) (string, error) {
	return SetAside(v.FS, v.dir, v.FS.PathJoin(v.dir, name), v.Now())
}

// install puts the new index in the place of the damaged one, which is kept.
func (v *Salvager) install(staged string) (err error) {
	fs, place := v.FS, v.FS.PathJoin(v.dir, IndexDir)
	if there(fs, place) {
		if v.Report.Quarantine, err = v.setAside(IndexDir); err != nil {
			return err
		}
	}
	err = errors.Join(Move(fs, staged, place), index.SyncDir(fs, v.dir))
	if err == nil && slices.Contains(v.refused, v.Report.Source) {
		_, err = v.setAside(v.Report.Source)
	}
	if err != nil {
		return err
	}
	if v.Opener.IsDatabase(v.dir) == nil {
		return nil
	}
	return v.Opener.MakeDatabase(v.dir)
}
