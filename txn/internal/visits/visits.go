package visits

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
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

const peersDir = "peers"

// ErrPeersAway means that processes have versions of the database open, which they read through
// a process that has ended, and that they did not come back in time. Nothing was removed: what
// they read may be among it. The error names the processes.
var ErrPeersAway = errors.New("txn: processes that read the database have not come back to it since the process that had it open ended; continue or end them")

// Wait is how long [Peers.Await] waits for peers.
var Wait = 5 * time.Second // tests change it

// Host is the database that peers visit.
type Host struct {
	Dir string
	FS  index.FS
	// Lives reports whether the file of a peer is locked, where the system does not tell; nil asks the system.
	Lives func(name string) bool
	// Hold keeps a version until release is called. It is nil if the database has not got it: the list of a peer may
	// lag behind a collection.
	Hold func(id catalog.CommitID) (release func(), err error)
}

// Peers are the peers of a database. Safe for concurrent use.
type Peers struct {
	Host Host

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
	of    *Peers
	began bool
}

// Visit begins a visit: the first one of a peer, which who describes in errors, if name is "" or
// is not that of a living peer. The error is errors.ErrUnsupported if the peer cannot have a
// file: then its leases end with this process.
func (p *Peers) Visit(name, who string) (*Visit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := hex.DecodeString(name); name != "" && err == nil && p.peerLives(name) {
		return &Visit{Name: name, of: p}, nil
	}
	var id [8]byte
	rand.Read(id[:])
	v := &Visit{Name: hex.EncodeToString(id[:]), of: p}
	fs := p.Host.FS
	dir := fs.PathJoin(p.Host.Dir, peersDir)
	if err := fs.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	f, err := fs.Create(fs.PathJoin(dir, v.Name), index.WriteCategory)
	if err != nil {
		return nil, err
	}
	if _, err = io.WriteString(f, who); err == nil && p.Host.Lives == nil && !pack.LockShared(f) {
		err = fmt.Errorf("lock %s: %w", fs.PathJoin(dir, v.Name), errors.ErrUnsupported)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), fs.Remove(fs.PathJoin(dir, v.Name)))
	}
	v.File = f
	return v, nil
}

// peerLives reports whether the file of a peer is locked.
func (p *Peers) peerLives(name string) bool {
	if p.Host.Lives != nil {
		return p.Host.Lives(name)
	}
	f, err := p.Host.FS.Open(p.Host.FS.PathJoin(p.Host.Dir, peersDir, name))
	if err != nil {
		return false
	}
	defer f.Close()
	return pack.LockedElsewhere(f)
}

// Begin says that all leases are renewed. It releases those of earlier visits.
func (v *Visit) Begin() {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	if v.of.peers == nil {
		v.of.peers = map[string]*visitor{}
	}
	p := v.of.peers[v.Name]
	if p == nil {
		p = &visitor{}
		v.of.peers[v.Name] = p
	}
	v.began = true
	p.here++
	p.release()
}

// End ends the visit, after which release ends its leases: at once if the peer has ended or
// is here by another connection, else at its next visit or when it ends.
func (v *Visit) End(release func()) {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	p := v.of.peers[v.Name]
	if !v.began || p == nil {
		release()
		return
	}
	p.here--
	if p.kept = append(p.kept, release); p.here > 0 {
		p.release()
	} else if !v.of.peerLives(v.Name) {
		v.of.forgetPeer(v.Name)
	}
}

func (p *visitor) release() {
	for _, fn := range p.kept {
		fn()
	}
	p.kept = nil
}

// forgetPeer forgets a peer that has ended. visits.mu is held.
func (p *Peers) forgetPeer(name string) {
	if v := p.peers[name]; v != nil {
		v.release()
		delete(p.peers, name)
	}
	_ = p.Host.FS.Remove(p.Host.FS.PathJoin(p.Host.Dir, peersDir, name)) // else the next collection does
}

// Await waits until the leases of all peers that live are renewed.
func (p *Peers) Await(ctx context.Context) error {
	late := time.After(Wait)
	for {
		away, err := p.NotBack()
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

// NotBack forgets peers that have ended, and describes those that live and have not been here.
func (p *Peers) NotBack() (away []string, err error) {
	fs := p.Host.FS
	dir := fs.PathJoin(p.Host.Dir, peersDir)
	p.mu.Lock()
	defer p.mu.Unlock()
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, name := range names {
		switch v := p.peers[name]; {
		case v != nil && v.here > 0:
		case !p.peerLives(name):
			p.forgetPeer(name)
		case p.holdListed(name):
		case v == nil:
			away = append(away, p.describePeer(name))
		}
	}
	return away, err
}

// holdListed keeps the versions that a peer has written into its file, in place of those that were
// kept for it before. It is false if the peer does not write them. visits.mu is held.
func (p *Peers) holdListed(name string) bool {
	who, list, ok := strings.Cut(p.peerFile(name), "\n")
	if !ok || who == "" {
		return false
	}
	var kept []func()
	for line := range strings.FieldsFuncSeq(list, func(r rune) bool { return r <= ' ' }) {
		var id catalog.CommitID
		n, err := hex.Decode(id[:], []byte(line[:min(len(line), 2*len(id))]))
		if err == nil && n == len(id) {
			var release func()
			if release, err = p.Host.Hold(id); release != nil {
				kept = append(kept, release)
			}
		}
		if n != len(id) || err != nil {
			for _, release := range kept {
				release()
			}
			return false
		}
	}
	v := p.peers[name]
	if v == nil {
		v = &visitor{}
		if p.peers == nil {
			p.peers = map[string]*visitor{}
		}
		p.peers[name] = v
	}
	v.release()
	v.kept = kept
	return true
}

// describePeer names a peer for errors.
func (p *Peers) describePeer(name string) string {
	who, _, _ := strings.Cut(p.peerFile(name), "\n")
	if who == "" {
		return name
	}
	return who
}

// peerFile reads the file of a peer, "" if it cannot be read.
func (p *Peers) peerFile(name string) string {
	f, err := p.Host.FS.Open(p.Host.FS.PathJoin(p.Host.Dir, peersDir, name))
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
