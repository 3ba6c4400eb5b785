package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/kv"
)

// deletions makes indexes in various ways and returns what is on disk then, with
// the number of the commits that were acknowledged.
func deletions(t *testing.T) map[string]func(t *testing.T) (*vfs.MemFS, int) {
	commit := func(t *testing.T, x *Index, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			b := x.NewBatch()
			for _, k := range []string{"a", "b"} {
				b.Set(SpaceRef, fmt.Append(nil, k, i), bytesOf(i))
			}
			if err := b.Commit(true); err != nil {
				t.Fatal(err)
			}
			b.Close()
		}
	}
	crash := func(mem *vfs.MemFS, percent int) *vfs.MemFS {
		return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(percent), 5))})
	}
	all := map[string]func(t *testing.T) (*vfs.MemFS, int){
		"closed": func(t *testing.T) (*vfs.MemFS, int) {
			mem := vfs.NewCrashableMem()
			x := mustOpen(t, "d", small(mem))
			commit(t, x, 0, 30)
			mustClose(t, x)
			return mem, 30
		},
		"closed without a flush": func(t *testing.T) (*vfs.MemFS, int) {
			mem := vfs.NewCrashableMem()
			x := mustOpen(t, "d", small(mem))
			commit(t, x, 0, 2)
			mustClose(t, x)
			return mem, 2
		},
		"closed twice": func(t *testing.T) (*vfs.MemFS, int) {
			mem := vfs.NewCrashableMem()
			for i := range 2 {
				x := mustOpen(t, "d", small(mem))
				commit(t, x, 10*i, 10*i+10)
				mustClose(t, x)
			}
			return mem, 20
		},
		"opened once more": func(t *testing.T) (*vfs.MemFS, int) {
			mem := vfs.NewCrashableMem()
			x := mustOpen(t, "d", small(mem))
			commit(t, x, 0, 5)
			mustClose(t, x)
			mustClose(t, mustOpen(t, "d", small(mem)))
			return mem, 5
		},
	}
	for _, percent := range []int{0, 50, 100} {
		all[fmt.Sprint("killed, ", percent, " %")] = func(t *testing.T) (*vfs.MemFS, int) {
			mem := vfs.NewCrashableMem()
			x := mustOpen(t, "d", small(mem))
			defer mustClose(t, x)
			commit(t, x, 0, 30)
			return crash(mem, percent), 30
		}
		all[fmt.Sprint("killed behind a flush, ", percent, " %")] = func(t *testing.T) (*vfs.MemFS, int) {
			mem := vfs.NewCrashableMem()
			x := mustOpen(t, "d", small(mem))
			defer mustClose(t, x)
			commit(t, x, 0, 3)
			if err := x.Flush(); err != nil {
				t.Fatal(err)
			}
			commit(t, x, 3, 6)
			return crash(mem, percent), 6
		}
		// Tables cannot be written for a while, and several logs are needed.
		all[fmt.Sprint("killed with logs, ", percent, " %")] = func(t *testing.T) (*vfs.MemFS, int) {
			mem := vfs.NewCrashableMem()
			mustClose(t, mustOpen(t, "d", small(mem)))
			f := &faults{err: errors.New("broken"), at: 0, match: func(op errorfs.Op) bool {
				return op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst")
			}}
			o := small(f.wrap(mem))
			o.tablePause = time.Hour
			x := mustOpen(t, "d", o)
			n := 0
			for logs := 0; logs < 3; n++ {
				commit(t, x, n, n+1)
				logs = 0
				for _, name := range logsOf(t, mem, "d") {
					if strings.HasSuffix(name, ".log") {
						logs++
					}
				}
			}
			commit(t, x, n, n+1)
			image := crash(mem, percent)
			x.guard.fail("test", "", f.err) // nothing waits for tables any more
			_ = x.Close()
			return image, n + 1
		}
	}
	return all
}

func bytesOf(i int) []byte { return fmt.Append(nil, i, strings.Repeat("x", 20<<10)) }

// Whichever file of an index is gone, opening says so, or nothing is lost.
func TestDeletedFiles(t *testing.T) {
	for how, make := range deletions(t) {
		t.Run(how, func(t *testing.T) {
			mem, n := make(t)
			names, err := mem.List("d")
			if err != nil {
				t.Fatal(err)
			}
			noticed := 0
			for _, name := range append(names, "") {
				fs := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
				if name != "" {
					if err := fs.RemoveAll("d/" + name); err != nil {
						t.Fatal(err)
					}
				}
				for _, o := range []*Options{{FS: fs, ReadOnly: true}, {FS: fs, Create: true, ReserveBytes: -1}, {FS: fs, ReserveBytes: -1}} {
					x, err := Open("d", o)
					if err != nil {
						// The marker of the list of tables has its name, and no other.
						kind, _, _ := strings.Cut(strings.TrimPrefix(name, "marker."), ".")
						if name == "" || !strings.Contains(err.Error(), kind) || !errors.Is(err, kv.ErrCorrupt) {
							t.Errorf("without %q: %v", name, err)
						}
						noticed++
						continue
					}
					for i := range n {
						for _, k := range []string{"a", "b"} {
							if v, err := x.Get(SpaceRef, fmt.Append(nil, k, i)); err != nil || string(v) != string(bytesOf(i)) {
								t.Fatalf("without %s commit %d of %d is gone: %v", name, i, n, err)
							}
						}
					}
					mustClose(t, x)
				}
			}
			if noticed == 0 {
				t.Errorf("nothing was noticed, of %q", names)
			}
		})
	}
}

// If all logs are gone and what names them too, opening says so.
func TestDeletedLogsAndMarks(t *testing.T) {
	for how, make := range deletions(t) {
		t.Run(how, func(t *testing.T) {
			fs, _ := make(t)
			for _, name := range mustList(t, fs, "d") {
				if strings.HasSuffix(name, ".log") || strings.HasPrefix(name, markPrefix) {
					if err := fs.Remove("d/" + name); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, o := range []*Options{{FS: fs, ReadOnly: true}, {FS: fs, Create: true, ReserveBytes: -1}} {
				x, err := Open("d", o)
				if !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), "marker.logs") {
					t.Fatalf("%v, %v", x, err)
				}
			}
		})
	}
}

// What names the logs reads back, and nothing else does.
func TestLogMark(t *testing.T) {
	many := make([]markedLog, maxMarked+3)
	for i := range many {
		many[i] = markedLog{number: uint64(1e15) + uint64(i)}
	}
	for _, c := range []struct {
		logs []markedLog
		want string
	}{
		{[]markedLog{{12, 0}}, "12"},
		{[]markedLog{{12, 0}, {15, 34512}}, "12-15+34512"},
		{many, strings.TrimSuffix(strings.Repeat("1000000000000000-", maxMarked), "-")},
	} {
		got := formatLogMark(c.logs)
		if len(got) != len(c.want) || len(c.logs) < maxMarked && got != c.want {
			t.Errorf("%v: %q, want %q", c.logs, got, c.want)
		}
		iter, logs, ok := parseLogMark(fmt.Sprintf("%s%06d.%s", markPrefix, 7, got))
		if !ok || iter != 7 || !slices.Equal(logs, c.logs[max(0, len(c.logs)-maxMarked):]) {
			t.Errorf("%q: %d, %v, %v", got, iter, logs, ok)
		}
	}
	for _, name := range []string{
		"", "marker.logs", "marker.logs.7", "marker.logs.7.", "marker.logs.x.12", "marker.logs.7.12-", "marker.logs.7.12+",
		"marker.logs.7.12+-15", "marker.logs.7.-12", "marker.logs.7.12.tmp", "marker.manifest.000001.MANIFEST-000001",
	} {
		if _, logs, ok := parseLogMark(name); ok {
			t.Errorf("%q: %v", name, logs)
		}
	}
	if n := logFileNumber("000012.log"); n != 12 {
		t.Error(n)
	}
	for _, name := range []string{"12.log", "000012.sst", "000012", "-00012.log", "000012-001.log", ".log", "000000.log"} {
		if n := logFileNumber(name); n != 0 {
			t.Errorf("%s: %d", name, n)
		}
	}
}

func FuzzLogMark(f *testing.F) {
	f.Add("marker.logs.000007.12-15+34512")
	f.Add("marker.logs.000001.1")
	f.Fuzz(func(t *testing.T, name string) {
		_, logs, ok := parseLogMark(name)
		if ok && len(logs) <= maxMarked {
			_, again, ok := parseLogMark(markPrefix + "1." + formatLogMark(logs))
			// A size of zero is not written.
			if !ok || !slices.Equal(again, logs) {
				t.Errorf("%q: %v, then %v", name, logs, again)
			}
		}
	})
}

// Of several marks the newest counts, and the others go.
func TestOlderMarks(t *testing.T) {
	var m logMarks
	older := m.find([]string{"marker.logs.000002.8", "marker.logs.000010.12-15+99", "000015.log", "marker.logs.000009.8-12", "notes"})
	slices.Sort(older)
	if !slices.Equal(older, []string{"marker.logs.000002.8", "marker.logs.000009.8-12"}) {
		t.Errorf("older: %q", older)
	}
	if m.iter != 10 || m.path != "marker.logs.000010.12-15+99" || m.closed["000015.log"] != 99 {
		t.Errorf("%+v", &m)
	}
	if !m.isMissing("000012.log") || m.isMissing("000015.log") || m.isMissing("000008.log") {
		t.Errorf("missing: %v", m.missing)
	}
}

// A log that was closed and is shorter now, or has other bytes at its end, is
// damaged, and so is one of a copy that is gone.
func TestLogIsCutOff(t *testing.T) {
	mem := vfs.NewCrashableMem()
	x := mustOpen(t, "d", small(mem))
	if err := errors.Join(put(x, SpaceMeta, "k", "v", true), put(x, SpaceMeta, "l", "w", true)); err != nil {
		t.Fatal(err)
	}
	if err := x.Checkpoint("copy"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, x)
	var name string
	for _, n := range logsOf(t, mem, "d") {
		if strings.HasSuffix(n, ".log") {
			name = max(name, n)
		}
	}
	whole, err := mem.UnsafeGetFileDataBuffer("d/" + name)
	if err != nil {
		t.Fatal(err)
	}
	whole = slices.Clone(whole)
	for size := 0; size <= len(whole); size++ {
		for _, fill := range []bool{false, true} {
			b := slices.Clone(whole[:size])
			if fill {
				b = append(b, make([]byte, len(whole)-size)...)
			}
			writeWhole(t, mem, "d/"+name, b)
			x, err := Open("d", &Options{FS: mem, ReadOnly: true})
			if err == nil {
				for k, want := range map[string]string{"k": "v", "l": "w"} {
					if v, err := x.Get(SpaceMeta, []byte(k)); err != nil || string(v) != want {
						t.Fatalf("%d of %d bytes, filled %v: %q, %v", size, len(whole), fill, v, err)
					}
				}
				mustClose(t, x)
			} else if !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), name) {
				t.Errorf("%d bytes: %v", size, err)
			}
			if size < len(whole) && !fill && err == nil {
				t.Errorf("%d of %d bytes: opened", size, len(whole))
			}
		}
	}
	for _, name := range logsOf(t, mem, "copy") {
		if strings.HasSuffix(name, ".log") {
			if err := mem.Remove("copy/" + name); err != nil {
				t.Fatal(err)
			}
			if _, err := Open("copy", &Options{FS: mem, ReadOnly: true}); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("copy without %s: %v", name, err)
			}
			return
		}
	}
	t.Error("the copy has no log")
}

// An index whose marks are older than its logs opens: programs that know nothing
// of marks wrote to it. So does one without a mark.
func TestStaleMarks(t *testing.T) {
	for _, keep := range []bool{true, false} {
		mem := vfs.NewCrashableMem()
		x := mustOpen(t, "d", small(mem))
		if err := put(x, SpaceMeta, "k", "v", true); err != nil {
			t.Fatal(err)
		}
		mustClose(t, x)
		names, err := mem.List("d")
		if err != nil {
			t.Fatal(err)
		}
		mark := ""
		for _, name := range names {
			if _, _, ok := parseLogMark(name); ok {
				mark = name
			}
		}
		for i := range 3 {
			x := mustOpen(t, "d", small(mem))
			if err := errors.Join(put(x, SpaceMeta, fmt.Sprint(i), "v", true), x.Flush(), put(x, SpaceMeta, fmt.Sprint(i), "w", true)); err != nil {
				t.Fatal(err)
			}
			mustClose(t, x)
		}
		names, err = mem.List("d")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if _, _, ok := parseLogMark(name); ok {
				if err := mem.Remove("d/" + name); err != nil {
					t.Fatal(err)
				}
			}
		}
		if keep {
			if err := writeSmall(mem, "d/"+mark, nil); err != nil {
				t.Fatal(err)
			}
		}
		x = mustOpen(t, "d", small(mem))
		if v, err := x.Get(SpaceMeta, []byte("2")); err != nil || string(v) != "w" {
			t.Errorf("%q, %v", v, err)
		}
		mustClose(t, x)
	}
}
