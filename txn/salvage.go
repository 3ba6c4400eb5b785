package txn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// LostAndFound is the branch that payloads are put on of which no commit is
// known any more.
const LostAndFound = "lost+found"

var (
	// ErrIndexLost matches every [IndexLostError].
	ErrIndexLost = errors.New("txn: the index is lost or damaged")

	// ErrSound means that there is nothing to salvage: the index opens and a
	// check finds nothing.
	ErrSound = errors.New("txn: the index is sound, there is nothing to salvage")
)

// IndexLostError says that a directory is a database whose index cannot be
// opened. It is [ErrIndexLost] and kv.ErrCorrupt.
type IndexLostError struct {
	Dir string
	Err error
}

// Error implements error; it names the command that helps.
func (e *IndexLostError) Error() string {
	return fmt.Sprintf("%v (%v): \"zarrdb fsck --salvage %s\" restores what can be restored", ErrIndexLost, e.Err, e.Dir)
}

// Is implements the matching that [errors.Is] does.
func (e *IndexLostError) Is(target error) bool {
	return target == ErrIndexLost || fault.Matches(kv.ErrCorrupt, target)
}

// Unwrap returns why the index cannot be opened.
func (e *IndexLostError) Unwrap() error { return e.Err }

// indexIsLost reports whether an error of opening is about what is there, not
// about a lock, a right or a disk.
func indexIsLost(err error) bool {
	return errors.Is(err, kv.ErrCorrupt) || errors.Is(err, index.ErrNotExist) ||
		errors.Is(err, index.ErrNotFound) || errors.Is(err, os.ErrNotExist)
}

// SalvageOptions of [Salvage].
type SalvageOptions struct {
	// Options are those of the database. ReadOnly and Durability do not matter.
	Options
	// To is a directory for the restored database; it must not exist. "" is in
	// place: the damaged index is kept in "quarantine".
	To string
	// Progress is told from time to time how many bytes of packs were walked
	// through. Calls do not overlap.
	Progress func(CheckProgress)
}

// SalvageReport says what [Salvage] did.
type SalvageReport struct {
	// Dir is the database that can be opened now.
	Dir string
	// Source is what the index was restored from: "checkpoints/NAME", "index"
	// if that has the fewest problems, or "" if there was nothing. It is
	// "index.ready" if an earlier salvage was interrupted when it had restored all;
	// then Refused, Quarantine and what was found are in that one's report.
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
// Nothing is deleted. Nobody may have the database open. Errors: ErrSound if
// the index is fine, ErrNotDatabase, index.ErrLocked.
func Salvage(ctx context.Context, dir string, o SalvageOptions) (*SalvageReport, error) {
	opts := o.Options.withDefaults()
	opts.ReadOnly, opts.Durability, opts.CheckpointCommits = false, DurabilityNone, -1
	v := salvager{fs: fsOf(opts.FS), from: dir, dir: dir, opts: opts, o: o, r: &SalvageReport{Dir: dir}}
	err := v.run(ctx)
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

	refused []string // checkpoints that are no good
}

// candidate is an index that may be restored.
type candidate struct {
	name  string // in the directory
	path  string
	r     *CheckReport
	asOf  time.Time // of its last move
	moves uint64    // that it counts

	made bool // by an earlier salvage
}

// stagedIndex is the new index until it is complete.
const stagedIndex = "index.salvage"

// readyIndex is the new index when it is complete. The damaged one then goes to the
// quarantine, and it takes the place.
const readyIndex = "index.ready"

func (v *salvager) run(ctx context.Context) error {
	if err := v.isDatabase(); err != nil {
		return err
	}
	var err error
	if v.o.To != "" {
		err = v.copyPacks(ctx)
	} else {
		err = makeDir(v.fs, v.fs.PathJoin(v.dir, packDir)) // it may be lost too
	}
	if err != nil {
		return err
	}
	best, err := v.interrupted(ctx)
	if err == nil && best == nil {
		best, err = v.restore(ctx)
	}
	if err == nil {
		err = v.install(best)
	}
	if err != nil {
		return err
	}
	err = v.checkpoint(ctx)
	if best != nil && best.r.Found > 0 && !stop(err) {
		return nil // what is still damaged may be refused as a copy
	}
	return err
}

// interrupted returns the index that an earlier salvage had made when it was
// interrupted between the two renames that put it into its place; nil if there is no
// such thing, or it is no good any more.
func (v *salvager) interrupted(ctx context.Context) (*candidate, error) {
	fs, ready := v.fs, v.fs.PathJoin(v.dir, readyIndex)
	if _, err := fs.Stat(v.fs.PathJoin(v.dir, indexDir)); !errors.Is(err, os.ErrNotExist) {
		return nil, err // the damaged one is there, all begins again
	}
	if _, err := fs.Stat(ready); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	list, err := listCheckpoints(fs, v.from)
	if err != nil {
		return nil, err
	}
	c := &candidate{name: readyIndex, path: ready}
	err = v.look(ctx, c)
	if err == nil {
		err = c.olderThan(list)
	}
	switch {
	case err == nil:
		v.r.Source, v.r.AsOf, v.r.Problems = c.name, c.asOf, c.r.Problems
		return c, nil
	case !indexIsLost(err):
		return nil, err
	}
	v.r.Refused = append(v.r.Refused, fmt.Sprintf("%s: %v", c.name, err))
	kept, err := quarantined(fs, v.dir, readyIndex, v.opts.Now())
	if err != nil {
		return nil, err
	}
	return nil, errors.Join(fs.Rename(ready, kept), syncDir(fs, fs.PathDir(kept)), syncDir(fs, v.dir))
}

// olderThan is an error if a candidate that is no checkpoint counts fewer moves than
// the newest one.
func (c *candidate) olderThan(list []Checkpoint) error {
	if len(list) > 0 && c.moves < list[len(list)-1].Moves {
		return fmt.Errorf("%w: it is older than checkpoint %s", kv.ErrCorrupt, list[len(list)-1].Name)
	}
	return nil
}

// restore makes the new index, complete, beside the damaged one, of the best candidate.
func (v *salvager) restore(ctx context.Context) (best *candidate, err error) {
	staged, ready := v.fs.PathJoin(v.dir, stagedIndex), v.fs.PathJoin(v.dir, readyIndex)
	for _, path := range []string{staged, ready} {
		if err := v.fs.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	if best, err = v.choose(ctx); err != nil {
		return nil, err
	}
	if err := v.stage(staged, best); err != nil {
		return nil, err
	}
	if err := v.adopt(staged); err != nil {
		return nil, err
	}
	// Before anybody can take the new index for all that there is.
	if err := v.lostAndFound(ctx, staged, best); err != nil {
		return nil, err
	}
	if err := v.setAside(v.refusedBut(best)); err != nil {
		return nil, err
	}
	return best, errors.Join(v.fs.Rename(staged, ready), syncDir(v.fs, v.dir))
}

// isDatabase refuses directories that hold none.
func (v *salvager) isDatabase() error {
	err := readFormat(v.fs, v.from)
	if errors.Is(err, ErrNotDatabase) {
		// The packs alone are worth something too, and so is an index.
		names, _ := v.fs.List(v.fs.PathJoin(v.from, packDir))
		copies, _ := listCheckpoints(v.fs, v.from)
		begun, ierr := index.Begun(v.fs, v.fs.PathJoin(v.from, indexDir))
		ready := index.Complete(v.fs, v.fs.PathJoin(v.from, readyIndex))
		if len(names) > 0 || len(copies) > 0 || begun || ready || errors.Is(ierr, kv.ErrCorrupt) {
			return nil
		}
	}
	return err
}

// copyPacks gives a new directory the packs, by links if possible. They do not
// change: the new database writes packs of its own.
func (v *salvager) copyPacks(ctx context.Context) error {
	fs := v.fs
	if _, err := fs.Stat(v.o.To); err == nil {
		return fmt.Errorf("%s: %w", v.o.To, ErrExists)
	}
	v.dir, v.r.Dir = v.o.To, v.o.To
	to, from := fs.PathJoin(v.dir, packDir), fs.PathJoin(v.from, packDir)
	if err := fs.MkdirAll(to, 0o755); err != nil {
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
	return errors.Join(syncDir(fs, to), syncDir(fs, v.dir), syncDir(fs, fs.PathDir(v.dir)))
}

// choose looks at the present index and at the checkpoints, newest first, and
// returns the first one without problems, else the one with the fewest; nil if
// none can be opened.
func (v *salvager) choose(ctx context.Context) (best *candidate, err error) {
	list, err := listCheckpoints(v.fs, v.from)
	if err != nil {
		return nil, err
	}
	all := []*candidate{{name: indexDir, path: v.fs.PathJoin(v.from, indexDir)}}
	if ready := v.fs.PathJoin(v.from, readyIndex); v.dir != v.from && index.Complete(v.fs, ready) {
		all = append(all, &candidate{name: readyIndex, path: ready, made: true})
	}
	for i := len(list) - 1; i >= 0; i-- {
		name := checkpointDir + "/" + list[i].Name
		all = append(all, &candidate{name: name, path: v.fs.PathJoin(v.from, name)})
	}
	for i := 0; i < len(all); i++ {
		c := all[i]
		err = v.look(ctx, c)
		if err == nil && c.made {
			err = c.olderThan(list)
		}
		switch {
		case errors.Is(err, index.ErrLocked), stop(err):
			return nil, err
		case err != nil:
			v.r.Refused = append(v.r.Refused, fmt.Sprintf("%s: %v", c.name, err))
			v.refuse(c)
			continue
		case c.r.Found == 0 && i == 0 && readFormat(v.fs, v.from) == nil:
			return nil, ErrSound
		case c.r.Found == 0:
			return c, nil
		}
		v.r.Refused = append(v.r.Refused, fmt.Sprintf("%s: %d problems, the first: %v", c.name, c.r.Found, c.r.Problems[0]))
		v.refuse(c)
		if best == nil || c.r.Found < best.r.Found {
			best = c
		}
	}
	return best, nil
}

func (v *salvager) refuse(c *candidate) {
	if c.name != indexDir {
		v.refused = append(v.refused, c.name)
	}
}

// look checks a candidate without changing it.
func (v *salvager) look(ctx context.Context, c *candidate) (err error) {
	opts := v.opts
	opts.ReadOnly = true
	db, err := open(v.dir, c.path, opts, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c.r, err = db.Check(ctx, CheckOptions{gone: c.path != v.fs.PathJoin(v.from, indexDir)})
	if err != nil {
		return err
	}
	c.moves = db.checkpoints.moves.Load()
	for rec, err := range db.idx.Scan(index.SpaceReflog, nil, nil, false) {
		if err != nil {
			return err
		}
		// Damaged entries are among the problems.
		if m, err := catalog.Moves.Decode(rec.Key, rec.Value); err == nil && m.Time.After(c.asOf) {
			c.asOf = m.Time
		}
	}
	return nil
}

// stage puts the new index where a crash leaves it unused.
func (v *salvager) stage(staged string, best *candidate) error {
	if best != nil {
		v.r.Source, v.r.AsOf, v.r.Problems = best.name, best.asOf, best.r.Problems
		return index.Clone(v.fs, best.path, staged)
	}
	opts := v.opts
	opts.Durability = DurabilitySync
	db, err := open(v.dir, staged, opts, true)
	if err != nil {
		return err
	}
	return errors.Join(db.writeFirstCommit(), db.Close())
}

// adopt makes the staged index one of this directory: with an incarnation of
// its own, so that no name of a pack is used twice, and with packs that reach as
// far as their files, on disk. The old ones do not grow any more, and those that a
// collection has removed since the checkpoint are forgotten.
func (v *salvager) adopt(staged string) error {
	opts := v.opts
	opts.ReadOnly = true
	db, err := open(v.dir, staged, opts, false)
	if err != nil {
		return err
	}
	infos := db.packs.Infos()
	if err := db.Close(); err != nil {
		return err
	}
	idx, err := index.Open(staged, &index.Options{FS: v.fs, MemTableBytes: v.opts.MemTableBytes})
	if err != nil {
		return err
	}
	named := map[pack.ID]bool{} // and missed
	for _, p := range v.r.Problems {
		named[p.Address.Pack] = true
	}
	batch := idx.NewBatch()
	for _, i := range infos {
		if i.Missing && !named[i.ID] {
			catalog.Packs.Delete(batch, i.ID)
			continue
		}
		if !i.Missing && i.Size > i.End {
			err = errors.Join(err, v.syncPack(i.ID.String()+".pack"))
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
func (v *salvager) syncPack(name string) error {
	f, err := v.fs.OpenReadWrite(v.fs.PathJoin(v.dir, packDir, name), index.WriteCategory)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// refusedBut returns the checkpoints that are no good, without the one that the new
// index was made from. They are newer than it will be, by name, and must not be taken
// for its copies.
func (v *salvager) refusedBut(best *candidate) []string {
	return slices.DeleteFunc(slices.Clone(v.refused), func(name string) bool { return best != nil && name == best.name })
}

// install puts the new index in the place of the damaged one, which is kept. If the
// checkpoint that it was made from is no good either, that stays until then.
func (v *salvager) install(best *candidate) error {
	fs, place := v.fs, v.fs.PathJoin(v.dir, indexDir)
	if _, err := fs.Stat(place); err == nil {
		kept, err := quarantined(fs, v.dir, "index", v.opts.Now())
		if err != nil {
			return err
		}
		if err := fs.Rename(place, kept); err != nil {
			return err
		}
		v.r.Quarantine = kept
	}
	if err := fs.Rename(fs.PathJoin(v.dir, readyIndex), place); err != nil {
		return err
	}
	if v.r.Quarantine != "" { // what is kept is there before it is gone here
		if err := syncDir(fs, fs.PathDir(v.r.Quarantine)); err != nil {
			return err
		}
	}
	if err := syncDir(fs, v.dir); err != nil {
		return err
	}
	if best != nil && slices.Contains(v.refused, best.name) {
		if err := v.setAside([]string{best.name}); err != nil {
			return err
		}
	}
	if readFormat(fs, v.dir) == nil {
		return nil
	}
	return writeFormat(fs, v.dir)
}

// setAside puts checkpoints into the quarantine.
func (v *salvager) setAside(names []string) error {
	if v.dir != v.from || len(names) == 0 {
		return nil
	}
	fs := v.fs
	for _, name := range names {
		kept, err := quarantined(fs, v.dir, fs.PathBase(name), v.opts.Now())
		if err == nil {
			err = fs.Rename(fs.PathJoin(v.dir, name), kept)
		}
		if err != nil {
			return err
		}
	}
	if err := syncDir(fs, fs.PathJoin(v.dir, quarantineDir)); err != nil {
		return err
	}
	return syncDir(fs, fs.PathJoin(v.dir, checkpointDir))
}

// checkpoint makes a copy of the new index: with it the next salvage has nothing
// to look for.
func (v *salvager) checkpoint(ctx context.Context) (err error) {
	db, err := open(v.dir, v.fs.PathJoin(v.dir, indexDir), v.opts, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Checkpoint(ctx)
}

// sumOf is the content hash of the payload of a record, which is verified.
func (db *DB) sumOf(ctx context.Context, r packRecord) (sum digest.Sum, err error) {
	err = db.packs.Verify(ctx, r.Address, func(b []byte) error {
		sum = digest.Of(b)
		return nil
	}, r.Owner)
	return sum, err
}
