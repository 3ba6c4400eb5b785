package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
	"github.com/zarrdb/zarrdb/txn"
)

// OpenOptions configure [Open]. The zero value works.
type OpenOptions struct {
	// Engine are options of the database, whichever process has it open. LockWait is how
	// long to wait for a process that has the database open and does not serve it, or does
	// not answer. If it is 0, the first kind is not waited for, and the second for at most 30 s.
	// Serve and Locked are not used.
	Engine engine.Options
	// Serve serves the database to other processes, if this process has it open; see
	// [engine.Options]. nil keeps others out.
	Serve func(dir string) (*engine.Serving, error)
	// Share has this process share the memory of the database with the others; see
	// [DialOptions]. It is for processes that stay, and not for single commands.
	Share bool
	// Yielded, if not nil, is called when this process, which has no permission to write, has given
	// the lock up to a process that asked for it, and has stopped to serve the database.
	Yielded func()
	// Waiting, if not nil, is called once when the process that has the database open
	// does not answer for a while, or does not serve the database.
	Waiting func(held *engine.LockedError)
}

// Open opens the database in a directory, or joins the process that has it open, which may
// be this one. When that process ends, the next one that needs the database takes its place,
// which may be this one. Errors: [engine.ErrNotFound] if there is no database and
// Engine.Create is not set, *[engine.LockedError] if another process has it open and does not
// serve it, and those of [engine.Open].
//
// At the URL of a remote, such as s3://bucket/weather, it opens the [engine.RemoteCache] of the remote, as the remote is now.
func Open(ctx context.Context, dir string, o OpenOptions) (*engine.DB, error) {
	if engine.IsRemote(dir) && !o.Engine.Create {
		return openRemote(ctx, dir, o)
	}
	o.Engine.Join = Join
	j := &joint{dir: dir, o: o}
	j.busy.WaitLock()
	defer j.busy.Unlock()
	h := Handover{Wait: o.Engine.LockWait}
	told := o.Waiting == nil
	for {
		conn, locked, err := j.join(ctx)
		if err == nil && conn == nil {
			return j.own(ctx)
		}
		if err == nil {
			db, failed := j.peer(ctx, conn, locked, &told, h.left())
			if failed == nil {
				return db, nil
			}
			err = fmt.Errorf("open %s: %w (%v)", dir, failed, locked)
			if errors.Is(failed, os.ErrDeadlineExceeded) { // it names the process
				err = fmt.Errorf("open %s: %w", dir, failed)
			}
		}
		if locked != nil && h.Wait > 0 && !Reachable(locked) && !told {
			told = true
			o.Waiting(locked)
		}
		if err := h.Again(ctx, err); err != nil {
			return nil, err
		}
	}
}

// openRemote is [Open] of a remote.
func openRemote(ctx context.Context, url string, o OpenOptions) (*engine.DB, error) {
	c, err := engine.OpenRemoteCache(ctx, url, &o.Engine)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if c.Behind() {
		to := o
		to.Engine.ReadOnly, to.Engine.WhyReadOnly = false, nil
		db, err := Open(ctx, c.Dir, to)
		if err == nil {
			err = errors.Join(c.Follow(ctx, db), db.Close())
		}
		if unwritable(err) {
			o.Engine.ReadOnly, o.Engine.WhyReadOnly = true, err
			c.Note, err = fmt.Sprintf("%v: what is known of the remote is shown", err), nil
		}
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", url, err)
		}
	}
	if c.Note != "" && o.Engine.Warn != nil {
		o.Engine.Warn(c.Note)
	}
	return Open(ctx, c.Dir, o)
}

// OpenOrRead is [Open]. Where this process has no permission to write, or the file system has no locks, it opens
// the database to read, and writes are refused with that reason.
func OpenOrRead(ctx context.Context, dir string, o OpenOptions) (*engine.DB, error) {
	db, err := Open(ctx, dir, o)
	if !o.Engine.ReadOnly && unwritable(err) {
		o.Engine.ReadOnly, o.Engine.WhyReadOnly = true, err
		if reader, failed := Open(ctx, dir, o); failed == nil {
			return reader, nil
		}
	}
	return db, err
}

// unwritable reports whether an error means that a database can be read alone.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, txn.ErrNoLocks)
}

// own returns the database that this process has open. One that is to be read alone is a peer
// of it. Without permission to write, it is one that goes on when this process gives the lock up.
// j.busy is held.
func (j *joint) own(ctx context.Context) (*engine.DB, error) {
	if !j.o.Engine.ReadOnly || j.held.ReadOnly() && j.dial == nil {
		return j.held, nil
	}
	if j.held.ReadOnly() {
		conn, err := j.dial()
		var db *engine.DB
		if err == nil {
			db, err = j.peer(ctx, conn, nil, new(bool), 0)
		}
		if err != nil {
			j.stop()
			err = errors.Join(err, j.held.Close())
		}
		return db, err
	}
	db, err := engine.OpenPeer(j.dir, j.id, ownSource{j.held.Versions().Remote(), j.held}, &j.o.Engine)
	if err != nil {
		err = errors.Join(err, j.held.Close())
	}
	return db, err
}

// ownSource is the source of a database that this process has open for a peer in it.
type ownSource struct {
	txn.Remote
	io.Closer
}

// PagesAtOnce implements [txn.FarSource].
func (ownSource) PagesAtOnce() int { return math.MaxInt }

// joint is how one process sees a database that several processes use.
type joint struct {
	dir string
	o   OpenOptions

	busy    ctxlock.Lock             // of the fields below, held while a database is opened or closed
	id      txn.Identity             // of the database since it was opened first
	held    *engine.DB               // this process has it open
	dial    func() (net.Conn, error) // connects to it; nil if it is not served
	yielded time.Time                // when this process gave the lock up
	stop    context.CancelFunc       // ends yield, if not nil
	failing time.Time                // since when no process that has it open can be reached
	closed  bool

	locked atomic.Pointer[engine.LockedError] // the process that has it open, as it was described last
}

// slowAnswer is how long a process may take to answer before Waiting is called.
const slowAnswer = 3 * time.Second

// peer opens the database through a connection, whose other end has the time wait for its first
// answer. locked describes that process; nil for this one. j.busy is held.
func (j *joint) peer(ctx context.Context, conn net.Conn, locked *engine.LockedError, told *bool, wait time.Duration) (*engine.DB, error) {
	if locked != nil && !*told {
		slow := time.AfterFunc(slowAnswer, func() { j.o.Waiting(locked) })
		defer func() { *told = !slow.Stop() }()
	}
	c, err := NewClient(ctx, conn, &DialOptions{Dir: j.dir, Redial: j.redial, Share: j.o.Share, Limit: j.o.Engine.LockWait, wait: wait, holder: j.locked.Load})
	if err != nil {
		return nil, err
	}
	j.id = c.Identity()
	o := &j.o.Engine
	if !j.o.Share {
		o = small(o)
	}
	db, err := engine.OpenPeer(j.dir, j.id, &jointSource{source: source{c}, j: j}, o)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return db, nil
}

// join opens the database, or connects to the process that has it open, which locked
// describes. The connection is nil where this process has opened it. j.busy is held.
func (j *joint) join(ctx context.Context) (conn net.Conn, locked *engine.LockedError, err error) {
	o := j.o.Engine
	o.LockWait, o.Locked = 0, nil
	o.Create = o.Create && j.id == (txn.Identity{})
	o.Serve, j.dial = nil, nil
	if j.o.Serve != nil {
		o.Serve = func(dir string) (*engine.Serving, error) {
			s, err := j.o.Serve(dir)
			if s != nil {
				j.dial = s.Dial
			}
			return s, err
		}
	}
	moved := fmt.Errorf("%w: another database is at %s; open it again", engine.ErrMoved, j.dir)
	if file := txn.FileOf(j.dir); file != "" && j.id.File != "" && file != j.id.File {
		return nil, nil, moved // opening it would keep others waiting
	}
	held, err := j.open(ctx, &o)
	if err == nil {
		if j.id.Differs(held.Identity()) {
			return nil, nil, errors.Join(moved, held.Close())
		}
		j.held, j.id, j.failing = held, held.Identity(), time.Time{}
		if held.ReadOnly() && j.dial != nil {
			var life context.Context
			life, j.stop = context.WithCancel(context.Background())
			go j.yield(life, held)
		}
		return nil, nil, nil
	}
	if !errors.As(err, &locked) {
		return nil, nil, err
	}
	j.locked.Store(locked)
	if Reachable(locked) || locked.Own && locked.Holder.Socket != "" {
		conn, failed := reach(ctx, locked)
		if failed == nil {
			j.failing = time.Time{}
			return conn, locked, nil
		}
		if j.failing.IsZero() {
			j.failing = time.Now()
		} else if time.Since(j.failing) > knockAfter {
			locked.Knock()
		}
		err = errors.Join(err, failed)
	}
	return nil, locked, fmt.Errorf("open %s: %w", j.dir, err)
}

// knockAfter is how long a process that serves a database may be out of reach, as one that
// begins to serve is, before this process asks for a socket in the directory.
const knockAfter = 200 * time.Millisecond

// reach connects to the process that has a database open, at its socket or in the directory.
func reach(ctx context.Context, locked *engine.LockedError) (net.Conn, error) {
	conn, err := Connect(ctx, locked.Holder.Socket)
	if err == nil {
		return conn, nil
	}
	conn, failed := Connect(ctx, filepath.Join(locked.Dir, sockets.InsideName))
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	return conn, nil
}

// Of a process that has no permission to write: the time between two looks whether another
// process wants the lock, and the time in which that can take the lock.
const (
	yieldPause = 250 * time.Millisecond
	yieldTime  = 1500 * time.Millisecond
)

// yield gives the lock up when a process asks for it; see [engine.LockedError.Knock]. What was
// opened through held goes on through that process; see redial. It ends with life.
func (j *joint) yield(life context.Context, held *engine.DB) {
	t := time.NewTicker(yieldPause)
	defer t.Stop()
	for !txn.Knocked(held.Dir()) {
		select {
		case <-t.C:
		case <-life.Done():
			return
		}
	}
	j.busy.WaitLock()
	gives := life.Err() == nil
	if gives {
		j.held = nil
		_ = held.Close() // it wrote nothing
		j.yielded = time.Now()
	}
	j.busy.Unlock()
	if gives {
		j.o.yielded()
	}
}

func (o *OpenOptions) yielded() {
	if o.Yielded != nil {
		o.Yielded()
	}
}

// open opens the database. If it is served, a process that can write opens it for writing, also
// to read alone: other processes can write through it then. Without permission, or on a full
// disk, the process reads.
func (j *joint) open(ctx context.Context, o *engine.Options) (*engine.DB, error) {
	if o.ReadOnly && o.Serve != nil {
		to := *o
		to.ReadOnly = false
		db, err := engine.Open(ctx, j.dir, &to)
		var locked *engine.LockedError
		if err == nil || errors.As(err, &locked) || errors.Is(err, engine.ErrNotFound) || ctx.Err() != nil {
			return db, err
		}
	}
	return engine.Open(ctx, j.dir, o)
}

// redial connects to the process that has the database open now. If none has, it is this one
// from here on; it then talks to itself, so that what was opened through another process goes on.
func (j *joint) redial(ctx context.Context) (net.Conn, error) {
	if err := j.busy.Lock(ctx); err != nil {
		return nil, err
	}
	defer j.busy.Unlock()
	if j.closed {
		return nil, engine.ErrClosed
	}
	if time.Since(j.yielded) < yieldTime {
		return j.follow(ctx)
	}
	if j.held != nil && j.held.Versions().Failed() != nil { // join opens it again, for the views and sessions opened before
		held := j.held
		j.held = nil
		_ = held.Close()
	}
	if j.held == nil {
		if conn, _, err := j.join(ctx); conn != nil || err != nil {
			return conn, err
		}
	}
	if j.dial == nil {
		return nil, fmt.Errorf("open %s: this process has it open, and does not serve it", j.dir)
	}
	return j.dial()
}

// follow connects to the process that this one gave the lock up to. j.busy is held.
func (j *joint) follow(ctx context.Context) (net.Conn, error) {
	places, err := sockets.Of(j.dir)
	for _, socket := range places {
		conn, failed := Connect(ctx, socket)
		if failed == nil {
			return conn, nil
		}
		err = errors.Join(err, failed)
	}
	return nil, gone(errors.Join(errors.New("another process is about to open the database"), err))
}

// jointSource is the source of a peer that leaves the process which has the database open
// when the peer is closed.
type jointSource struct {
	source
	j *joint
}

// Close implements io.Closer.
func (s *jointSource) Close() error {
	s.j.busy.WaitLock()
	held := s.j.held
	s.j.closed, s.j.held = true, nil
	if s.j.stop != nil {
		s.j.stop()
	}
	s.j.busy.Unlock()
	err := s.c.Close()
	if held != nil {
		err = errors.Join(err, held.Close())
	}
	return err
}

// Holds reports whether this process has a database open that it opened by [Open], or has
// taken the place of the process that had.
func Holds(db *engine.DB) bool {
	if _, own := db.Versions().Remote().(ownSource); own {
		return true
	}
	s, ok := db.Versions().Remote().(*jointSource)
	if !ok {
		return !db.Versions().IsPeer()
	}
	s.j.busy.WaitLock()
	defer s.j.busy.Unlock()
	return s.j.held != nil
}
