package txn

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

func (db *DB) register(s *Session) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed.Load() {
		return ErrClosed
	}
	if db.sessions[s.id] != nil {
		return fmt.Errorf("session %v: %w", s.id, ErrSessionBusy)
	}
	db.sessions[s.id] = s
	db.open[s] = struct{}{}
	db.memory.sessions.Add(1)
	return nil
}

// register notes a session of the peer, which may have several with one id.
func (p *peer) register(s *Session) {
	p.db.mu.Lock()
	defer p.db.mu.Unlock()
	p.db.open[s] = struct{}{}
	p.db.memory.sessions.Add(1)
}

func (db *DB) unregister(s *Session) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, open := db.open[s]; !open {
		return
	}
	delete(db.open, s)
	if db.sessions[s.id] == s {
		delete(db.sessions, s.id)
	}
	db.memory.sessions.Add(-1)
}

// openSessions lists the sessions that are open in this process. Their locks are
// taken after mu is released, because a session that ends takes both.
func (db *DB) openSessions() []*Session {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.Collect(maps.Keys(db.open))
}

// OpenSessions returns the number of sessions that are open in this process, those of other
// processes that use the database through it included.
func (db *DB) OpenSessions() int { return int(db.memory.sessions.Load()) }

// SessionInfo describes a session that is open or stored.
type SessionInfo struct {
	ID      SessionID
	Branch  string
	Base    CommitID
	Created time.Time
	// Saved is the time of the last savepoint, or zero.
	Saved time.Time
	// Used is when it was last begun, resumed, written to or saved: as far as the index
	// knows, for a session that this process has not open.
	Used time.Time
	// Open says that this process has it open.
	Open bool
	// Label says what the session is for; see [Session.SetLabel].
	Label string
	// By is the process that began it, zero if an earlier version did.
	By Origin
}

// Origin is the process that began a session. Parts that are not known are zero.
type Origin = catalog.Origin

// thisProcess is the origin of sessions of this process.
var thisProcess = sync.OnceValue(func() Origin {
	by := Origin{Program: filepath.Base(os.Args[0]), PID: os.Getpid()}
	by.Host, _ = os.Hostname()
	if u, err := user.Current(); err == nil {
		by.User = u.Username
	}
	return by
})

// Sessions lists the sessions that can be resumed or are open, oldest first.
func (db *DB) Sessions(ctx context.Context) ([]SessionInfo, error) {
	return asked(ctx, db, "sessions", none{}, db.listSessions)
}

func (db *DB) listSessions(ctx context.Context, _ none) ([]SessionInfo, error) {
	if err := db.check(); err != nil {
		return nil, err
	}
	found, err := db.storedSessions(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range db.openSessions() {
		found[s.id] = s.Info()
	}
	list := make([]SessionInfo, 0, len(found))
	for _, i := range found {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b SessionInfo) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID[:]), string(b.ID[:]))
	})
	return list, nil
}

// storedSessions lists the sessions as of their savepoints.
func (db *DB) storedSessions(ctx context.Context) (map[SessionID]SessionInfo, error) {
	found := map[SessionID]SessionInfo{}
	for r, err := range catalog.Sessions.All(db.home.records(ctx)) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		found[r.ID] = SessionInfo{ID: r.ID, Branch: r.Branch, Base: r.Base, Created: r.Created, Saved: r.Saved, Used: r.Saved, Label: r.Label, By: r.By}
	}
	return found, nil
}

// Info describes the session.
func (s *Session) Info() SessionInfo {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return SessionInfo{ID: s.id, Branch: s.branch, Base: s.base, Created: s.created, Saved: s.saved, Used: s.used, Open: true, Label: s.label, By: s.by}
}
