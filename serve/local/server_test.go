package local

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// rawConn is a connection that has said hello.
func rawConn(t testing.TB, h *holder) (*wire.Conn, net.Conn) {
	t.Helper()
	c := must.Get(Connect(bg, h.l.Path()))(t)
	t.Cleanup(func() { c.Close() })
	w := wire.NewConn(c, wire.Limits{}, 0)
	must.Do(t, w.Send(&wire.Frame{Op: wire.OpHello, Meta: []byte(`{"protocol":1,"capabilities":["files"]}`)}))
	if f, err := w.Receive(); err != nil || f.Flags&wire.FlagError != 0 {
		t.Fatal(f, err)
	}
	return w, c
}

// What clients should not send ends their connection, or is answered by an error;
// others notice nothing.
func TestHostileClients(t *testing.T) {
	h, c := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": []byte("v")})
	v := version(t, c, "")
	header := func(h wire.Header) []byte { return h.Append(nil) }
	for name, bytes := range map[string][]byte{
		"http":     []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"long":     header(wire.Header{ID: 1, Op: wire.OpSet, Meta: 1 << 31, Body: 1 << 31}),
		"torn":     header(wire.Header{ID: 1, Op: wire.OpSet, Meta: 40, Body: 1 << 20}),
		"one byte": {7},
		"nothing":  nil,
	} {
		for _, greeted := range []bool{false, true} {
			conn, err := Connect(bg, h.l.Path())
			if greeted {
				conn.Close()
				_, conn = rawConn(t, h)
			}
			must.Do(t, err)
			must.Get(conn.Write(bytes))(t)
			must.Do(t, conn.(*net.UnixConn).CloseWrite())
			conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("%s: the server goes on: %v", name, err)
			}
			conn.Close()
		}
	}
	w, conn := rawConn(t, h)
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	refused := func(f *wire.Frame, want error) (text string) {
		t.Helper()
		f.ID = 9
		must.Do(t, w.Send(f))
		reply, err := w.Receive()
		if err != nil || reply.ID != 9 || reply.Flags != wire.FlagReply|wire.FlagError {
			t.Fatalf("%v: %+v, %v", f.Op, reply, err)
		}
		if err := remote(reply.Meta); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", f.Op, err, want)
		} else {
			text = err.Error()
		}
		return text
	}
	// A request that this version does not know says which program is older. The client has no version.
	for op, want := range map[wire.Op]string{200: "is older than the program that asks (version ): end that process", 28: "the program that asks (version ) is older than process"} {
		if got := refused(&wire.Frame{Op: op}, errors.ErrUnsupported); !strings.Contains(got, want) {
			t.Errorf("operation %d: %s", op, got)
		}
	}
	if got, want := refused(&wire.Frame{Op: wire.OpAsk, Meta: []byte(`{"name":"none","in":{}}`)}, errors.ErrUnsupported), "is older than"; !strings.Contains(got, want) {
		t.Errorf("a request that is not known: %s", got)
	}
	get := wire.Stat{View: 77, Key: "k"}
	set := wire.Set{View: 77, Key: "k"}
	refused(&wire.Frame{Op: 200}, errors.ErrUnsupported)
	refused(&wire.Frame{Op: wire.OpBye}, errors.ErrUnsupported)
	refused(&wire.Frame{Op: wire.OpHello}, errors.ErrUnsupported)
	refused(&wire.Frame{Op: wire.OpValue, Meta: []byte("sho")}, ErrRequest)
	refused(&wire.Frame{Op: wire.OpValue, Meta: get.Append(nil)}, ErrRequest)
	refused(&wire.Frame{Op: wire.OpSet, Meta: set.Append(nil)}, ErrRequest)
	refused(&wire.Frame{Op: wire.OpOpen, Meta: []byte(`{"rev":`)}, ErrRequest)
	refused(&wire.Frame{Op: wire.OpClose, Meta: []byte(`{"view":3}`)}, ErrRequest)
	refused(&wire.Frame{Op: wire.OpValue, Flags: wire.FlagReply}, ErrRequest)
	refused(&wire.Frame{Op: wire.OpBegin, Meta: []byte(`{"branch":"none"}`)}, txn.ErrNoRef)
	refused(&wire.Frame{Op: wire.OpOpen, Meta: []byte(`{"rev":"~00"}`)}, txn.ErrNoRef)
	if mmap.Supported {
		refused(&wire.Frame{Op: wire.OpValue, Meta: get.Append(nil), Pass: []wire.Descriptor{os.Stdin, os.Stdin}}, ErrRequest)
	}
	// A version is not written.
	refused(&wire.Frame{Op: wire.OpOpen, Meta: []byte(`{}`)}, ErrRequest)
	must.Do(t, w.Send(&wire.Frame{ID: 5, Op: wire.OpLease, Meta: []byte(`{}`)}))
	f := must.Get(w.Receive())(t)
	var opened wire.Lease
	must.Do(t, wire.ParseJSON(f.Op, f.Meta, &opened))
	set.View = opened.View
	refused(&wire.Frame{Op: wire.OpSet, Meta: set.Append(nil)}, ErrRequest)
	wantValue(t, v, "k", []byte("v"))
}

// A client that does not read its replies is left after a while.
func TestSlowClient(t *testing.T) {
	// Replies to a client that does read may be late too, on a busy machine.
	h, c := served(t, &Options{WriteTimeout: time.Second}, nil)
	put(t, h.db, map[string][]byte{"k": random(1, 1<<20)})
	w, conn := rawConn(t, h)
	in := payloadOf(t, c, "k")
	for id := range uint32(50) {
		if err := w.Send(&wire.Frame{ID: id, Op: wire.OpPayload, Meta: in}); err != nil {
			break // it has been left already
		}
	}
	// Nothing is read until the server gives up, which a second client sees by the
	// requests that it still gets answered.
	wantValue(t, version(t, c, ""), "k", random(1, 1<<20))
	for w.Send(&wire.Frame{ID: 99, Op: wire.OpCancel}) == nil {
		time.Sleep(time.Millisecond)
	}
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := io.Copy(io.Discard, conn)
	if n > 40<<20 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes were sent to a client that did not read: %v", n, err)
	}
}

// A server that does not answer is left after a while.
func TestSilentServer(t *testing.T) {
	must.Set(t, &helloTime, 20*time.Millisecond)
	socket := filepath.Join(shortDir(t), "s")
	l := must.Get(net.Listen("unix", socket))(t)
	defer l.Close()
	if _, err := Dial(bg, socket, nil); !errors.Is(err, os.ErrDeadlineExceeded) || !contains(err, socket) {
		t.Error(err)
	}
}

// Another user than that of the server reads.
func TestReaders(t *testing.T) {
	h, _ := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": []byte("v")})
	s := newServer(h.l, h.table, nil)
	socket := filepath.Join(shortDir(t), "s")
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"}))(t)
	go func() {
		for {
			u, err := l.AcceptUnix()
			if err != nil {
				return
			}
			s.begin(newConn(s, u, &serve.Principal{Name: "reader"}))
		}
	}()
	c := must.Get(Dial(bg, socket, nil))(t)
	defer s.finish()
	defer l.Close()
	defer leave(c)
	v := version(t, c, "main")
	wantValue(t, v, "k", []byte("v"))
	if _, err := beginOn(c); !errors.Is(err, serve.ErrDenied) {
		t.Error(err)
	}
	es := must.Get(h.table.Begin(bg, serve.Owner("x"), "t", serve.BeginOptions{}))(t)
	if _, err := resumeOn(c, es.Engine().ID()); !errors.Is(err, serve.ErrDenied) {
		t.Error(err)
	}
	p := must.Get(c.Peer(nil))(t)
	defer p.Close()
	head := must.Get(p.Head(bg, "main"))(t)
	if err := p.Versions().CreateTag(bg, "x", head); !errors.Is(err, serve.ErrDenied) {
		t.Error(err)
	}
	if _, err := kv.Get(bg, v, "none"); err != kv.ErrNotFound {
		t.Error(err)
	}
}

// The socket's mode follows the directory's.
func TestSocketMode(t *testing.T) {
	if !mmap.Supported {
		t.Skip("modes mean nothing here")
	}
	runtimeDir(t)
	up := shortDir(t)
	dir := filepath.Join(up, "t.zdb")
	h := hold(t, dir, nil)
	h.end()
	for _, test := range []struct {
		up, dir, socket fs.FileMode
		readers         bool
	}{
		{0o755, 0o755, 0o666, true}, {0o700, 0o755, 0o600, false}, {0o755, 0o700, 0o600, false}, {0o711, 0o750, 0o660, true},
	} {
		must.Do(t, errors.Join(os.Chmod(os.Getenv("TMPDIR"), 0o711), os.Chmod(up, test.up), os.Chmod(dir, test.dir)))
		l := must.Get(Listen(dir))(t)
		fi, err := os.Stat(l.Path())
		if err != nil || fi.Mode().Perm() != test.socket || l.Readers != test.readers {
			t.Errorf("%v in %v: %v, readers %v, %v", test.dir, test.up, fi.Mode(), l.Readers, err)
		}
		folder, err := os.Stat(filepath.Dir(l.Path()))
		if want := map[bool]fs.FileMode{true: 0o711, false: 0o700}[test.readers]; err != nil || folder.Mode().Perm() != want {
			t.Errorf("%v in %v: folder %v, %v", test.dir, test.up, folder.Mode(), err)
		}
		places, err := sockets.Of(dir)
		if err != nil || !contains(errors.New(filepath.Join(places...)), l.Path()) {
			t.Errorf("%q is not among %q, %v", l.Path(), places, err)
		}
		// One that a killed process left is replaced.
		again := must.Get(Listen(dir))(t)
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		l.UnixListener.Close()
		if _, err := os.Stat(l.Path()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the socket is left: %v", err)
		}
	}
	// A folder that others may change is refused.
	must.Do(t, os.Chmod(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "zarrdb"), 0o777))
	must.Do(t, os.Chmod(dir, 0o700))
	if _, err := Listen(dir); err == nil || !contains(err, "this user alone") {
		t.Error(err)
	}
}

// A socket that is removed is made again. One that has a foreign file in its place is made in the
// directory of the database, until that file is removed.
func TestSocketIsMadeAgain(t *testing.T) {
	h, c := served(t, nil, nil)
	path := h.l.Path()
	in := must.Get(sockets.Inside(h.db.Dir()))(t)
	for _, harm := range []struct {
		what string
		do   func() error
		path string
	}{
		{"removed", func() error { return os.Remove(path) }, path},
		{"folder", func() error { return os.RemoveAll(filepath.Dir(path)) }, path},
		{"nothing", func() error { return nil }, path},
		{"replaced", func() error { return errors.Join(os.Remove(path), os.WriteFile(path, []byte("foreign"), 0o600)) }, in.Path},
		{"both", func() error { return os.Remove(in.Path) }, in.Path},
		{"foreign file removed", func() error {
			b, err := os.ReadFile(path)
			if string(b) != "foreign" {
				t.Errorf("the foreign file: %q", b)
			}
			return errors.Join(err, os.Remove(path))
		}, path},
	} {
		must.Do(t, harm.do())
		if err := h.s.keepSockets(bg); err != nil {
			t.Errorf("%s: %v", harm.what, err)
		}
		conn, err := Dial(bg, harm.path, nil)
		if err != nil {
			t.Errorf("%s: %v", harm.what, err)
			continue
		}
		if _, err := conn.Source().Resolve(bg, "main"); err != nil {
			t.Errorf("%s: %v", harm.what, err)
		}
		conn.Close()
	}
	if _, err := c.Source().Resolve(bg, "main"); err != nil { // its connection goes on
		t.Error(err)
	}
	if err := h.end(); err != nil {
		t.Error(err)
	}
	for _, path := range []string{path, in.Path} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after the end: %v", err)
		}
	}
}

// A long path of the folder for sockets keeps no process out.
func TestLongFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Serving uses the directory of the database then; see TestPlacesOfSockets of internal/cli")
	}
	runtimeDir(t)
	long := filepath.Join(shortDir(t), strings.Repeat("x", 100))
	must.Do(t, os.Mkdir(long, 0o700))
	t.Setenv("TMPDIR", long)
	t.Setenv("XDG_RUNTIME_DIR", long)
	dir := filepath.Join(filepath.Dir(long), "t.zdb")
	h := hold(t, dir, nil)
	c := must.Get(DialDir(bg, h.db.Dir(), nil))(t)
	c.Close()
}
