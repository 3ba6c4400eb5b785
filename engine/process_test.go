package engine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/internal/leaktest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/soaktest"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/zarr"
)

// Some tests need a second process: this one, run again with a role.
const roleVariable = "ZARRDB_TEST_ROLE"

var roles = map[string]func(args []string) error{
	"hold":   holdDatabase,
	"commit": commitForEver,
	"import": importForEver,
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		leaktest.Main(m)
		return
	}
	if err := roles[role](os.Args[1:]); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
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
	return &child{cmd, in, bufio.NewReader(out)}
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

// kill ends the child at once and returns what it had still printed.
func (c *child) kill(t *testing.T) (lines []string) {
	t.Helper()
	must.Do(t, c.cmd.Process.Kill())
	rest := must.Get(io.ReadAll(c.out))(t)
	_ = c.cmd.Wait() // the error is the kill
	all := strings.Split(string(rest), "\n")
	return all[:len(all)-1] // the last line may be cut
}

func holdDatabase(args []string) error {
	db, err := Open(bg, args[0], nil)
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, db.Close())
}

// The error of a second process names the one that has the database open.
func TestLockedByAnotherProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t.zdb")
	openAt(t, dir, &Options{Create: true}).Close()
	c := start(t, "hold", dir)
	if got := c.line(t); got != "open" {
		t.Fatal(got)
	}
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		_, err := Open(bg, dir, o)
		var locked *index.LockedError
		if !errors.As(err, &locked) || !errors.Is(err, index.ErrLocked) {
			t.Fatalf("error %v", err)
		}
		if locked.Holder.PID != c.cmd.Process.Pid || !strings.Contains(err.Error(), strconv.Itoa(locked.Holder.PID)) {
			t.Errorf("holder %+v, want process %d: %v", locked.Holder, c.cmd.Process.Pid, err)
		}
	}
	if _, err := OpenSource(bg, dir+"|zarrdb:", nil); !errors.Is(err, index.ErrLocked) {
		t.Errorf("as a source: %v", err)
	}
	c.in.Close()
	must.Do(t, c.cmd.Wait())
	openAt(t, dir, nil)

	// A holder that was killed holds nothing.
	dir = filepath.Join(t.TempDir(), "t.zdb")
	openAt(t, dir, &Options{Create: true}).Close()
	c = start(t, "hold", dir)
	c.line(t)
	c.kill(t)
	openAt(t, dir, nil)
}

func TestKilledCommits(t *testing.T) { killCommits(t, someKills) }
func TestKilledImports(t *testing.T) { killImports(t, someKills) }

// someKills reports whether there is another round after n.
func someKills(n int) bool {
	if testing.Short() {
		return n < 4
	}
	return n < 16
}

func TestSoakKilledCommits(t *testing.T) {
	end := time.Now().Add(soaktest.Time(t) / 2)
	killCommits(t, func(int) bool { return time.Now().Before(end) })
}

func TestSoakKilledImports(t *testing.T) {
	end := time.Now().Add(soaktest.Time(t) / 2)
	killImports(t, func(int) bool { return time.Now().Before(end) })
}

// commitForEver gives two arrays the same new value in one commit after the
// other, and says when each is acknowledged.
func commitForEver(args []string) error {
	db, err := Open(bg, args[0], nil)
	if err != nil {
		return err
	}
	defer db.Close()
	k, err := valueOf(db)
	if err != nil {
		return err
	}
	for {
		k++
		_, err := db.Update(bg, "", fmt.Sprint(k), func(s *Session) error {
			for _, path := range []string{"x", "g/y"} {
				a, err := s.Array(bg, path)
				if err != nil {
					return err
				}
				if err := zarr.Fill(bg, a, zarr.Sel(), k); err != nil {
					return err
				}
			}
			return setAttr(s, "g", "k", k)
		})
		if err != nil {
			return err
		}
		fmt.Println(k)
	}
}

// valueOf returns the one value that everything holds at the head.
func valueOf(db *DB) (int32, error) {
	s, err := db.At(bg, "")
	if err != nil {
		return 0, err
	}
	defer s.Close()
	seen := map[string]bool{}
	for _, path := range []string{"x", "g/y"} {
		a, err := s.Array(bg, path)
		if err != nil {
			return 0, err
		}
		v, _, err := zarr.Read[int32](bg, a, zarr.Sel())
		if err != nil {
			return 0, err
		}
		for _, n := range v {
			seen[fmt.Sprint(n)] = true
		}
	}
	g, err := s.Group(bg, "g")
	if err != nil {
		return 0, err
	}
	attr, _ := g.Attributes().Get("k")
	seen[string(attr)] = true
	seen[s.Commit().Message] = true
	if len(seen) != 1 {
		return 0, fmt.Errorf("a mixture of commits: %v", seen)
	}
	k, err := strconv.ParseInt(s.Commit().Message, 10, 32)
	return int32(k), err
}

// killCommits kills a process that commits, at random moments. What
// it acknowledged is there, whole, and at most one commit more.
func killCommits(t *testing.T, more func(int) bool) {
	dir := filepath.Join(t.TempDir(), "t.zdb")
	db := openAt(t, dir, &Options{Create: true})
	commit(t, db, "", "0", func(s *Session) error {
		spec := zarr.Spec{Shape: []int64{4000}, Chunks: []int64{1000}, DataType: "int32", Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`)}
		if _, err := s.CreateArray(bg, "x", spec); err != nil {
			return err
		}
		if _, err := s.CreateArray(bg, "g/y", line(40, 10)); err != nil {
			return err
		}
		return setAttr(s, "g", "k", 0)
	})
	closeChecked(t, db)
	rounds, total := 0, 0
	for round := 0; more(round); round++ {
		rounds++
		c := start(t, "commit", dir)
		last := c.line(t)
		for range rand.IntN(30) {
			last = c.line(t)
		}
		if rest := c.kill(t); len(rest) > 0 {
			last = rest[len(rest)-1]
		}
		acknowledged := must.Get(strconv.Atoi(last))(t)
		db := openAt(t, dir, nil)
		k, err := valueOf(db)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if int(k) != acknowledged && int(k) != acknowledged+1 {
			t.Fatalf("round %d: the head is commit %d, %d was acknowledged", round, k, acknowledged)
		}
		total = int(k)
		closeChecked(t, db)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d rounds: %d commits", rounds, total)
}

// importForEver imports a directory to one place after the other. It prints a
// dot at every operation on the directory.
func importForEver(args []string) error {
	saveEvery, transfer.BatchKeys = 0, 16
	db, err := Open(bg, args[0], nil)
	if err != nil {
		return err
	}
	defer db.Close()
	for n := 0; ; n++ {
		src, err := OpenSource(bg, args[1], nil)
		if err != nil {
			return err
		}
		src.at.View = kvtest.Hook(src.at.View, func(op kvtest.Op, _ string) error {
			fmt.Println(".")
			return nil
		})
		_, err = db.Import(bg, src, ImportOptions{To: fmt.Sprintf("y%d", n), Resume: true})
		if err != nil && !errors.Is(err, zarr.ErrExists) {
			return err
		}
		if err := src.Close(); err != nil {
			return err
		}
	}
}

// killImports kills a process that imports. Every import at the head is whole;
// the one that was under way goes on where it was last saved.
func killImports(t *testing.T, more func(int) bool) {
	keys := smallStore(t)
	for i := range 100 {
		keys[fmt.Sprintf("g/b/c/%d", i)] = strings.Repeat(fmt.Sprint(i), 300)
	}
	source := filepath.Join(t.TempDir(), "s.zarr")
	must.Get(Export(bg, openURL(t, memoryURL(t, keys)), source, ExportOptions{}))(t)
	dir := filepath.Join(t.TempDir(), "t.zdb")
	openAt(t, dir, &Options{Create: true}).Close()
	rounds, resumed, done := 0, 0, 0
	for round := 0; more(round); round++ {
		rounds++
		c := start(t, "import", dir, source)
		for range 1 + rand.IntN(600) {
			c.line(t)
		}
		c.kill(t)
		db := openAt(t, dir, nil)
		s := at(t, db, "")
		n := 0
		for m, err := range s.Members(bg, "") {
			must.Do(t, err)
			sameContents(t, contents(t, kv.SubLister(s, m.Name)), keys)
			n++
		}
		list, err := db.Sessions(bg)
		if err != nil || len(list) > 1 {
			t.Fatalf("round %d: sessions %v, %v", round, list, err)
		}
		resumed += len(list)
		done = n
		closeChecked(t, db)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d rounds: %d imports, %d of them resumed", rounds, done, resumed)
}
