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
	"github.com/zarrdb/zarrdb/kv/tree"
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
//
// A peer that does nothing while its program does not call it, such as a client in Python, cannot
// come back at once. It writes the versions that it has open into its file, and [DB.GC] keeps them:
//
//	process 42 of user alice
//	0123456789abcdef0123456789abcdef01234567
//	(blanks: the peer has closed a version)

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
		case db.holdListed(name):
		case p == nil:
			away = append(away, db.describePeer(name))
		}
	}
	return away, err
}

// holdListed keeps the versions that a peer has written into its file, in place of those that were
// kept for it before. It is false if the peer does not write them. visits.mu is held.
func (db *DB) holdListed(name string) bool {
	who, list, ok := strings.Cut(db.peerFile(name), "\n")
	if !ok || who == "" {
		return false
	}
	var kept []func()
	for line := range strings.FieldsFuncSeq(list, func(r rune) bool { return r <= ' ' }) {
		var id CommitID
		n, err := hex.Decode(id[:], []byte(line[:min(len(line), 2*len(id))]))
		if err == nil && n == len(id) {
			var c *Commit
			if c, err = db.Lookup(context.Background(), id); err == nil && db.hasPage(c.Root) {
				kept = append(kept, db.hold(c.Root))
			}
		}
		if n != len(id) || err != nil && !errors.Is(err, ErrNoRef) {
			for _, release := range kept {
				release()
			}
			return false
		}
	}
	p := db.visits.peers[name]
	if p == nil {
		p = &visitor{}
		if db.visits.peers == nil {
			db.visits.peers = map[string]*visitor{}
		}
		db.visits.peers[name] = p
	}
	p.release()
	p.kept = kept
	return true
}

// hasPage reports whether a root is stored: the list of a peer may lag behind a collection.
func (db *DB) hasPage(root tree.Root) bool {
	return root.Empty() || db.committed().ViewPage(context.Background(), root.Name, func([]byte) error { return nil }) == nil
}

// describePeer names a peer for errors.
func (db *DB) describePeer(name string) string {
	who, _, _ := strings.Cut(db.peerFile(name), "\n")
	if who == "" {
		return name
	}
	return who
}

// peerFile reads the file of a peer, "" if it cannot be read.
func (db *DB) peerFile(name string) string {
	f, err := db.opts.FS.Open(db.opts.FS.PathJoin(db.dir, peersDir, name))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPeerFile))
	if err != nil || len(b) == maxPeerFile {
		return ""
	}
	return string(b)
}

// maxPeerFile bounds the file of a peer. The peer is waited for if its file is longer.
const maxPeerFile = 16 << 20
