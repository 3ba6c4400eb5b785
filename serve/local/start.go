package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
)

// A process that never takes a database over finds the process that serves it, or starts one:
//
//	connect ──▶ a socket answers ──▶ the connection
//	   ▲           │ none
//	   └── pause ──┴──▶ start zarrdb serve DIR --local, once

// starter connects to the process that serves a database.
type starter struct {
	dir  string
	o    AttachOptions
	wait atomic.Int64 // 0 for the default

	mu     sync.Mutex
	last   *started // the process that was started last, until its end was noticed
	socket string   // where the last connection was made
	passed string   // a socket of a process that has another database open, as after a database was moved
	until  time.Time
}

// passTime is how long a socket of another database is passed by.
const passTime = time.Second

// passBy has dial pass the socket of the last connection by: the database there is another one.
func (s *starter) passBy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed, s.until = s.socket, time.Now().Add(passTime)
}

// passes reports whether dial passes a socket by. It notes the socket.
func (s *starter) passes(socket string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.socket = socket
	return socket == s.passed && time.Now().Before(s.until)
}

// started is a process that this one has started.
type started struct {
	pid  int
	log  *os.File // its messages; a pipe would end it when this process ends
	done chan struct{}
	end  syscall.WaitStatus // after done
}

const (
	idleTime  = "60s" // a process that was started ends without clients for that long
	maxKilled = 3     // how often a process is started again that was killed before it served
)

// quiet has connect start nothing.
type quiet struct{}

// running returns the process that was started and runs, or nil.
func (s *starter) running() *started {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.ended() {
		return nil
	}
	return s.last
}

func (p *started) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// connect is [DialOptions].Redial.
func (s *starter) connect(ctx context.Context) (net.Conn, error) {
	patience, kills := cmp.Or(bounds(&s.wait), waitServing), 0
	for begun, pause := time.Now(), shortestPause; ; pause = min(2*pause, longestPause) {
		conn, err := s.dial(ctx)
		if conn != nil || err != nil {
			return conn, err
		}
		if ctx.Value(quiet{}) != nil {
			return nil, nobodyError(s.dir)
		}
		if err := s.serve(time.Since(begun) > patience, &kills); err != nil {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// dial makes one try. Without a server, there is neither a connection nor an error.
func (s *starter) dial(ctx context.Context) (net.Conn, error) {
	places, err := sockets.Of(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, socket := range places {
		if s.passes(socket) {
			continue
		}
		conn, failed := Connect(ctx, socket)
		if failed == nil {
			if s.o.Dialed != nil {
				s.o.Dialed(conn)
			}
			return conn, nil
		}
		if !absent(failed) && !errors.Is(failed, fs.ErrPermission) {
			err = errors.Join(err, failed)
		}
	}
	return nil, err
}

// serve has a process serve the database, or returns why that does not come about.
func (s *starter) serve(late bool, kills *int) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.last
	switch {
	case p == nil && !isDatabase(s.dir):
		return coded("no_database", s.dir+": there is no database; zarrdb.open(…, create=True) makes one")
	case p == nil && late:
		return coded("locked", s.dir+": the process that has it open does not answer")
	case p == nil:
		s.last, err = s.start()
		return err
	case !p.ended() && late:
		return coded("locked", fmt.Sprintf("%s: process %d was started to serve it, and does not answer", s.dir, p.pid))
	case !p.ended():
		return nil
	}
	s.last = nil
	defer p.log.Close()
	if p.end.Signaled() { // as the system does where memory is short
		if *kills++; *kills > maxKilled || late {
			return fmt.Errorf("%s: process %d was started to serve it, and killed by signal %d before it did, as %d before; a limit of memory may be the cause",
				s.dir, p.pid, p.end.Signal(), *kills-1)
		}
		return nil
	}
	err = exitError(p)
	if errors.Is(err, engine.ErrLocked) && !late && s.o.Wait >= 0 {
		return nil
	}
	return err // nil if another one was faster, or it was idle
}

// start starts a process so that Ctrl-C does not end it.
func (s *starter) start() (*started, error) {
	if s.o.Server == "" {
		return nil, coded("unsupported", "the program zarrdb was not found; put it on PATH or its path into ZARRDB_BINARY")
	}
	log, err := messages()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(s.o.Server, "serve", s.dir, "--local", "--idle", idleTime)
	cmd.Dir, cmd.Stderr = "/", log
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "NOTIFY_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	p := &started{pid: cmd.Process.Pid, log: log, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
		p.end, _ = cmd.ProcessState.Sys().(syscall.WaitStatus)
	}()
	return p, nil
}

// maxMessage bounds the message of a process that ended.
const maxMessage = 64 << 10

// exitError is the error of a process that has ended by itself.
func exitError(p *started) error {
	if p.end.ExitStatus() == 0 {
		return nil
	}
	b := make([]byte, maxMessage)
	n, err := p.log.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		n = 0
	}
	text := cmp.Or(strings.TrimPrefix(strings.TrimSpace(string(b[:n])), "zarrdb: "), fmt.Sprint("exit code ", p.end.ExitStatus()))
	if strings.Contains(text, "is in use by") || strings.Contains(text, "has it open") {
		return coded("locked", text)
	}
	if code := map[int]string{2: "invalid", 4: "no_database", 5: "corrupt"}[p.end.ExitStatus()]; code != "" {
		return coded(code, text)
	}
	return errors.New(text)
}

// isDatabase reports whether a directory is a database, or begins to be one.
func isDatabase(dir string) bool {
	is := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	return is("index/LOCK") || is("FORMAT") && is("index")
}
