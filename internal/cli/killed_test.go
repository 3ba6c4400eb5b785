package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
)

const killedSecret = "the-secret-of-the-loader"

// server is a process that serves a database, and that is killed again and again.
type server struct {
	t        *testing.T
	db, keys string
	cmd      *exec.Cmd
	http, s3 string
}

// start starts the server, again while a command that was under way has the database open.
func (s *server) start() {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		message := s.tryStart()
		if message == "" {
			return
		}
		if s.kill(); !strings.Contains(message, "in use") || time.Now().After(end) {
			s.t.Fatalf("the server did not start: %s", message)
		}
	}
}

// tryStart starts the server, and returns why it does not run.
func (s *server) tryStart() string {
	s.t.Helper()
	s.cmd = exec.Command("zarrdb", "serve", s.db, "--listen", "127.0.0.1:0", "--s3", "127.0.0.1:0", "--keys", s.keys)
	var messages bytes.Buffer
	s.cmd.Stderr = &messages
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	s.http, s.s3 = "", ""
	for s.s3 == "" && lines.Scan() {
		switch name, url, _ := strings.Cut(lines.Text(), " at "); name {
		case "S3":
			s.s3 = url
		case filepath.Base(s.db):
			s.http, _, _ = strings.Cut(url, "/"+name+"/")
		}
	}
	if s.s3 != "" && s.http != "" {
		return ""
	}
	_ = s.cmd.Wait() // for the messages
	return messages.String() + "it ended"
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // says that it was killed
}

// do sends a request; any status from 300 on is an error.
func (s *server) do(r *http.Request, err error) (string, error) {
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusNotFound {
		return "", kv.ErrNotFound
	}
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	return string(b), err
}

func (s *server) bearer(method, path, body string) (string, error) {
	r, err := http.NewRequest(method, s.http+path, strings.NewReader(body))
	if err == nil {
		r.Header.Set("Authorization", "Bearer "+killedSecret)
	}
	return s.do(r, err)
}

func (s *server) signed(method, path, body string) (string, error) {
	r, err := http.NewRequest(method, s.s3+path, strings.NewReader(body))
	if err == nil {
		r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
		r = signer.SignV4(*r, "loader", killedSecret, "", "us-east-1")
	}
	return s.do(r, err)
}

// door is a way to a session: "" is the value of a key that is to be deleted.
type door struct {
	begin  func() (id string, err error)
	set    func(id, key, value string) error
	get    func(id, key string) (string, error)
	commit func(id string) error
}

func (s *server) doors() map[string]*door {
	name := filepath.Base(s.db)
	method := func(value string) string {
		if value == "" {
			return "DELETE"
		}
		return "PUT"
	}
	web := &door{
		begin: func() (string, error) {
			out, err := s.bearer("POST", "/-/api/sessions", `{"db":"`+name+`"}`)
			_, id, _ := strings.Cut(out, `"id":"`)
			return id[:min(16, len(id))], err
		},
		set: func(id, key, value string) error {
			_, err := s.bearer(method(value), "/"+name+"/v/~"+id+"/"+key, value)
			return err
		},
		get: func(id, key string) (string, error) { return s.bearer("GET", "/"+name+"/v/~"+id+"/"+key, "") },
		commit: func(id string) error {
			_, err := s.bearer("POST", "/-/api/sessions/"+name+"/"+id+"/commit", "{}")
			return err
		},
	}
	bucket := *web
	bucket.set = func(id, key, value string) error {
		_, err := s.signed(method(value), "/"+name+"/~"+id+"/"+key, value)
		return err
	}
	bucket.get = func(id, key string) (string, error) { return s.signed("GET", "/"+name+"/~"+id+"/"+key, "") }

	commands := &door{
		begin: func() (string, error) { return runProcess("session", "begin", s.db) },
		set: func(id, key, value string) error {
			if value == "" {
				_, err := runProcess("rm", s.db+":"+key, "--session", id)
				return err
			}
			file := filepath.Join(s.t.TempDir(), "value")
			if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
				return err
			}
			_, err := runProcess("put", s.db, key, file, "--session", id)
			return err
		},
		get: func(id, key string) (string, error) {
			out, err := exec.Command("zarrdb", "get", s.db, key, "--session", id).Output()
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() == exitNotFound {
				err = kv.ErrNotFound
			}
			return string(out), err
		},
		commit: func(id string) error {
			_, err := runProcess("session", "commit", s.db, id, "-m", "x")
			return err
		},
	}
	return map[string]*door{"HTTP": web, "S3": &bucket, "socket": s.socket(), "commands": commands}
}

// socket is one client that stays while servers come and go.
func (s *server) socket() *door {
	var open *engine.Session
	return &door{
		begin: func() (string, error) {
			c, err := local.DialDir(s.t.Context(), s.db, nil)
			if err != nil {
				return "", err
			}
			s.t.Cleanup(func() { _ = c.Close() })
			db, err := engine.OpenPeer(s.db, c.Identity(), c.Source(), nil)
			if err != nil {
				return "", err
			}
			s.t.Cleanup(func() { _ = db.Close() })
			if open, err = db.Begin(s.t.Context(), ""); err != nil {
				return "", err
			}
			return open.ID().String(), nil
		},
		set: func(_, key, value string) error {
			if value == "" {
				return open.Delete(s.t.Context(), key)
			}
			return open.Set(s.t.Context(), key, []byte(value))
		},
		get: func(_, key string) (string, error) {
			b, err := kv.Get(s.t.Context(), open, key)
			return string(b), err
		},
		commit: func(string) error {
			_, err := open.Commit(s.t.Context(), engine.CommitOptions{})
			return err
		},
	}
}

// The server is killed after each request to a session, and during each: what was
// acknowledged is there, of what was not all or nothing, and the commit has it, by every
// door.
func TestKilledAtEveryRequest(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes are not joined")
	}
	value := func(seed byte, n int) string {
		b := bytes.Repeat([]byte{seed}, n)
		for i := range b[:n/2] {
			b[i] = byte(rand.Uint32())
		}
		return string(b)
	}
	for _, name := range []string{"HTTP", "S3", "socket", "commands"} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "z") // sockets have short paths
			must.Do(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			t.Setenv("XDG_RUNTIME_DIR", dir)
			s := &server{t: t, db: filepath.Join(dir, "w.zdb"), keys: filepath.Join(dir, "keys")}
			must.Do(t, os.WriteFile(s.keys, []byte("loader admin "+killedSecret+"\n"), 0o600))
			must.Get(runProcess("init", s.db))(t)
			s.start()
			defer func() { s.kill() }()
			d := s.doors()[name]
			id := must.Get(d.begin())(t)
			if list, err := runProcess("session", "list", s.db); err != nil || strings.Contains(list, "not saved") != (name == "socket") || strings.Contains(list, "0001-") {
				t.Errorf("session list: %s, %v", list, err)
			}
			want := map[string]string{}
			check := func(unsure string) {
				t.Helper()
				for _, key := range []string{"a", "g/b", "c", "none"} {
					got, err := d.get(id, key)
					if errors.Is(err, kv.ErrNotFound) {
						got, err = "", nil
					}
					if err != nil || got != want[key] && (key != "g/b" || unsure == "" || got != unsure) {
						t.Fatalf("%s: %d bytes, want %d: %v", key, len(got), len(want[key]), err)
					}
				}
			}
			steps := []struct{ key, value string }{
				{"a", "1"}, {"g/b", value(1, 100<<10)}, {"c", value(2, 5000)}, {"a", ""}, {"g/b", value(3, 70<<10)}, {"c", "2"}, {"a", "3"},
			}
			if testing.Short() {
				steps = steps[:4]
			}
			for _, step := range steps {
				if err := d.set(id, step.key, step.value); err != nil {
					t.Fatalf("set %s: %v", step.key, err)
				}
				want[step.key] = step.value
				s.kill()
				s.start()
				check("")
				// One that is under way when the server is killed.
				unsure := value(4, 80<<10)
				done := make(chan error, 1)
				go func() { done <- d.set(id, "g/b", unsure) }()
				s.kill()
				s.start()
				if err := <-done; err == nil {
					want["g/b"] = unsure
				}
				check(unsure)
				must.Do(t, d.set(id, "g/b", step.key))
				want["g/b"] = step.key
			}
			maps.DeleteFunc(want, func(_, value string) bool { return value == "" })
			s.kill()
			s.start()
			must.Do(t, d.commit(id))
			s.kill()
			db := must.Get(engine.Open(t.Context(), s.db, nil))(t)
			defer db.Close()
			list, err := db.Sessions(t.Context())
			if err != nil || len(list) > 0 {
				t.Errorf("sessions that are left: %v, %v", list, err)
			}
			v := must.Get(db.At(t.Context(), ""))(t)
			defer v.Close()
			got := map[string]string{}
			for key, err := range v.List(t.Context(), kv.ListOptions{}) {
				b, getErr := kv.Get(t.Context(), v, key)
				must.Do(t, errors.Join(err, getErr))
				got[key] = string(b)
			}
			if !maps.Equal(got, want) {
				t.Errorf("the commit has %v, not %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
			if r, err := db.Check(t.Context(), txn.CheckOptions{Payloads: true}); err != nil || len(r.Problems) > 0 {
				t.Errorf("check: %v, %v", r.Problems, err)
			}
		})
	}
}
