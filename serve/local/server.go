package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	membudget "github.com/zarrdb/zarrdb/internal/budget"
	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Options configure a server. nil and the zero value work.
type Options struct {
	// Version is compared by clients that need the same build; default
	// [Version].
	Version string
	// Requests bounds the simultaneous requests of a connection; default 256.
	Requests int
	// Views bounds the open views of a connection, sessions included; default
	// 1024.
	Views int
	// Memory bounds the requests and replies of all clients that are under way, in bytes:
	// also replies that clients have not read yet. Clients whose requests need more wait.
	// The default is a part of [engine.Options.MemoryBytes], at most 256 MiB. At least 16 MiB.
	Memory int64
	// MaxBody is the longest value, or selection of an array, that is sent or taken
	// in one piece; default and maximum Memory, at most [wire.MaxBody].
	MaxBody uint32
	// WriteTimeout bounds the time in which a client reads a reply, and, beside a second
	// for each MiB, the time in which a request arrives; default 30 s.
	WriteTimeout time.Duration
	// NoFiles sends all values as bytes.
	NoFiles bool
	// Idle ends the server with [ErrIdle] when there was no connection for so long;
	// 0 never does.
	Idle time.Duration
	// Grace is the time for running requests, including commands, when the
	// server ends; default 10 s.
	Grace time.Duration
	// Hurry, if not nil, delays Grace until it is closed: requests under way then
	// go on for as long as they take, and their clients can still cancel them.
	Hurry <-chan struct{}

	maxMeta int // the longest meta that is sent; default wire.MaxMeta
}

// ErrIdle means that the server has ended because it had no client for a while.
var ErrIdle = errors.New("local: idle")

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Version == "" {
		c.Version = Version()
	}
	if c.Requests <= 0 {
		c.Requests = 256
	}
	if c.Views <= 0 {
		c.Views = 1024
	}
	if c.Memory <= 0 {
		c.Memory = min(membudget.Requests.Bytes(), 256<<20)
	}
	c.Memory = max(c.Memory, 16<<20)
	if most := uint32(min(c.Memory, wire.MaxBody)); c.MaxBody == 0 || c.MaxBody > most {
		c.MaxBody = most
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 30 * time.Second
	}
	if c.Grace <= 0 {
		c.Grace = 10 * time.Second
	}
	if c.maxMeta == 0 {
		c.maxMeta = wire.MaxMeta
	}
	return c
}

// server is one Serve.
type server struct {
	t    *serve.Table
	name string // of the database in the table
	o    Options

	at        sockets.Address // where clients look for the socket
	accepting sync.WaitGroup
	ready     chan struct{} // closed when connections are served

	mu      sync.Mutex
	sockets map[string]*sockets.Listener // by path
	conns   map[*conn]struct{}
	over    bool // no connection begins any more
	wg      sync.WaitGroup
	metas   budget
	bodies  budget
	idle    *time.Timer // nil if the server does not end by itself
	end     context.CancelCauseFunc
	staying context.Context // ends when the server ends; the cause is ErrGone
	leave   context.CancelCauseFunc
	failed  func() error // returns why the database has failed, which ends the server; nil if that does not

	memory *membudget.Member
}

// serve answers the clients that connect to l, until ctx is done or l fails. Then
// it takes no more requests, waits for those under way, leaves the sessions of its
// clients at savepoints, and closes l. It returns nil when ctx is done.
// It ends with [engine.ErrMoved] when the directory of its database was moved, removed or
// replaced, and with [engine.ErrFailed] if failed says so.
func (s *server) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.memory = membudget.Divide(1)
	defer s.memory.Leave()
	defer membudget.Count(membudget.Requests, func() int64 { return s.metas.held() + s.bodies.held() })()
	if db, err := s.t.Database(context.Background(), s.name); err == nil {
		defer db.Versions().Cache(s.recall)()
	}
	if s.o.Idle > 0 {
		s.idle = time.AfterFunc(s.o.Idle, func() { cancel(ErrIdle) })
		defer s.idle.Stop()
	}
	s.mu.Lock()
	s.end = cancel
	for _, l := range s.sockets {
		s.accepting.Go(func() { s.accept(ctx, l) })
	}
	s.mu.Unlock()
	close(s.ready)
	s.wg.Go(func() { s.watch(ctx) })
	<-ctx.Done()
	err := s.closeSockets()
	s.finish()
	if cause := context.Cause(ctx); errors.Is(cause, ErrIdle) || errors.Is(cause, engine.ErrMoved) || errors.Is(cause, engine.ErrFailed) || errors.Is(cause, net.ErrClosed) {
		err = errors.Join(cause, err)
	}
	return err
}

// dial connects this process to its own server.
func (s *server) dial() (net.Conn, error) {
	ours, theirs, err := sockets.Pair()
	if errors.Is(err, errors.ErrUnsupported) {
		return Connect(context.Background(), s.at.Path)
	}
	if err != nil {
		return nil, err
	}
	c := newConn(s, theirs, serve.Owner(userName(os.Getuid())))
	c.own = true
	<-s.ready
	s.begin(c)
	return ours, nil
}

// newServer returns a server of the one database in t that listens on l. If l has no socket, keepSockets makes one.
func newServer(l *sockets.Listener, t *serve.Table, o *Options) *server {
	s := &server{t: t, name: t.Names()[0], o: o.withDefaults(), at: l.At, ready: make(chan struct{}), sockets: map[string]*sockets.Listener{}, conns: map[*conn]struct{}{}}
	if l.UnixListener != nil {
		s.sockets[l.Path()] = l
	}
	s.staying, s.leave = context.WithCancelCause(context.Background())
	s.bodies = budget{limit: s.o.Memory, users: map[string]*account{}}
	s.metas = budget{limit: max(s.o.Memory/8, 2*wire.MaxMeta), users: map[string]*account{}}
	return s
}

// watchPause is the time between two looks at the directory of the database.
const watchPause = time.Second

// watch ends the server soon after the directory of its database was moved, removed or
// replaced, so that the database can be opened at its new path. Clients of that path may
// not find the socket of this server, which has the name of the old one. It also makes
// sockets that are missing.
func (s *server) watch(ctx context.Context) {
	t := time.NewTicker(watchPause)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.lookAround()
			_ = s.keepSockets(ctx) // the next look tries again
		}
	}
}

// keepSockets makes the socket of the database if it is missing: at the beginning, and when a
// program that cleans the directory for temporary files has removed it. Without a place for that
// socket, and if a process knocks, the server also listens in the directory of the database: the
// process has another directory for temporary files, such as that of another container. The error
// says which socket cannot be made.
func (s *server) keepSockets(ctx context.Context) error {
	err := s.keepSocket(ctx, s.at)
	if sockets.IsInside(s.at.Path) || err == nil && !txn.Knocked(s.at.Dir) {
		return err
	}
	in, failed := sockets.Inside(s.at.Dir)
	if failed == nil {
		failed = s.keepSocket(ctx, in)
	}
	if failed != nil {
		return errors.Join(err, failed)
	}
	return nil
}

// keepSocket makes a socket unless it is there.
func (s *server) keepSocket(ctx context.Context, a sockets.Address) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.sockets[a.Path]
	if ctx.Err() != nil || old != nil && old.InPlace() {
		return nil
	}
	l, err := a.Listen()
	if err != nil {
		return err
	}
	s.sockets[a.Path] = l
	if old != nil {
		_ = old.UnixListener.Close()
	}
	if s.end != nil {
		s.accepting.Go(func() { s.accept(ctx, l) })
	}
	return nil
}

// closeSockets takes no more connections.
func (s *server) closeSockets() (err error) {
	s.mu.Lock()
	sockets := s.sockets
	s.sockets = nil
	s.mu.Unlock()
	for _, l := range sockets {
		err = errors.Join(err, l.Close())
	}
	s.accepting.Wait()
	return err
}

// lookAround ends the server if the directory of its database is not in its place, or if the
// database has failed and this process is to open it again. An [engine.ErrMoved] of a database
// is an [engine.ErrFailed] too.
func (s *server) lookAround() {
	_, err := s.identity()
	if err == nil && s.failed != nil {
		err = s.failed()
	}
	if errors.Is(err, engine.ErrFailed) {
		s.end(err)
	}
}

// identity returns the identity of the database. [engine.ErrMoved] if it is not in its place.
func (s *server) identity() (id txn.Identity, err error) {
	db, err := s.t.Database(context.Background(), s.name)
	if err == nil {
		id = db.Identity()
	} else if !errors.Is(err, engine.ErrMoved) {
		err = nil
	}
	return id, err
}

// endAfter ends a server that would end when it is idle, if c is its only connection.
func (s *server) endAfter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.conns[c]; !there || s.idle == nil || s.clients() > 1 {
		return false
	}
	s.end(ErrIdle)
	return true
}

// accept takes connections from l until ctx is done or l is closed.
func (s *server) accept(ctx context.Context, l *sockets.Listener) {
	pause := time.Millisecond
	for {
		u, err := l.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = u.Close()
			}
			return
		case errors.Is(err, net.ErrClosed):
			s.mu.Lock()
			if s.sockets[l.Path()] == l { // it was not this server that closed it
				s.end(fmt.Errorf("serve %s: %w", l.Dir, err))
			}
			s.mu.Unlock()
			return
		case err != nil:
			// No descriptors are left, for example. Connections that end give some back.
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = time.Millisecond
		who, err := s.authenticate(u)
		if err != nil {
			_ = u.Close()
			continue
		}
		s.begin(newConn(s, u, who))
	}
}

// begin serves a connection.
func (s *server) begin(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		_ = c.u.Close()
		return
	}
	s.conns[c] = struct{}{}
	if s.idle != nil && !c.own {
		s.idle.Stop()
	}
	s.wg.Go(func() {
		c.serve()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
		if s.idle != nil && !c.own && s.clients() == 0 {
			s.idle.Reset(s.o.Idle)
		}
	})
}

// clients returns the number of connections without those of this process. s.mu is held.
func (s *server) clients() (n int) {
	for c := range s.conns {
		if !c.own {
			n++
		}
	}
	return n
}

// finish ends all connections. Requests that may last are cancelled, others are waited for: what
// a peer does while such a request is under way may need the next process that has the
// database open, which begins when this server has ended.
func (s *server) finish() {
	s.leave(ErrGone)
	s.mu.Lock()
	s.over = true
	for c := range s.conns {
		c.leave()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// authenticate returns the principal of a connection.
func (s *server) authenticate(u *net.UnixConn) (*serve.Principal, error) {
	uid, known, err := sockets.UserOf(u)
	if err != nil {
		return nil, err
	}
	if !known || uid == os.Getuid() || uid == 0 {
		return serve.Owner(userName(os.Getuid())), nil
	}
	if !s.at.Readers() {
		return nil, fmt.Errorf("%w: user %d may not read %s", serve.ErrDenied, uid, s.at.Dir)
	}
	return &serve.Principal{Name: userName(uid)}, nil
}

// userName is the name of a user, with that of the machine.
func userName(uid int) string {
	name := "user " + strconv.Itoa(uid)
	u, err := user.LookupId(strconv.Itoa(uid))
	if uid < 0 {
		u, err = user.Current()
	}
	if err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		name += "@" + host
	}
	return name
}

func (s *server) hello(who *serve.Principal) *wire.Hello {
	h := &wire.Hello{
		Protocol: wire.Protocol, Version: s.o.Version, PID: os.Getpid(), Program: filepath.Base(os.Args[0]),
		Dir: s.at.Dir, MaxMeta: wire.MaxMeta, MaxBody: s.o.MaxBody, Requests: s.o.Requests,
	}
	if s.sendsFiles() && canShare && who.Admin {
		h.Capabilities = []string{wire.CapBodies}
	}
	return h
}

// sendsFiles reports whether clients get descriptors.
func (s *server) sendsFiles() bool { return !s.o.NoFiles && mmap.Supported }
