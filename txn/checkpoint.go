package txn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Checkpoints of the index are copies of it that share its tables (hard
// links). Should the index be lost, [Salvage] begins from the newest one that
// is sound. docs/design/salvage.md has the rules.
//
//	checkpoints/0000000000000400-00000000/    after 0x400 moves of refs
//	checkpoints/0000000000000800-00000000/
const (
	checkpointDir   = "checkpoints"
	keptCheckpoints = 2
	// defaultCheckpointCommits is how many moves of refs make a checkpoint due.
	defaultCheckpointCommits = 1024
	// checkpointBytes of new index batches make a checkpoint due as well.
	checkpointBytes = 256 << 20
	// checkpointRefs bounds how many heads the verification looks at.
	checkpointRefs = 64
)

// Checkpoint is a copy of the index that a lost one can be restored from.
type Checkpoint struct {
	// Name is that of its directory in "checkpoints", in order of age.
	Name string
	// Moves is how many moves of refs the database had seen.
	Moves uint64
	// Time is when it was made.
	Time time.Time
}

// checkpointRest is how many times as long as the last copy took none is begun
// by itself, so that many small commits do not spend their time on copies.
const checkpointRest = 9

// checkpointer decides when the index is copied, and does it.
type checkpointer struct {
	every uint64 // moves of refs; 0 is never
	rests bool   // after each copy
	moves atomic.Uint64
	bytes atomic.Int64 // of batches since the last checkpoint
	last  atomic.Uint64

	mu sync.Mutex // one at a time

	behind  sync.Mutex    // never held for long
	running chan struct{} // closed when the copy behind commits is done; or nil
	rest    time.Time     // until when none is begun
	stopped bool          // by Close
	calming bool          // one is due, and waits until the commits pause
	asked   time.Time     // when a commit last found one due
}

func (c *checkpointer) load(db *DB) error {
	if n := db.opts.CheckpointCommits; n > 0 && !db.opts.ReadOnly {
		c.every, c.rests = uint64(n), db.opts.checkpointsRest
	}
	moves, err := catalog.MoveCount(db.idx)
	if err != nil {
		return err
	}
	c.moves.Store(moves)
	list, err := listCheckpoints(db.opts.FS, db.dir)
	if err == nil && len(list) > 0 {
		c.last.Store(list[len(list)-1].Moves)
	}
	if err == nil {
		err = db.loadCareErrors()
	}
	return err
}

// count adds moves to a batch.
func (c *checkpointer) count(batch *index.Batch, moves int) {
	if moves > 0 {
		catalog.PutMoveCount(batch, c.moves.Load()+uint64(moves))
	}
}

// counted says that such a batch was committed.
func (c *checkpointer) counted(moves int, bytes int64) {
	c.moves.Add(uint64(moves))
	c.bytes.Add(bytes)
}

// due reports whether it is time. A young database is copied when it grew by a
// quarter, so that the first commits are not without one.
func (c *checkpointer) due() bool {
	if c.every == 0 {
		return false
	}
	moves, last := c.moves.Load(), c.last.Load()
	return moves >= last+min(c.every, 1+last/4) || c.bytes.Load() >= checkpointBytes
}

// Copies behind commits begin when no commit came for checkpointCalm, or the commits went on for
// longestCalm: a program that removes its database after a commit then does not meet the files
// that a copy makes.
const (
	checkpointCalm = 5 * time.Second
	longestCalm    = 30 * time.Second
)

// checkpointIfDue is called after commits and begins a copy if it is time. The
// commit does not wait for it, and does not fail with it: a failed copy is tried
// again when it is due the next time, and [DB.CareErrors] has the error.
func (db *DB) checkpointIfDue() {
	c := &db.checkpoints
	if !c.due() {
		return
	}
	c.behind.Lock()
	defer c.behind.Unlock()
	now := time.Now()
	c.asked = now
	if c.stopped || c.running != nil || c.calming || c.rests && now.Before(c.rest) {
		return
	}
	if !c.rests {
		db.beginCheckpoint()
		return
	}
	c.calming = true
	db.checkpointWhenCalm(now, checkpointCalm)
}

// checkpointWhenCalm begins a copy that is due since a time when the commits pause.
func (db *DB) checkpointWhenCalm(since time.Time, wait time.Duration) {
	time.AfterFunc(wait, func() {
		c := &db.checkpoints
		c.behind.Lock()
		defer c.behind.Unlock()
		if rest := checkpointCalm - time.Since(c.asked); rest > 0 && time.Since(since) < longestCalm && !c.stopped {
			db.checkpointWhenCalm(since, rest)
			return
		}
		c.calming = false
		if !c.stopped && c.running == nil && db.check() == nil {
			db.beginCheckpoint()
		}
	})
}

// beginCheckpoint makes a copy in the background. c.behind is held.
func (db *DB) beginCheckpoint() {
	c := &db.checkpoints
	done := make(chan struct{})
	c.running = done
	go func() {
		start := time.Now()
		db.checkpointBehind()
		end := time.Now()
		c.behind.Lock()
		c.running, c.rest = nil, end.Add(checkpointRest*end.Sub(start))
		c.behind.Unlock()
		close(done)
	}()
}

// checkpointBehind makes a copy unless somebody just did.
func (db *DB) checkpointBehind() {
	c := &db.checkpoints
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.due() && db.Here() == nil {
		db.noteCheckpoint(db.checkpoint())
	}
}

// wait returns when no copy is being made behind commits.
func (c *checkpointer) wait() {
	c.behind.Lock()
	done := c.running
	c.behind.Unlock()
	if done != nil {
		<-done
	}
}

// stopCheckpoints ends the copies behind commits. Close makes one that is due
// then, so that a database at rest has one as young as the schedule promises.
func (db *DB) stopCheckpoints() {
	c := &db.checkpoints
	c.behind.Lock()
	c.stopped = true
	c.behind.Unlock()
	c.wait()
}

// Checkpoint copies the index now, so that [Salvage] can restore everything up
// to here, and removes all but the two newest copies. The copies share tables
// with the index: one takes milliseconds, and space only as the index changes.
func (db *DB) Checkpoint(ctx context.Context) error {
	_, err := asked(ctx, db, "checkpoint", none{}, db.checkpointNow)
	return err
}

func (db *DB) checkpointNow(ctx context.Context, _ none) (none, error) {
	if err := errors.Join(db.writable(), ctx.Err()); err != nil {
		return none{}, err
	}
	c := &db.checkpoints
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := db.check(); err != nil {
		return none{}, err
	}
	err := db.checkpoint()
	db.noteCheckpoint(err)
	return none{}, err
}

// Checkpoints lists the copies of the index, oldest first, after the one that
// is being made if there is one. The error may also be that of the last attempt.
func (db *DB) Checkpoints() ([]Checkpoint, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	a, err := asked(ctx, db, "checkpoints", none{}, db.listCheckpoints)
	return a.List, errors.Join(err, a.Err.Err)
}

// checkpointsAnswer is the result of [DB.Checkpoints].
type checkpointsAnswer struct {
	List []Checkpoint
	Err  care.Damage
}

func (db *DB) listCheckpoints(context.Context, none) (checkpointsAnswer, error) {
	if err := db.check(); err != nil {
		return checkpointsAnswer{}, err
	}
	c := &db.checkpoints
	c.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	list, err := listCheckpoints(db.opts.FS, db.dir)
	for _, e := range db.CareErrors() {
		if e.Work == careCheckpoint {
			err = errors.Join(err, e.Err)
		}
	}
	return checkpointsAnswer{list, care.Damage{Err: err}}, nil
}

// checkpointForReclaim is what has to happen between the synced delete of
// pages and the reclaim of the payloads that only they named: afterwards no
// checkpoint reaches such a payload. If the disk is too full for a new one, the old
// ones go all the same. After another error they stay, and nothing is reclaimed.
func (db *DB) checkpointForReclaim() error {
	made, err := db.renewCheckpoints()
	if err != nil && !diskFull(err) {
		return fmt.Errorf("checkpoint before reclaim: %w", err)
	}
	db.checkpoints.mu.Lock()
	defer db.checkpoints.mu.Unlock()
	if derr := db.dropCheckpoints(made); derr != nil {
		return fmt.Errorf("checkpoint before reclaim: %w", errors.Join(derr, err))
	}
	return nil
}

// renewCheckpoints replaces the checkpoints, by as many as are kept, and returns how many
// it made. After an error the old ones stay.
func (db *DB) renewCheckpoints() (made int, err error) {
	db.checkpoints.mu.Lock()
	defer db.checkpoints.mu.Unlock()
	for err == nil && made < keptCheckpoints {
		if err = db.checkpoint(); err == nil {
			made++
		}
	}
	db.noteCheckpoint(err)
	return made, err
}

// staleCheckpoints returns the bytes of the checkpoints that new ones would share with
// the index, or not have.
func (db *DB) staleCheckpoints() (n int64, err error) {
	c := &db.checkpoints
	c.mu.Lock()
	defer c.mu.Unlock()
	list, err := listCheckpoints(db.opts.FS, db.dir)
	for _, p := range list {
		stale, serr := db.idx.Stale(db.opts.FS.PathJoin(db.dir, checkpointDir, p.Name))
		n, err = n+stale, errors.Join(err, serr)
	}
	return n, err
}

// checkpoint makes and verifies a copy and removes old ones. c.mu is held.
func (db *DB) checkpoint() (err error) {
	defer wrap(&err, "checkpoint")
	fs, c := db.opts.FS, &db.checkpoints
	if err := db.writePending(context.Background()); err != nil {
		return err
	}
	moves := c.moves.Load()
	// Also if it fails: another attempt is made when there is more to lose.
	c.last.Store(moves)
	c.bytes.Store(0)
	parent := fs.PathJoin(db.dir, checkpointDir)
	if err := index.MakeDir(fs, parent); err != nil {
		return err
	}
	name, err := nextCheckpoint(fs, parent, moves)
	if err != nil {
		return err
	}
	path := fs.PathJoin(parent, name)
	// Tables are linked, logs are copied: what is in tables costs nothing.
	if err = db.idx.Flush(); err == nil {
		err = db.idx.Checkpoint(path)
	}
	if err != nil {
		return err
	}
	if err := verifyCheckpoint(fs, path, db.away != nil); err != nil {
		return fmt.Errorf("%s: %w", name, errors.Join(err, fs.RemoveAll(path)))
	}
	return db.dropCheckpoints(keptCheckpoints)
}

// dropCheckpoints removes all but the newest, and what interrupted ones left.
func (db *DB) dropCheckpoints(keep int) error {
	fs := db.opts.FS
	list, err := listCheckpoints(fs, db.dir)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, c := range list[max(len(list)-keep, 0):] {
		kept[c.Name] = true
	}
	parent := fs.PathJoin(db.dir, checkpointDir)
	names, err := fs.List(parent)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	removed := false
	for _, name := range names {
		if _, ok := parseCheckpoint(name); ok && !kept[name] {
			removed = true
			err = errors.Join(err, fs.RemoveAll(fs.PathJoin(parent, name)))
		}
	}
	if removed && err == nil {
		err = index.SyncDir(fs, parent)
	}
	return err
}

// verifyCheckpoint opens a copy and reads what its first refs point at.
func verifyCheckpoint(fs index.FS, path string, lazy bool) (err error) {
	idx, err := index.Open(path, &index.Options{FS: fs, ReadOnly: true, CacheBytes: 1 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, idx.Close()) }()
	var refs refTable
	if err := refs.load(idx); err != nil {
		return err
	}
	list := refs.list("")
	for _, r := range list[:min(len(list), checkpointRefs)] {
		c, err := catalog.Commits.Get(idx, r.Commit)
		if err == nil {
			err = opens(context.Background(), indexPages{idx, nil}, c.Root)
		}
		if lazy && errors.Is(err, tree.ErrMissing) {
			err = nil // it is away
		}
		if err != nil {
			return fmt.Errorf("%s: commit %v: %w", r.Name, r.Commit, err)
		}
	}
	return nil
}

// listCheckpoints lists complete copies, oldest first.
func listCheckpoints(fs index.FS, dir string) ([]Checkpoint, error) {
	parent := fs.PathJoin(dir, checkpointDir)
	names, err := fs.List(parent)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	slices.Sort(names)
	var list []Checkpoint
	for _, name := range names {
		moves, ok := parseCheckpoint(name)
		if !ok || !index.Complete(fs, fs.PathJoin(parent, name)) {
			continue
		}
		c := Checkpoint{Name: name, Moves: moves}
		if fi, err := fs.Stat(fs.PathJoin(parent, name)); err == nil {
			c.Time = fi.ModTime()
		}
		list = append(list, c)
	}
	return list, nil
}

// nextCheckpoint is a name that is not used yet and later than the others.
func nextCheckpoint(fs index.FS, parent string, moves uint64) (string, error) {
	names, err := fs.List(parent)
	if err != nil {
		return "", err
	}
	for i := 0; ; i++ {
		name := fmt.Sprintf("%016x-%08x", moves, i)
		if !slices.ContainsFunc(names, func(n string) bool { return n >= name && strings.HasPrefix(n, name[:16]) }) {
			return name, nil
		}
	}
}

func parseCheckpoint(name string) (moves uint64, ok bool) {
	head, tail, found := strings.Cut(name, "-")
	if !found || len(head) != 16 || len(tail) != 8 {
		return 0, false
	}
	moves, err := strconv.ParseUint(head, 16, 64)
	if err != nil {
		return 0, false
	}
	_, err = strconv.ParseUint(tail, 16, 32)
	return moves, err == nil
}
