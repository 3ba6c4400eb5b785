package txn

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// The leases of a peer end with the process that has the database open (the holder). The next
// holder must not collect before the peer has renewed them. So each peer has a file that is
// locked while the peer lives:
//
//	first holder  makes and locks peers/NAME, and gives the peer the descriptor
//	next holder   finds peers/NAME locked: [DB.GC] waits for a visit of the peer
//	peer          visits with NAME, and renews its leases, also those of versions that expired
//
// The system releases the lock when the peer ends, even if the peer is killed.

const peersDir = "peers"

// ErrPeersAway means that processes have versions of the database open, which they read through
// a process that has ended, and that they did not come back in time. Nothing was removed: what
// they read may be among it. The error names the processes.
var ErrPeersAway = errors.New("txn: processes that read the database have not come back to it since the process that had it open ended; continue or end them")

// peersTime is how long GC waits for peers.
var peersTime = 5 * time.Second // tests change it

// visits are the peers of a database. The zero value has none.
type visits struct {
	mu    sync.Mutex
	peers map[string]*visitor
}

// visitor is a peer that has been here.
type visitor struct {
	here int      // connections with leases that are renewed
	kept []func() // release the leases of connections that ended before the peer did
}

// Visit is a connection of a peer. It is for one goroutine.
type Visit struct {
	// Name is what the peer names in its next visit, also of another process that has the
	// database open.
	Name string
	// File is locked until the peer has closed it; nil if the peer has it already. The
	// caller closes it when it has sent the descriptor to the peer.
	File interface {
		io.Closer
		Fd() uintptr
	}
	db    *DB
	began bool
}

// Visit begins a visit: the first one of a peer, which who describes in errors, if name is "" or
// is not that of a living peer. The error is errors.ErrUnsupported if the peer cannot have a
// file: then its leases end with this process.
func (db *DB) Visit(name, who string) (*Visit, error) {
	if err := db.writable(); err != nil {
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	db.visits.mu.Lock()
	defer db.visits.mu.Unlock()
	if _, err := hex.DecodeString(name); name != "" && err == nil && db.peerLives(name) {
		return &Visit{Name: name, db: db}, nil
	}
	var id [8]byte
	rand.Read(id[:])
	v := &Visit{Name: hex.EncodeToString(id[:]), db: db}
	fs := db.opts.FS
	dir := fs.PathJoin(db.dir, peersDir)
	if err := fs.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	f, err := fs.Create(fs.PathJoin(dir, v.Name), index.WriteCategory)
	if err != nil {
		return nil, err
	}
	if _, err = io.WriteString(f, who); err == nil && db.opts.lives == nil && !pack.LockShared(f) {
		err = fmt.Errorf("lock %s: %w", fs.PathJoin(dir, v.Name), errors.ErrUnsupported)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), fs.Remove(fs.PathJoin(dir, v.Name)))
	}
	v.File = f
	return v, nil
}

// peerLives reports whether the file of a peer is locked.
func (db *DB) peerLives(name string) bool {
	if db.opts.lives != nil {
		return db.opts.lives(name)
	}
	f, err := db.opts.FS.Open(db.opts.FS.PathJoin(db.dir, peersDir, name))
	if err != nil {
		return false
	}
	defer f.Close()
	return pack.LockedElsewhere(f)
}

// Renew opens a version that the peer had leased before this visit. The version may have
// expired: nothing was collected without the peer.
func (v *Visit) Renew(ctx context.Context, id CommitID) (*Snapshot, error) {
	if v.File != nil {
		return v.db.Snapshot(ctx, id)
	}
	c, err := v.db.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	return &Snapshot{db: v.db, commit: c, close: v.db.hold(c.Root)}, nil
}

// Begin says that all leases are renewed. It releases those of earlier visits.
func (v *Visit) Begin() {
	v.db.visits.mu.Lock()
	defer v.db.visits.mu.Unlock()
	if v.db.visits.peers == nil {
		v.db.visits.peers = map[string]*visitor{}
	}
	p := v.db.visits.peers[v.Name]
	if p == nil {
		p = &visitor{}
		v.db.visits.peers[v.Name] = p
	}
	v.began = true
	p.here++
	p.release()
}

// End ends the visit, after which release ends its leases: at once if the peer has ended or
// is here by another connection, else at its next visit or when it ends.
func (v *Visit) End(release func()) {
	v.db.visits.mu.Lock()
	defer v.db.visits.mu.Unlock()
	p := v.db.visits.peers[v.Name]
	if !v.began || p == nil {
		release()
		return
	}
	p.here--
	if p.kept = append(p.kept, release); p.here > 0 {
		p.release()
	} else if !v.db.peerLives(v.Name) {
		v.db.forgetPeer(v.Name)
	}
}

func (p *visitor) release() {
	for _, fn := range p.kept {
		fn()
	}
	p.kept = nil
}

// forgetPeer forgets a peer that has ended. visits.mu is held.
func (db *DB) forgetPeer(name string) {
	if p := db.visits.peers[name]; p != nil {
		p.release()
		delete(db.visits.peers, name)
	}
	_ = db.opts.FS.Remove(db.opts.FS.PathJoin(db.dir, peersDir, name)) // else the next collection does
}

// awaitPeers waits until the leases of all peers that live are renewed.
func (db *DB) awaitPeers(ctx context.Context) error {
	late := time.After(peersTime)
	for {
		away, err := db.peersAway()
		if err != nil || len(away) == 0 {
			return err
		}
		err = fmt.Errorf("%w: %s", ErrPeersAway, strings.Join(away, ", "))
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		case <-late:
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// peersAway forgets peers that have ended, and describes those that live and have not been here.
func (db *DB) peersAway() (away []string, err error) {
	fs := db.opts.FS
	dir := fs.PathJoin(db.dir, peersDir)
	db.visits.mu.Lock()
	defer db.visits.mu.Unlock()
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, name := range names {
		switch p := db.visits.peers[name]; {
		case p != nil && p.here > 0:
		case !db.peerLives(name):
			db.forgetPeer(name)
		case p == nil:
			away = append(away, db.describePeer(name))
		}
	}
	return away, err
}

// describePeer reads the file of a peer.
func (db *DB) describePeer(name string) string {
	f, err := db.opts.FS.Open(db.opts.FS.PathJoin(db.dir, peersDir, name))
	if err != nil {
		return name
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 200))
	if err != nil || len(b) == 0 {
		return name
	}
	return string(b)
}
