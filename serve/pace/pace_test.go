package pace

import (
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// deadlines notes which deadlines are set.
type deadlines struct {
	httptest.ResponseRecorder
	read, write []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.read = append(d.read, t)
	return nil
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.write = append(d.write, t)
	return nil
}

func TestWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // between two writes there may be any time otherwise
		d := &deadlines{ResponseRecorder: *httptest.NewRecorder()}
		w := NewWriter(d, &http.Request{ProtoMajor: 1})
		begin := time.Now()
		for range 100 {
			_, _ = w.Write([]byte("x"))
		}
		_, _ = w.Write(make([]byte, 64*rate))
		if w.Status != 200 || w.Bytes != 100+64*rate {
			t.Errorf("status %d, %d bytes", w.Status, w.Bytes)
		}
		if want := []time.Time{begin.Add(stall), begin.Add(stall + 64*time.Second)}; !slices.Equal(d.write, want) {
			t.Errorf("deadlines %v, not %v", d.write, want)
		}
	})
}

func TestBody(t *testing.T) {
	d := &deadlines{}
	b := Body(d, io.NopCloser(strings.NewReader("abc")))
	if got, err := io.ReadAll(b); err != nil || string(got) != "abc" || len(d.read) < 2 {
		t.Errorf("%q, %v, deadlines %v", got, err, d.read)
	}
}

// A client that stalls ends the read of its body.
func TestStall(t *testing.T) {
	failed := make(chan error, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := Body(w, r.Body).(*reader)
		b.c = http.NewResponseController(hasty{w})
		_, err := io.ReadAll(b)
		failed <- err
	}))
	defer s.Close()
	c := must.Get(net.Dial("tcp", s.Listener.Addr().String()))(t)
	defer c.Close()
	must.Get(io.WriteString(c, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nab"))(t)
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a body that stalls: %v", err)
	}
}

// hasty has deadlines that are nearer.
type hasty struct{ http.ResponseWriter }

func (h hasty) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(h.ResponseWriter).SetReadDeadline(t.Add(-stall).Add(50 * time.Millisecond))
}
