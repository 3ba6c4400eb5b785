//go:build unix

package cli

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
)

// Each signal that ends programs leaves a session of an import to go on with. Under nohup, SIGHUP
// does not end it.
func TestSignalsKeepAnImport(t *testing.T) {
	const set = `{".zgroup": "{\"zarr_format\":2}",
		"x/.zarray": "{\"zarr_format\":2,\"shape\":[1],\"chunks\":[1],\"dtype\":\"|u1\",\"compressor\":null,\"filters\":null,\"fill_value\":0,\"order\":\"C\"}",
		"x/0": ["data", 0, 1]}`
	for _, c := range []struct {
		signal syscall.Signal
		nohup  bool
	}{{syscall.SIGTERM, false}, {syscall.SIGINT, false}, {syscall.SIGHUP, false}, {syscall.SIGHUP, true}} {
		t.Run(fmt.Sprint(c.signal, c.nohup), func(t *testing.T) {
			asked, goOn := make(chan bool, 10), make(chan bool)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/refs.json" {
					fmt.Fprint(w, set)
					return
				}
				asked <- true
				select {
				case <-r.Context().Done():
				case <-goOn:
					fmt.Fprint(w, "x")
				}
			}))
			defer srv.Close()
			once := sync.OnceFunc(func() { close(goOn) })
			defer once() // Close waits for the request
			switch {
			case c.nohup:
				signal.Ignore(syscall.SIGHUP)
				defer signal.Reset(syscall.SIGHUP)
			case c.signal == syscall.SIGHUP && signal.Ignored(syscall.SIGHUP):
				t.Skip("the tests run under nohup")
			}
			db := filepath.Join(t.TempDir(), "w.zdb")
			cmd := exec.Command("zarrdb", "import", db, srv.URL+"/refs.json")
			must.Do(t, cmd.Start())
			<-asked
			must.Do(t, cmd.Process.Signal(c.signal))
			if c.nohup {
				once()
				ended(t, cmd, exitOK)
				return
			}
			ended(t, cmd, exitInterrupted)
			if out, err := runProcess("session", "list", db); err != nil || !strings.Contains(out, "import") {
				t.Errorf("sessions: %q, %v", out, err)
			}
		})
	}
}

// A second SIGTERM or SIGINT ends a command that goes on after the first. One that follows at once,
// or SIGHUP, does not.
func TestSecondSignal(t *testing.T) {
	cmd := exec.Command("deaf")
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	lines := bufio.NewScanner(out)
	lines.Scan()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		must.Do(t, cmd.Process.Signal(s))
	}
	if lines.Scan(); lines.Text() != "cancelled" {
		t.Fatalf("after the first signal: %q", lines.Text())
	}
	time.Sleep(2 * sameSignal)
	must.Do(t, cmd.Process.Signal(syscall.SIGHUP))
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	ended(t, cmd, exitInterrupted)
}

// A command that computes, whatever it computes, ends after one signal, unless a session is open that
// is kept, of its own or of another process.
func TestSignalEndsAComputation(t *testing.T) {
	cmd := exec.Command("computing")
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	bufio.NewScanner(out).Scan()
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	ended(t, cmd, exitInterrupted)

	defer endsItself.Store(endsItself.Swap(false))
	db := must.Get(engine.Open(context.Background(), filepath.Join(t.TempDir(), "w.zdb"), &engine.Options{Create: true}))(t)
	noteOpen(db)
	check := func(when string, want bool) {
		if got := losesNothing(); got != want {
			t.Errorf("%s: may end %v, want %v", when, got, want)
		}
	}
	check("open", true)
	s := must.Get(db.Begin(context.Background(), ""))(t)
	check("in a session", false)
	discarded.Add(1)
	check("in a session that an interrupted command does not keep", true)
	discarded.Add(-1)
	s.Abort()
	check("after the session", true)
	new(phases).say("copied 1")
	check("while progress is counted", false)
	must.Do(t, db.Close())
}
