package care

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
	"syscall"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// Checkpoints of the index are copies of it that share its tables (hard
// links). Should the index be lost, [Salvage] begins from the newest one that
// is sound. docs/design/salvage.md has the rules.
//
//	checkpoints/0000000000000400-00000000/    after 0x400 moves of refs
//	checkpoints/0000000000000800-00000000/
const (
	// KeptCheckpoints is how many are kept.
	KeptCheckpoints = 2
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

// Checkpoints decides when the index is copied, and does it.
type Checkpoints struct {
	// Every is how many moves of refs make a copy due; 0 is never.
	Every uint64

	p     *Parts
	rests bool // after each copy
	moves atomic.Uint64
	bytes atomic.Int64 // of batches since the last checkpoint
	last  atomic.Uint64

	mu sync.Mutex // one at a time

	behind  sync.Mutex    // never held for long
	running chan struct{} // closed when the copy behind commits is done; or nil
	rest    time.Time     // until when none is begun
	stopped bool          // by Stop
	calming bool          // one is due, and waits until the commits pause
	asked   time.Time     // when a commit last found one due
}

// Load begins with the copies that are there, and notes the error that an earlier process stored.
func (c *Checkpoints) Load(p *Parts, every uint64, rests bool) error {
	c.p, c.Every, c.rests = p, every, rests
	moves, err := catalog.MoveCount(p.Index)
	if err != nil {
		return err
	}
	c.moves.Store(moves)
	list, err := ListCheckpoints(p.FS, p.Dir)
	if err == nil && len(list) > 0 {
		c.last.Store(list[len(list)-1].Moves)
	}
	if err == nil {
		err = c.loadError()
	}
	return err
}

// Count adds moves to a batch.
func (c *Checkpoints) Count(batch *index.Batch, moves int) {
	if moves > 0 {
		catalog.PutMoveCount(batch, c.moves.Load()+uint64(moves))
	}
}

// Counted says that such a batch was committed.
func (c *Checkpoints) Counted(moves int, bytes int64) {
	c.moves.Add(uint64(moves))
	c.bytes.Add(bytes)
}

// Due reports whether it is time. A young database is copied when it grew by a
// quarter, so that the first commits are not without one.
func (c *Checkpoints) Due() bool {
	if c.Every == 0 {
		return false
	}
	moves, last := c.moves.Load(), c.last.Load()
	return moves >= last+min(c.Every, 1+last/4) || c.bytes.Load() >= checkpointBytes
}

// Copies behind commits begin when no commit came for checkpointCalm, or the commits went on for
// longestCalm: a program that removes its database after a commit then does not meet the files
// that a copy makes.
const (
	checkpointCalm = 5 * time.Second
	longestCalm    = 30 * time.Second
)

// MakeIfDue is called after commits and begins a copy if it is time. The commit does not wait
// for it, and does not fail with it: a failed copy is tried again when it is due the next time,
// and Failures has the error.
func (c *Checkpoints) MakeIfDue() {
	if !c.Due() {
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
		c.begin()
		return
	}
	c.calming = true
	c.beginWhenCalm(now, checkpointCalm)
}

// RestUntil lets no copy begin by itself before a time, as after a long copy.
func (c *Checkpoints) RestUntil(t time.Time) {
	c.behind.Lock()
	defer c.behind.Unlock()
	c.rests, c.rest = true, t
}

// beginWhenCalm begins a copy that is due since a time when the commits pause.
func (c *Checkpoints) beginWhenCalm(since time.Time, wait time.Duration) {
	time.AfterFunc(wait, func() {
		c.behind.Lock()
		defer c.behind.Unlock()
		if rest := checkpointCalm - time.Since(c.asked); rest > 0 && time.Since(since) < longestCalm && !c.stopped {
			c.beginWhenCalm(since, rest)
			return
		}
		c.calming = false
		if !c.stopped && c.running == nil && c.p.DB.Usable() == nil {
			c.begin()
		}
	})
}

// begin makes a copy in the background. c.behind is held.
func (c *Checkpoints) begin() {
	done := make(chan struct{})
	c.running = done
	go func() {
		start := time.Now()
		c.makeDue()
		end := time.Now()
		c.behind.Lock()
		c.running, c.rest = nil, end.Add(checkpointRest*end.Sub(start))
		c.behind.Unlock()
		close(done)
	}()
}

// makeDue makes a copy unless somebody just did.
func (c *Checkpoints) makeDue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Due() && c.p.DB.Here() == nil {
		c.note(c.make())
	}
}

// wait returns when no copy is being made behind commits.
func (c *Checkpoints) wait() {
	c.behind.Lock()
	done := c.running
	c.behind.Unlock()
	if done != nil {
		<-done
	}
}

// Stop ends the copies behind commits. It makes one that is due, so that a database at rest has
// one as young as the schedule promises.
func (c *Checkpoints) Stop() {
	c.behind.Lock()
	c.stopped = true
	c.behind.Unlock()
	c.wait()
	c.makeDue()
}

// Make makes a copy now.
func (c *Checkpoints) Make() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.p.DB.Usable(); err != nil {
		return err
	}
	err := c.make()
	c.note(err)
	return err
}

// List lists the copies, oldest first, after the one that is being made if there is one. The error
// may also be that of the last attempt.
func (c *Checkpoints) List() ([]Checkpoint, error) {
	c.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	list, err := ListCheckpoints(c.p.FS, c.p.Dir)
	for _, e := range c.p.Failures.List() {
		if e.Work == workCheckpoint {
			err = errors.Join(err, e.Err)
		}
	}
	return list, err
}

// ForReclaim is what has to happen between the synced delete of
// pages and the reclaim of the payloads that only they named: afterwards no
// checkpoint reaches such a payload. If the disk is too full for a new one, the old
// ones go all the same. After another error they stay, and nothing is reclaimed.
func (c *Checkpoints) ForReclaim() error {
	made, err := c.Renew()
	if err != nil && !DiskFull(err) {
		return fmt.Errorf("checkpoint before reclaim: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if derr := c.drop(made); derr != nil {
		return fmt.Errorf("checkpoint before reclaim: %w", errors.Join(derr, err))
	}
	return nil
}

// Renew replaces the checkpoints, by as many as are kept, and returns how many
// it made. After an error the old ones stay.
func (c *Checkpoints) Renew() (made int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for err == nil && made < KeptCheckpoints {
		if err = c.make(); err == nil {
			made++
		}
	}
	c.note(err)
	return made, err
}

// Stale returns the bytes of the checkpoints that new ones would share with
// the index, or not have.
func (c *Checkpoints) Stale() (n int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, err := ListCheckpoints(c.p.FS, c.p.Dir)
	for _, p := range list {
		stale, serr := c.p.Index.Stale(c.p.FS.PathJoin(c.p.Dir, CheckpointDir, p.Name))
		n, err = n+stale, errors.Join(err, serr)
	}
	return n, err
}

// make makes and verifies a copy and removes old ones. c.mu is held.
func (c *Checkpoints) make() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("checkpoint: %w", err)
		}
	}()
	fs, idx := c.p.FS, c.p.Index
	if err := c.p.DB.WritePending(context.Background()); err != nil {
		return err
	}
	moves := c.moves.Load()
	// Also if it fails: another attempt is made when there is more to lose.
	c.last.Store(moves)
	c.bytes.Store(0)
	parent := fs.PathJoin(c.p.Dir, CheckpointDir)
	if err := index.MakeDir(fs, parent); err != nil {
		return err
	}
	name, err := nextCheckpoint(fs, parent, moves)
	if err != nil {
		return err
	}
	path := fs.PathJoin(parent, name)
	// Tables are linked, logs are copied: what is in tables costs nothing.
	if err = idx.Flush(); err == nil {
		err = idx.Checkpoint(path)
	}
	if err != nil {
		return err
	}
	if err := VerifyCheckpoint(fs, path, c.p.Away != nil); err != nil {
		return fmt.Errorf("%s: %w", name, errors.Join(err, fs.RemoveAll(path)))
	}
	return c.drop(KeptCheckpoints)
}

// drop removes all but the newest, and what interrupted ones left.
func (c *Checkpoints) drop(keep int) error {
	fs := c.p.FS
	list, err := ListCheckpoints(fs, c.p.Dir)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, p := range list[max(len(list)-keep, 0):] {
		kept[p.Name] = true
	}
	parent := fs.PathJoin(c.p.Dir, CheckpointDir)
	names, err := fs.List(parent)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	removed := false
	for _, name := range names {
		if _, ok := ParseCheckpoint(name); ok && !kept[name] {
			removed = true
			err = errors.Join(err, fs.RemoveAll(fs.PathJoin(parent, name)))
		}
	}
	if removed && err == nil {
		err = index.SyncDir(fs, parent)
	}
	return err
}

// VerifyCheckpoint opens a copy and reads what its first refs point at.
func VerifyCheckpoint(fs index.FS, path string, lazy bool) (err error) {
	idx, err := index.Open(path, &index.Options{FS: fs, ReadOnly: true, CacheBytes: 1 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, idx.Close()) }()
	n := 0
	for r, err := range catalog.Refs.All(idx) {
		if err != nil {
			return err
		}
		if n++; n > checkpointRefs {
			continue
		}
		c, err := catalog.Commits.Get(idx, r.Commit)
		if err == nil {
			err = opens(context.Background(), storedPages{idx}, c.Root)
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

// opens returns why the first pages of a version cannot be read.
func opens(ctx context.Context, pages tree.Pages, root tree.Root) error {
	for _, err := range tree.New(pages, reach.Uncached).Scan(ctx, root, tree.Span{}) {
		return err
	}
	return nil
}

// ListCheckpoints lists complete copies, oldest first.
func ListCheckpoints(fs index.FS, dir string) ([]Checkpoint, error) {
	parent := fs.PathJoin(dir, CheckpointDir)
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
		moves, ok := ParseCheckpoint(name)
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

// ParseCheckpoint reads the name of a copy.
func ParseCheckpoint(name string) (moves uint64, ok bool) {
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

// DiskFull reports whether an error is that of a full disk.
func DiskFull(err error) bool {
	return errors.Is(err, index.ErrFull) || errors.Is(err, pack.ErrFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
