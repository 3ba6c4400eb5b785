package local

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
)

// Some tests need a second process: this one, run again with a role.
const roleVariable = "ZARRDB_TEST_ROLE"

var roles = map[string]func(args []string) error{
	"reader": readForEver, "holder": serveForEver, "opener": openForEver, "asker": askForEver, "load": loadClients, "killed": killedClient, "keeper": keepVersion,
}

func playRole(role string) {
	if err := roles[role](os.Args[1:]); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// openForEver has a database open as programs do: DIR.
func openForEver(args []string) error {
	db, err := openShared(args[0])
	if err != nil {
		return err
	}
	fmt.Println("open")
	lineOf(os.Stdin)
	return db.Close()
}

// lineOf reads one line.
func lineOf(r io.Reader) string {
	s, _ := bufio.NewReader(r).ReadString('\n')
	return strings.TrimSuffix(s, "\n")
}

// child is a process in a role.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, role string, args ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	c := &child{cmd, in, bufio.NewReader(out)}
	t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			c.kill(t)
		}
	})
	return c
}

// line reads what the child prints next.
func (c *child) line(t *testing.T) string {
	t.Helper()
	s, err := c.out.ReadString('\n')
	if err != nil || strings.HasPrefix(s, "error") {
		t.Fatalf("the child said %q, %v", s, err)
	}
	return strings.TrimSuffix(s, "\n")
}

func (c *child) say(t *testing.T, line string) {
	t.Helper()
	must.Get(fmt.Fprintln(c.in, line))(t)
}

// kill ends the child at once and returns what it had still printed.
func (c *child) kill(t *testing.T) (lines []string) {
	t.Helper()
	must.Do(t, c.cmd.Process.Kill())
	rest := must.Get(io.ReadAll(c.out))(t)
	_ = c.cmd.Wait() // says that it was killed
	all := strings.Split(string(rest), "\n")
	return all[:len(all)-1] // the last line may be cut
}

func sum(b []byte) [32]byte { return sha256.Sum256(b) }

// descriptors is how many files this process has open.
func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the system does not say which files are open")
	}
	return len(list)
}

// readForEver reads one value, and keeps the bytes as they are mapped.
func readForEver(args []string) error {
	c, err := Dial(bg, args[0], nil)
	if err != nil {
		return err
	}
	p, err := c.Peer(nil)
	if err != nil {
		return err
	}
	v, err := p.At(bg, args[1])
	if err != nil {
		return err
	}
	value, err := v.Locate(bg, args[2])
	if err != nil {
		return err
	}
	return value.View(bg, kv.All(), func(b []byte) error {
		fmt.Println("reading")
		for {
			switch line := lineOf(os.Stdin); line {
			case "close":
				if err := v.Close(); err != nil {
					return err
				}
				next, err := p.At(bg, "") // in place of the version that was closed last
				if err != nil {
					return err
				}
				if err := next.Close(); err != nil {
					return err
				}
				fmt.Println("closed")
			case "sum":
				fmt.Printf("%x\n", sum(b))
			default:
				return io.EOF
			}
		}
	})
}

// keepVersion opens a version, and reads the version only when the test asks for it.
func keepVersion(args []string) error {
	c, err := DialDir(bg, args[0], nil)
	if err != nil {
		return err
	}
	p, err := c.Peer(nil)
	if err != nil {
		return err
	}
	v, err := p.At(bg, "")
	if err != nil {
		return err
	}
	fmt.Println("open")
	for lineOf(os.Stdin) != "" {
		h := sha256.New()
		for key, err := range v.List(bg, kv.ListOptions{}) {
			var b []byte
			if err == nil {
				b, err = v.Get(bg, key, kv.All())
			}
			if err != nil {
				return err
			}
			h.Write(b)
		}
		fmt.Printf("%x\n", h.Sum(nil))
	}
	return nil
}

// serveForEver holds the database in a directory until standard input ends.
func serveForEver(args []string) error {
	db, err := engine.Open(bg, args[0], &engine.Options{Author: "tester", CacheBytes: 4 << 20, PageCacheBytes: 4 << 20})
	if err != nil {
		return err
	}
	l, err := Listen(args[0])
	if err != nil {
		return err
	}
	table := serve.New(serve.Options{})
	if err := table.AddDatabase("t", db); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println("serving")
	return errors.Join(Serve(ctx, l, table, nil), table.Close(bg), db.Close())
}
