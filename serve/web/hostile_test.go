package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// listen serves a site on loopback, with the limits of [Server].
func (s *site) listen(change func(*http.Server)) *httptest.Server {
	s.t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config = Server(s.h, nil)
	if change != nil {
		change(server.Config)
	}
	server.Start()
	s.t.Cleanup(server.Close)
	return server
}

// raw sends bytes and returns the status line of the answer, "" without an
// answer.
func raw(t *testing.T, server *httptest.Server, request string) string {
	t.Helper()
	c := must.Get(net.Dial("tcp", server.Listener.Addr().String()))(t)
	defer c.Close()
	go io.WriteString(c, request) //nolint:errcheck // the server may end it
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line)
}

func TestHostileRequests(t *testing.T) {
	s := newSite(t, Options{Authenticate: named, Anonymous: reader})
	server := s.listen(nil)
	hasty := s.listen(func(c *http.Server) { c.ReadHeaderTimeout = 50 * time.Millisecond })
	get := func(target string, more ...string) string {
		return "GET " + target + " HTTP/1.1\r\nHost: x\r\n" + strings.Join(more, "") + "\r\n"
	}
	for _, c := range []struct{ what, request, want string }{
		{"an ordinary one", get("/w/v/main/keys/small"), "HTTP/1.1 200 OK"},
		{"a whole URL", get("http://x/w/v/main/keys/small"), "HTTP/1.1 200 OK"},
		{"dots", get("/w/v/main/../../../etc/passwd"), "HTTP/1.1 400"},
		{"escaped dots", get("/w/v/main/%2e%2e/%2e%2e/etc/passwd"), "HTTP/1.1 400"},
		{"dots twice escaped", get("/w/v/main/%252e%252e/x"), "HTTP/1.1 404"},
		{"escaped slashes", get("/w/v/main/..%2f..%2fetc%2fpasswd"), "HTTP/1.1 400"},
		{"backslashes", get(`/w/v/main/..\..\etc\passwd`), "HTTP/1.1 404"},
		{"a bad escape", get("/w/v/main/%zz"), "HTTP/1.1 400"},
		{"two slashes", get("//w/v/main/keys/small"), "HTTP/1.1 200"},
		{"many slashes", get("/w/v/main/" + strings.Repeat("/", 8000) + "keys/small"), "HTTP/1.1 200"},
		{"many escaped slashes", get("/w/v/main/" + strings.Repeat("%2F", 8000)), "HTTP/1.1 200"},
		{"dots between slashes", get("/w/v/main//..//..//etc"), "HTTP/1.1 400"},
		{"no path", get("*"), "HTTP/1.1 400"},
		{"a revision with a path", get("/w/v/main:keys/small"), "HTTP/1.1 404"},
		{"a revision with a pipe", get("/w/v/main%7Czip:/small"), "HTTP/1.1 404"},
		{"a session that is not there", get("/w/v/~0000000000000000/x"), "HTTP/1.1 404"},
		{"an invalid session", get("/w/v/~../x"), "HTTP/1.1 4"},
		{"a long header", get("/w/v/main/keys/small", "X: "+strings.Repeat("x", 64<<10)+"\r\n"), "HTTP/1.1 431"},
		{"many headers", get("/w/v/main/keys/small", strings.Repeat("X: y\r\n", 20000)), "HTTP/1.1 431"},
		{"a long path", get("/w/v/main/" + strings.Repeat("k", 8000)), "HTTP/1.1 400"},
		{"two lengths", "PUT /w/v/main/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 400"},
		{"a line break in a header", get("/w/v/main/keys/small", "Range: bytes=0-1\r\n X: y\r\n"), "HTTP/1.1 416"},
		{"a bad chunk", "PUT /w/v/main/x?commit=x HTTP/1.1\r\nHost: x\r\n" + asWriter + "\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", "HTTP/1.1 400"},
		{"a chunk that is too long", "PUT /w/v/main/x?commit=x HTTP/1.1\r\nHost: x\r\n" + asWriter + "\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabcdef\r\n", "HTTP/1.1 400"},
		{"a bad trailer", "PUT /w/v/main/x?commit=x HTTP/1.1\r\nHost: x\r\n" + asWriter + "\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nbad trailer\r\n\r\n", "HTTP/1.1 400"},
		{"no host", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
		{"nonsense", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", "HTTP/1.1 400"},
	} {
		if got := raw(t, server, c.request); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	if got := raw(t, hasty, "GET /w/v/main/keys/small HTTP/1.1\r\nHost: x\r\nX: "); got != "" {
		t.Errorf("a header that does not end: %q", got)
	}
}

// Requests beyond the slots get status 503, and slots are released.
func TestSlots(t *testing.T) {
	s := newSite(t, Options{Authenticate: named, Requests: 1})
	server := s.listen(nil)
	c := must.Get(net.Dial("tcp", server.Listener.Addr().String()))(t)
	defer c.Close()
	// The server asks for the body when it reads it, so the slot is taken then.
	fmt.Fprintf(c, "PUT /w/v/main/x?commit=x HTTP/1.1\r\nHost: x\r\n%s\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n", asWriter)
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("%q, %v", line, err)
	}
	get := func() int {
		r, _ := http.NewRequest("GET", server.URL+"/w/v/main/keys/small", nil)
		r.Header.Set("Authorization", "Bearer writer")
		res := must.Get(http.DefaultClient.Do(r))(t)
		res.Body.Close()
		return res.StatusCode
	}
	if got := get(); got != 503 {
		t.Errorf("without a slot: status %d", got)
	}
	if r, err := http.Get(server.URL + "/-/health"); err != nil || r.StatusCode != 200 {
		t.Errorf("health: %v", err)
	}
	c.Close()
	for deadline := time.Now().Add(time.Minute); get() != 200; {
		if time.Now().After(deadline) {
			t.Fatal("the slot does not come back")
		}
	}
}

// late failure: a value of which a later piece cannot be read ends the
// connection, so that no client mistakes the beginning for the whole.
type failing struct{ kv.Value }

func (f failing) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	if off, _, _ := rng.Resolve(f.Size()); off >= 8<<20 {
		return kv.ErrCorrupt
	}
	return f.Value.View(ctx, rng, fn)
}

func TestFailureInTheMiddle(t *testing.T) {
	long := kv.Bytes(make([]byte, 8<<20+10))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = serveValue(w, r, failing{long})
	}))
	defer server.Close()
	r := must.Get(http.Get(server.URL))(t)
	defer r.Body.Close()
	if n, err := io.Copy(io.Discard, r.Body); !errors.Is(err, io.ErrUnexpectedEOF) || n > 8<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// A client that goes away leaves nothing behind that others notice.
func TestClientsThatLeave(t *testing.T) {
	s := newSite(t, Options{Requests: 4})
	server := s.listen(nil)
	for range 20 {
		c := must.Get(net.Dial("tcp", server.Listener.Addr().String()))(t)
		fmt.Fprint(c, "GET /w/v/main/keys/big HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := io.ReadFull(c, make([]byte, 100)); err != nil {
			t.Error(err)
		}
		c.Close()
	}
	for deadline := time.Now().Add(time.Minute); ; {
		r := must.Get(http.Get(server.URL + "/w/v/main/keys/small"))(t)
		r.Body.Close()
		if r.StatusCode == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("status %d", r.StatusCode)
		}
	}
}
