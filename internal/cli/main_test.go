package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/arrowfile"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/local"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"zarrdb": func() { Main(arrowfile.Formats()) }, "older": holdAsOlder, "deaf": deaf, "computing": computing, "alone": holdAlone})
}

// computing is a command that does not look at its context, and has nothing to save.
func computing() {
	interruptible()
	fmt.Println("ready")
	select {}
}

// deaf is a command that should end by itself when it is interrupted, and does not.
func deaf() {
	endsItself.Store(true)
	ctx := interruptible()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("cancelled")
	select {}
}

// holdAlone has the database open that it is given until standard input ends, and serves
// it to nobody.
func holdAlone() {
	db, err := engine.Open(context.Background(), os.Args[1], nil)
	if err != nil {
		panic(err)
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := db.Close(); err != nil {
		panic(err)
	}
}

// holdAsOlder has the database open that it is given, as another version of the
// program, until it is interrupted.
func holdAsOlder() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	db, err := engine.Open(context.Background(), os.Args[1], &engine.Options{Serve: func(dir string) (*engine.Serving, error) {
		return local.Serving(dir, &local.Options{Version: "older"}, nil)
	}})
	if err != nil {
		panic(err)
	}
	<-ctx.Done()
	if err := db.Close(); err != nil {
		panic(err)
	}
}

// TestScripts runs what people type. Beside the usual commands of testscript:
//
//	exits CODE zarrdb ARGS…          runs the program, which must exit with CODE and,
//	                                 unless that is 0, print one line of error
//	npy FILE DESCR (SHAPE) VALUES…   writes a .npy file; DESCR f:<i4 is Fortran order
//	shownpy FILE                     prints what is in one
//	flip DIR TEXT                    changes the first byte of TEXT in the file that has it
//	save NAME                        keeps standard output in a variable
//	serve DIR NAME                   serves a directory, without listings, at the URL in $NAME
//	bucket NAME                      starts a server like S3 with an empty bucket, for s3: URLs; it logs to the file requests
//	stub DEST zip|mem                writes the small store of testdata/store.txtar
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	testscript.Run(t, testscript.Params{
		Files:              files,
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "UTC")
			e.Setenv("ESC", "\x1b")
			e.Setenv("NL", "\n")
			e.Setenv("RLO", "\u202e") // right-to-left override
			e.Setenv("TMPDIR", e.WorkDir)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".cache"))
			e.Setenv("STORES", mustAbs(t, "../../zarr/testdata/stores"))
			e.Setenv("REFS", mustAbs(t, "../../refs/testdata/fixtures"))
			e.Setenv("FORMATS", mustAbs(t, "../../formats"))
			e.Setenv("URLPIPE", mustAbs(t, "../../engine/testdata/urlpipe"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"npy":     makeNpy,
			"shownpy": showNpy,
			"flip":    flip,
			"save":    save,
			"serve":   serveFiles,
			"bucket":  bucket,
		},
	})
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs := must.Get(filepath.Abs(path))(t)
	return abs
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	stderr := ts.ReadFile("stderr")
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
	if code != 0 && (!strings.HasPrefix(stderr, "zarrdb: ") || strings.Count(stderr, "\n") != 1) {
		ts.Fatalf("the error is not one line: %q", stderr)
	}
	if code == 0 && stderr != "" {
		ts.Fatalf("on standard error: %q", stderr)
	}
}

// numbers encodes and decodes elements by the numpy type.
var numbers = map[string]struct {
	size   int
	order  binary.ByteOrder
	encode func(b []byte, o binary.ByteOrder, text string)
	decode func(b []byte, o binary.ByteOrder) string
}{
	"<i4": {4, binary.LittleEndian, putInt32, int32Text},
	">i4": {4, binary.BigEndian, putInt32, int32Text},
	"<f8": {8, binary.LittleEndian, func(b []byte, o binary.ByteOrder, s string) {
		f, _ := strconv.ParseFloat(s, 64)
		o.PutUint64(b, math.Float64bits(f))
	}, func(b []byte, o binary.ByteOrder) string { return fmt.Sprint(math.Float64frombits(o.Uint64(b))) }},
	"|u1": {1, nil, func(b []byte, _ binary.ByteOrder, s string) { n, _ := strconv.Atoi(s); b[0] = byte(n) },
		func(b []byte, _ binary.ByteOrder) string { return strconv.Itoa(int(b[0])) }},
}

func putInt32(b []byte, o binary.ByteOrder, s string) {
	n, _ := strconv.Atoi(s)
	o.PutUint32(b, uint32(int32(n)))
}

func int32Text(b []byte, o binary.ByteOrder) string { return strconv.Itoa(int(int32(o.Uint32(b)))) }

func makeNpy(ts *testscript.TestScript, _ bool, args []string) {
	descr, fortran := strings.CutPrefix(args[1], "f:")
	num := numbers[descr]
	order := map[bool]string{true: "True", false: "False"}[fortran]
	h := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, order, args[2])
	h += strings.Repeat(" ", 128-10-len(h)-1) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(h)), 0)
	b = append(b, h...)
	for _, v := range args[3:] {
		elem := make([]byte, num.size)
		num.encode(elem, num.order, v)
		b = append(b, elem...)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o666))
}

var npyHead = regexp.MustCompile(`^\{'descr': '(.*)', 'fortran_order': False, 'shape': (\(.*\)), \} *\n$`)

func showNpy(ts *testscript.TestScript, _ bool, args []string) {
	b := []byte(ts.ReadFile(args[0]))
	if !bytes.HasPrefix(b, []byte("\x93NUMPY\x01\x00")) {
		ts.Fatalf("not a .npy file: %.20q", b)
	}
	end := 10 + int(binary.LittleEndian.Uint16(b[8:]))
	m := npyHead.FindStringSubmatch(string(b[10:end]))
	if m == nil || end%64 != 0 {
		ts.Fatalf("header %q", b[10:end])
	}
	num, ok := numbers[m[1]]
	if !ok {
		ts.Fatalf("type %s", m[1])
	}
	fmt.Fprint(ts.Stdout(), m[1], " ", m[2])
	for b = b[end:]; len(b) > 0; b = b[num.size:] {
		fmt.Fprint(ts.Stdout(), " ", num.decode(b, num.order))
	}
	fmt.Fprintln(ts.Stdout())
}

func flip(ts *testscript.TestScript, _ bool, args []string) {
	err := filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if i := bytes.Index(b, []byte(args[1])); i >= 0 {
			b[i] ^= 1
			if err := os.WriteFile(path, b, 0o666); err != nil {
				return err
			}
			return filepath.SkipAll
		}
		return nil
	})
	ts.Check(err)
}

func save(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// Every command teaches: what it is for, and an example that begins like it.
func TestHelpTeaches(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Name() == "help" || sub.Name() == "completion" {
				continue
			}
			if sub.Short == "" || sub.Example == "" {
				t.Errorf("%s: no description or no example", sub.CommandPath())
			}
			if !strings.Contains(sub.Example, sub.CommandPath()+" ") && !strings.HasSuffix(sub.Example, sub.CommandPath()) && !sub.HasSubCommands() {
				t.Errorf("%s: the example does not show it: %s", sub.CommandPath(), sub.Example)
			}
			if sub.Args == nil {
				t.Errorf("%s: arguments are not counted", sub.CommandPath())
			}
			if sub.Flags().Lookup("message") != nil && sub.Flags().Lookup("json") == nil {
				t.Errorf("%s commits, and has no --json", sub.CommandPath())
			}
			visit(sub)
		}
	}
	visit(newRoot())
}
