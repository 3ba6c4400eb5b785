package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/leaktest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("ZARRDB_INDEX_HOLD"); dir != "" {
		holdForParent(dir)
		return
	}
	if dir := os.Getenv("ZARRDB_INDEX_READ"); dir != "" {
		readForParent(dir)
		return
	}
	leaktest.Main(m)
}

// small makes flushes and compactions happen in a test.
func small(fs vfs.FS) *Options {
	return &Options{FS: fs, Create: true, MemTableBytes: 256 << 10, MinFreeBytes: 1, tablePause: 1}
}

func mustOpen(t testing.TB, dir string, o *Options) *Index {
	t.Helper()
	x := must.Get(Open(dir, o))(t)
	return x
}

func mustClose(t testing.TB, x *Index) {
	t.Helper()
	must.Do(t, x.Close())
}

func put(x *Index, s Space, key, value string, sync bool) error {
	b := x.NewBatch()
	defer b.Close()
	b.Set(s, []byte(key), []byte(value))
	return b.Commit(sync)
}

func collect(seq iter.Seq2[Record, error]) (keys, values []string, err error) {
	for r, err := range seq {
		if err != nil {
			return keys, values, err
		}
		keys = append(keys, string(r.Key))
		values = append(values, string(r.Value))
	}
	return keys, values, nil
}

func TestGetScanSnapshot(t *testing.T) {
	x := mustOpen(t, "d", small(vfs.NewMem()))
	for i, k := range []string{"", "a", "a\x00", "b", "\xff\xff"} {
		must.Do(t, put(x, SpaceMeta, k, fmt.Sprint(i), i%2 == 0))
		must.Do(t, put(x, SpaceMeta+1, k, "other", false))
	}
	must.Do(t, put(x, SpaceMeta, "empty", "", false))
	if v, err := x.Get(SpaceMeta, []byte("empty")); err != nil || v == nil || len(v) != 0 {
		t.Fatalf("empty value: %v %v", v, err)
	}
	if _, err := x.Get(SpaceMeta, []byte("c")); err != ErrNotFound {
		t.Fatalf("missing key: %v", err)
	}
	snap := x.Snapshot()
	b := x.NewBatch()
	b.Delete(SpaceMeta, []byte("a"))
	b.Delete(SpaceMeta, []byte("b"))
	must.Do(t, b.Commit(true))
	if err := b.Commit(true); !errors.Is(err, kv.ErrClosed) {
		t.Fatalf("second commit: %v", err)
	}
	b.Close()

	for _, c := range []struct {
		name     string
		seq      iter.Seq2[Record, error]
		want     []string
		wantVals []string
	}{
		{"all", x.Scan(SpaceMeta, nil, nil, false), []string{"", "a\x00", "empty", "\xff\xff"}, []string{"0", "2", "", "4"}},
		{"reverse", x.Scan(SpaceMeta, nil, nil, true), []string{"\xff\xff", "empty", "a\x00", ""}, []string{"4", "", "2", "0"}},
		{"range", x.Scan(SpaceMeta, []byte("a"), []byte("empty"), false), []string{"a\x00"}, []string{"2"}},
		{"turned", x.Scan(SpaceMeta, []byte("b"), []byte("a"), false), nil, nil},
		{"nothing", x.Scan(SpaceMeta, []byte("b"), []byte{}, false), nil, nil},
		{"snapshot", snap.Scan(SpaceMeta, []byte("a"), []byte("c"), true), []string{"b", "a\x00", "a"}, []string{"3", "2", "1"}},
	} {
		keys, vals, err := collect(c.seq)
		if err != nil || !slices.Equal(keys, c.want) || !slices.Equal(vals, c.wantVals) {
			t.Errorf("%s: %q %q %v", c.name, keys, vals, err)
		}
	}
	// Deletes in one space leave the next one alone.
	b = x.NewBatch()
	for r, err := range x.Scan(SpaceMeta, nil, nil, false) {
		must.Do(t, err)
		b.Delete(SpaceMeta, r.Key)
	}
	must.Do(t, b.Commit(false))
	b.Close()
	if keys, _, _ := collect(x.Scan(SpaceMeta, nil, nil, false)); len(keys) != 0 {
		t.Fatalf("left: %q", keys)
	}
	if keys, _, _ := collect(x.Scan(SpaceMeta+1, nil, nil, false)); len(keys) != 5 {
		t.Fatalf("other space: %q", keys)
	}
	if v, err := snap.Get(SpaceMeta, []byte("b")); err != nil || string(v) != "3" {
		t.Fatalf("snapshot: %q %v", v, err)
	}
	snap.Close()
	snap.Close()
	if _, err := snap.Get(SpaceMeta, nil); err != kv.ErrClosed {
		t.Fatalf("closed snapshot: %v", err)
	}
	mustClose(t, x)
}

func TestScanShowsOneState(t *testing.T) {
	x := mustOpen(t, "d", small(vfs.NewMem()))
	defer mustClose(t, x)
	for i := range 10 {
		must.Do(t, put(x, SpaceRef, fmt.Sprint(i), "v", false))
	}
	n := 0
	for r, err := range x.Scan(SpaceRef, nil, nil, false) {
		must.Do(t, err)
		n++
		b := x.NewBatch()
		b.Delete(SpaceRef, r.Key)
		b.Set(SpaceRef, append(bytes.Clone(r.Key), 'x'), nil)
		must.Do(t, b.Commit(false))
		b.Close()
	}
	if n != 10 {
		t.Fatalf("saw %d records", n)
	}
}

func TestClose(t *testing.T) {
	x := mustOpen(t, "d", small(vfs.NewMem()))
	for i := range 3 {
		must.Do(t, put(x, SpaceRef, fmt.Sprint(i), "v", false))
	}
	snap, batch := x.Snapshot(), x.NewBatch()
	done := make(chan error, 1)
	var got []error
	for _, err := range x.Scan(SpaceRef, nil, nil, false) {
		got = append(got, err)
		if len(got) == 1 {
			go func() { done <- x.Close() }()
			for !x.use.closed() {
				runtime.Gosched()
			}
			if _, err := x.Get(SpaceRef, []byte("0")); err != kv.ErrClosed {
				t.Errorf("get while closing: %v", err)
			}
		}
	}
	if len(got) != 2 || got[1] != kv.ErrClosed {
		t.Errorf("scan while closing: %v", got)
	}
	must.Do(t, <-done)
	for name, err := range map[string]error{
		"close":      x.Close(),
		"commit":     batch.Commit(true),
		"flush":      x.Flush(),
		"checkpoint": x.Checkpoint("c"),
		"ingest":     x.Ingest(nil),
		"new batch":  put(x, SpaceRef, "k", "v", true),
		"view":       x.View(SpaceRef, nil, nil),
	} {
		if !errors.Is(err, kv.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := snap.Get(SpaceRef, nil); err != kv.ErrClosed {
		t.Errorf("snapshot: %v", err)
	}
	if _, err := x.Snapshot().Get(SpaceRef, nil); err != kv.ErrClosed {
		t.Errorf("new snapshot: %v", err)
	}
	snap.Close()
	batch.Close()
}

func TestOpenErrors(t *testing.T) {
	fs := vfs.NewMem()
	if _, err := Open("none", &Options{FS: fs}); !errors.Is(err, ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
	must.Do(t, fs.MkdirAll("empty", 0o777))
	if _, err := Open("empty", &Options{FS: fs}); !errors.Is(err, ErrNotExist) {
		t.Errorf("empty directory: %v", err)
	}
	if ls, _ := fs.List("empty"); len(ls) != 0 {
		t.Errorf("a failed open left %q", ls)
	}
	x := mustOpen(t, "d", small(fs))
	must.Do(t, put(x, SpaceMeta, "k", "v", true))
	mustClose(t, x)
	x = mustOpen(t, "d", &Options{FS: fs, ReadOnly: true})
	if v, err := x.Get(SpaceMeta, []byte("k")); err != nil || string(v) != "v" {
		t.Errorf("read-only: %q %v", v, err)
	}
	if err := put(x, SpaceMeta, "k", "w", true); err != kv.ErrReadOnly {
		t.Errorf("write to read-only: %v", err)
	}
	mustClose(t, x)

	for _, c := range []struct {
		content string
		target  error
	}{
		{"zarrdb index 2\n", ErrFormat},
		{"zarrdb index 18446744073709551615\n", ErrFormat},
		{"zarrdb index 0\n", kv.ErrCorrupt},
		{"zarrdb index x\n", kv.ErrCorrupt},
		{"", kv.ErrCorrupt},
	} {
		must.Do(t, writeSmall(fs, "d/FORMAT", []byte(c.content)))
		for _, create := range []bool{false, true} {
			if _, err := Open("d", &Options{FS: fs, Create: create}); !errors.Is(err, c.target) {
				t.Errorf("format %q: %v", c.content, err)
			}
		}
	}
	var fe *FormatError
	must.Do(t, writeSmall(fs, "d/FORMAT", []byte("zarrdb index 7\n")))
	if _, err := Open("d", &Options{FS: fs}); !errors.As(err, &fe) || fe.Have != 7 || fe.Known != formatNumber {
		t.Errorf("format error: %v", err)
	}
	must.Do(t, fs.Remove("d/FORMAT"))
	if _, err := Open("d", &Options{FS: fs, Create: true}); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("tables without format: %v", err)
	}
}

func TestLimits(t *testing.T) {
	x := mustOpen(t, "d", small(vfs.NewMem()))
	defer mustClose(t, x)
	b := x.NewBatch()
	b.Set(SpaceMeta, make([]byte, maxKeyBytes+1), nil)
	b.Set(SpaceMeta, []byte("k"), []byte("v"))
	if err := b.Commit(true); !errors.Is(err, errTooLarge) {
		t.Errorf("long key: %v", err)
	}
	b.Close()
	if _, err := x.Get(SpaceMeta, []byte("k")); err != ErrNotFound {
		t.Errorf("half a batch: %v", err)
	}
	b = x.NewBatch()
	b.Set(SpaceMeta, make([]byte, maxKeyBytes), nil)
	if err := b.Commit(true); err != nil {
		t.Errorf("longest key: %v", err)
	}
	b.Close()
	if os.Getenv("ZARRDB_LONG") == "" {
		return // a GiB of memory
	}
	b = x.NewBatch()
	big := make([]byte, 1<<29)
	b.Set(SpaceMeta, []byte("a"), big)
	b.Set(SpaceMeta, []byte("b"), big)
	if err := b.Commit(true); !errors.Is(err, errTooLarge) {
		t.Errorf("large batch: %v", err)
	}
	b.Close()
}

// TestInterruptedCreation leaves what a crash while an index is made can
// leave: Pebble's marker of a manifest that does not exist.
func TestInterruptedCreation(t *testing.T) {
	fs := vfs.NewMem()
	mustClose(t, mustOpen(t, "d", small(fs)))
	names := must.Get(fs.List("d"))(t)
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST") || name == formatFile {
			must.Do(t, fs.Remove("d/"+name))
		}
	}
	if _, err := Open("d", small(fs)); err == nil {
		t.Fatal("opened without a manifest")
	}
	must.Do(t, writeSmall(fs, "d/"+creatingFile, nil))
	if _, err := Open("d", &Options{FS: fs}); !errors.Is(err, ErrNotExist) {
		t.Fatalf("half an index: %v", err)
	}
	x := mustOpen(t, "d", small(fs))
	must.Do(t, put(x, SpaceMeta, "k", "v", true))
	mustClose(t, x)
	// The mark alone harms nothing once the index exists.
	must.Do(t, writeSmall(fs, "d/"+creatingFile, nil))
	x = mustOpen(t, "d", &Options{FS: fs})
	if v, err := x.Get(SpaceMeta, []byte("k")); err != nil || string(v) != "v" {
		t.Fatalf("%q %v", v, err)
	}
	mustClose(t, x)
	if _, err := fs.Stat("d/" + creatingFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mark is left: %v", err)
	}
}

func TestMetricsAndViews(t *testing.T) {
	x := mustOpen(t, "d", small(vfs.NewMem()))
	ctx := context.Background()
	list := pages(0, 200)
	b := x.NewBatch()
	for _, p := range list {
		b.PutPage(p.Name, p.Bytes)
	}
	if n := b.Len(); n < 400_000 || n > 420_000 {
		t.Errorf("batch of %d bytes", n)
	}
	must.Do(t, b.Commit(true))
	b.Close()
	must.Do(t, x.Flush())
	must.Get(x.GetPage(ctx, list[0].Name))(t)
	m := x.Metrics()
	if m.DiskBytes < 400_000 || m.LogBytes < 400_000 {
		t.Errorf("%+v", m)
	}
	snap := x.Snapshot()
	stop := errors.New("stop")
	p := list[1]
	err := x.View(SpacePage, p.Name[:], func(v []byte) error {
		if !bytes.Equal(v, p.Bytes) {
			t.Error("wrong bytes")
		}
		return stop
	})
	if err != stop {
		t.Error(err)
	}
	if err := x.View(SpacePage, []byte("none"), nil); err != ErrNotFound {
		t.Error(err)
	}
	if v, err := snap.GetPage(ctx, list[2].Name); err != nil || !bytes.Equal(v, list[2].Bytes) {
		t.Errorf("page: %v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := snap.GetPage(ctx, list[2].Name); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := x.GetPage(ctx, list[2].Name); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	mustClose(t, x)
	if m := x.Metrics(); m != (Metrics{}) {
		t.Errorf("after close: %+v", m)
	}
}

// TestModel runs random operations against a map, with flushes, compactions,
// checkpoints and reopening in between.
func TestModel(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for _, disk := range []bool{false, true} {
		seeds := uint64(4)
		if disk {
			seeds = 1 // thousands of syncs
		} else if race.Enabled {
			seeds = 2
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("disk=%v/seed=%d", disk, seed), func(t *testing.T) {
				fs, dir := vfs.FS(vfs.NewMem()), "d"
				if disk {
					fs, dir = osfs.FS, filepath.Join(t.TempDir(), "d")
				}
				runModel(t, fs, dir, rand.New(rand.NewPCG(seed, 1)))
			})
		}
	}
}

func runModel(t *testing.T, fs vfs.FS, dir string, rng *rand.Rand) {
	o := small(fs)
	x := mustOpen(t, dir, o)
	model := map[string]string{}
	key := func() string {
		return string([]byte{byte(SpaceRef) + byte(rng.IntN(3)), 'a' + byte(rng.IntN(26)), 'a' + byte(rng.IntN(26))})
	}
	for step := range 600 {
		switch op := rng.IntN(100); {
		case op < 60:
			b, next := x.NewBatch(), maps.Clone(model)
			for range rng.IntN(8) {
				k := key()
				switch rng.IntN(6) {
				case 0:
					b.Delete(Space(k[0]), []byte(k[1:]))
					delete(next, k)
				default:
					v := fmt.Sprint(step, string(make([]byte, rng.IntN(8000))))
					b.Set(Space(k[0]), []byte(k[1:]), []byte(v))
					next[k] = v
				}
			}
			if rng.IntN(10) > 0 {
				must.Do(t, b.Commit(rng.IntN(2) == 0))
				model = next
			}
			b.Close()
		case op < 80:
			k := key()
			v, err := x.Get(Space(k[0]), []byte(k[1:]))
			if want, ok := model[k]; ok != (err == nil) || string(v) != want || !ok && err != ErrNotFound {
				t.Fatalf("step %d: get %q: %.20q %v, want %.20q", step, k, v, err, want)
			}
		case op < 90:
			checkScan(t, x, model, rng)
		case op < 95:
			must.Do(t, x.Flush())
		case op < 97:
			copyDir := fmt.Sprintf("%s-copy%d", dir, step)
			must.Do(t, x.Checkpoint(copyDir))
			y := mustOpen(t, copyDir, &Options{FS: fs})
			checkScan(t, y, model, rng)
			mustClose(t, y)
			must.Do(t, fs.RemoveAll(copyDir))
		default:
			mustClose(t, x)
			x = mustOpen(t, dir, o)
		}
	}
	checkScan(t, x, model, rng)
	mustClose(t, x)
}

func checkScan(t *testing.T, x *Index, model map[string]string, rng *rand.Rand) {
	t.Helper()
	for s := SpaceRef; s < SpaceRef+3; s++ {
		var want []string
		for k := range model {
			if Space(k[0]) == s {
				want = append(want, k[1:])
			}
		}
		slices.Sort(want)
		reverse := rng.IntN(2) == 0
		if reverse {
			slices.Reverse(want)
		}
		keys, values, err := collect(x.Scan(s, nil, nil, reverse))
		if err != nil || !slices.Equal(keys, want) {
			t.Fatalf("scan %c: %q %v, want %q", s, keys, err, want)
		}
		for i, k := range keys {
			if values[i] != model[string(s)+k] {
				t.Fatalf("scan %c: value of %q", s, k)
			}
		}
	}
}

func pages(from, to int) (list []Page) {
	for i := from; i < to; i++ {
		p := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 1000)
		list = append(list, Page{digest.Of(p), p})
	}
	slices.SortFunc(list, func(a, b Page) int { return bytes.Compare(a.Name[:], b.Name[:]) })
	return list
}

func seqOf(list []Page, err error) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for _, p := range list {
			if !yield(p, nil) {
				return
			}
		}
		if err != nil {
			yield(Page{}, err)
		}
	}
}

func TestIngest(t *testing.T) {
	for _, disk := range []bool{false, true} {
		fs, dir := vfs.FS(vfs.NewCrashableMem()), "d"
		if disk {
			fs, dir = osfs.FS, filepath.Join(t.TempDir(), "d")
		}
		x := mustOpen(t, dir, small(fs))
		ctx := context.Background()
		// Pages in the memtable, in tables, and ingested before overlap all
		// by their names.
		b := x.NewBatch()
		for _, p := range pages(0, 50) {
			b.PutPage(p.Name, p.Bytes)
		}
		must.Do(t, b.Commit(true))
		b.Close()
		must.Do(t, x.Ingest(seqOf(pages(40, 300), nil)))
		must.Do(t, x.Ingest(seqOf(nil, nil)))
		bad := errors.New("bad source")
		if err := x.Ingest(seqOf(pages(300, 400), bad)); !errors.Is(err, bad) {
			t.Fatalf("failing source: %v", err)
		}
		turned := pages(300, 400)
		slices.Reverse(turned)
		if err := x.Ingest(seqOf(turned, nil)); err == nil {
			t.Fatal("descending pages were taken")
		}
		must.Do(t, x.Ingest(seqOf(pages(250, 299), nil)))
		check := func(x *Index) {
			t.Helper()
			for _, p := range pages(0, 300) {
				if got, err := x.GetPage(ctx, p.Name); err != nil || !bytes.Equal(got, p.Bytes) {
					t.Fatalf("page %v: %v", p.Name, err)
				}
			}
			for _, p := range pages(300, 400) {
				if _, err := x.GetPage(ctx, p.Name); err != ErrNotFound {
					t.Fatalf("page of a failed ingest: %v", err)
				}
			}
		}
		check(x)
		if mem, ok := fs.(*vfs.MemFS); ok {
			// Durable when it returns.
			y := mustOpen(t, dir, &Options{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
			check(y)
			mustClose(t, y)
		}
		mustClose(t, x)
		x = mustOpen(t, dir, &Options{FS: fs})
		check(x)
		mustClose(t, x)
		if _, err := fs.Stat(fs.PathJoin(dir, ingestDir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("ingest directory is left: %v", err)
		}
	}
}

// An index that had no log when it was opened can be copied at once.
func TestCheckpointWithoutLogs(t *testing.T) {
	mem := vfs.NewMem()
	x := mustOpen(t, "d", small(mem))
	must.Do(t, errors.Join(put(x, SpaceMeta, "k", "v", true), x.Flush(), x.Checkpoint("e")))
	mustClose(t, x)
	x = mustOpen(t, "e", small(mem))
	must.Do(t, x.Flush())
	mustClose(t, x)
	x = mustOpen(t, "e", small(mem))
	must.Do(t, x.Checkpoint("copy"))
	mustClose(t, x)
	x = mustOpen(t, "copy", &Options{FS: mem, ReadOnly: true})
	defer mustClose(t, x)
	if v, err := x.Get(SpaceMeta, []byte("k")); err != nil || string(v) != "v" {
		t.Errorf("%q, %v", v, err)
	}
}

// A log that is removed while a checkpoint is made is not needed.
func TestCheckpointWhileALogGoes(t *testing.T) {
	var left atomic.Int64
	mem := vfs.NewMem()
	x := mustOpen(t, "d", small(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, ".log") && left.Add(-1) >= 0 {
			return &os.PathError{Op: "open", Path: op.Path, Err: os.ErrNotExist}
		}
		return nil
	}))))
	must.Do(t, put(x, SpaceMeta, "k", "v", true))
	left.Store(1)
	if err := x.Checkpoint("copy"); err != nil || left.Load() >= 0 {
		t.Fatalf("%v, %d logs are left to go", err, left.Load())
	}
	left.Store(100)
	if err := x.Checkpoint("other"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a log that is missing: %v", err)
	}
	left.Store(0)
	mustClose(t, x)
	x = mustOpen(t, "copy", &Options{FS: mem, ReadOnly: true})
	defer mustClose(t, x)
	if v, err := x.Get(SpaceMeta, []byte("k")); err != nil || string(v) != "v" {
		t.Errorf("%q, %v", v, err)
	}
}

func TestCheckpointErrors(t *testing.T) {
	dir := t.TempDir()
	x := mustOpen(t, filepath.Join(dir, "d"), small(osfs.FS))
	defer mustClose(t, x)
	for _, to := range []string{"d", "."} {
		if err := x.Checkpoint(filepath.Join(dir, to)); err == nil {
			t.Errorf("checkpoint into %s", to)
		}
	}
	must.Do(t, put(x, SpaceRef, "k", "v", true))
}

// What is left in the log is read again by the next Open, so Close leaves
// little.
func TestCloseLeavesALittleLog(t *testing.T) {
	var reads atomic.Int64
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileRead && strings.HasSuffix(op.Path, ".log") {
			reads.Add(1)
		}
		return nil
	}))
	x, err := Open("db", &Options{FS: fs, Create: true})
	must.Do(t, err)
	value := bytes.Repeat([]byte("x"), 1<<20)
	for i := range 8 {
		b := x.NewBatch()
		b.Set(SpaceMeta, []byte{byte(i)}, value)
		must.Do(t, b.Commit(true))
		b.Close()
	}
	if n := x.Metrics().LogLiveBytes; n < 8<<20 {
		t.Fatalf("the log holds %d bytes before Close", n)
	}
	must.Do(t, x.Close())
	x = must.Get(Open("db", &Options{FS: fs}))(t)
	defer x.Close()
	if n := reads.Load(); n > 16 {
		t.Errorf("Open read the log %d times", n)
	}
	for i := range 8 {
		if got, err := x.Get(SpaceMeta, []byte{byte(i)}); err != nil || !bytes.Equal(got, value) {
			t.Errorf("value %d: %d bytes, %v", i, len(got), err)
		}
	}
}

// A log that was written over a large one is not left to the next Open, which
// would read the whole file.
func TestCloseLeavesASmallFile(t *testing.T) {
	mem := vfs.NewMem()
	x, err := Open("db", &Options{FS: mem, Create: true, ReserveBytes: -1})
	must.Do(t, err)
	set := func(i byte, n int) {
		t.Helper()
		b := x.NewBatch()
		defer b.Close()
		b.Set(SpaceMeta, []byte{i}, bytes.Repeat([]byte{i}, n))
		must.Do(t, b.Commit(true))
	}
	sizes := func() (largest int64) {
		for _, name := range logsOf(t, mem, "db") {
			fi := must.Get(mem.Stat(mem.PathJoin("db", name)))(t)
			largest = max(largest, fi.Size())
		}
		return largest
	}
	for i := byte(0); !x.guard.overOld.Load(); i++ {
		if i == 100 {
			t.Fatal("logs are not used again")
		}
		set(i, flushAtClose+1)
		must.Do(t, x.Flush())
	}
	set(200, 1)
	if n := sizes(); n < flushAtClose {
		t.Fatalf("the largest log has %d bytes", n)
	}
	must.Do(t, x.Close())
	x = must.Get(Open("db", &Options{FS: mem, ReserveBytes: -1}))(t)
	if v, err := x.Get(SpaceMeta, []byte{200}); err != nil || len(v) != 1 {
		t.Errorf("%v, %v", v, err)
	}
	must.Do(t, x.Close())
	if n := sizes(); n > 1<<20 {
		t.Errorf("a log of %d bytes is left", n)
	}
}

// FlushSoon leaves the log to be cut short.
func TestFlushSoon(t *testing.T) {
	x := must.Get(Open("db", &Options{FS: vfs.NewMem(), Create: true, ReserveBytes: -1}))(t)
	b := x.NewBatch()
	b.Set(SpaceMeta, []byte("k"), []byte("v"))
	must.Do(t, b.Commit(false))
	b.Close()
	before := x.db.Metrics().Flush.Count
	x.FlushSoon()
	for x.db.Metrics().Flush.Count == before { // it ends by itself
		runtime.Gosched()
	}
	if v, err := x.Get(SpaceMeta, []byte("k")); err != nil || string(v) != "v" {
		t.Errorf("%q, %v", v, err)
	}
	must.Do(t, x.Close())
	x.FlushSoon() // does nothing
}
