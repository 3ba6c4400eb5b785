package index

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// logsOf returns the logs and lists of tables of an index that was closed.
func logsOf(t *testing.T, fs vfs.FS, dir string) (names []string) {
	t.Helper()
	all, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if _, ok := logNumber(name); ok {
			names = append(names, name)
		}
	}
	return names
}

// flipByte changes a bit of a file.
func flipByte(t *testing.T, fs vfs.FS, path string, at int) (size int) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if at < len(b) {
		if _, err := f.WriteAt([]byte{b[at] ^ 0x20}, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	return len(b)
}

// A damaged byte of the log of an index that was closed is an error, or harms
// nothing: no record is taken for a torn end, with what comes behind it left out.
func TestDamagedLogIsNoEnd(t *testing.T) {
	make := func(n int) *vfs.MemFS {
		mem := vfs.NewMem()
		x, err := Open("d", &Options{FS: mem, Create: true, ReserveBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			b := x.NewBatch()
			b.Set(SpaceMeta, fmt.Append(nil, i), bytes.Repeat([]byte{byte(i)}, 100+3000*(i%7)))
			if err := b.Commit(i%5 == 0 || i == n-1); err != nil {
				t.Fatal(err)
			}
			b.Close()
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		return mem
	}
	for _, n := range []int{1, 12} {
		step := 1
		if n > 1 {
			step = 97
		}
		if testing.Short() || raceEnabled {
			step *= 5
		}
		damaged := 0
		for at, size := 0, 1; at < size; at += step {
			mem := make(n)
			for _, name := range logsOf(t, mem, "d") {
				if strings.HasSuffix(name, ".log") {
					size = flipByte(t, mem, mem.PathJoin("d", name), at)
				}
			}
			x, err := Open("d", &Options{FS: mem, ReserveBytes: -1})
			if err != nil {
				if !errors.Is(err, kv.ErrCorrupt) {
					t.Fatalf("byte %d: %v", at, err)
				}
				damaged++
				continue
			}
			for i := range n {
				if v, err := x.Get(SpaceMeta, fmt.Append(nil, i)); err != nil || len(v) != 100+3000*(i%7) || v[0] != byte(i) {
					t.Fatalf("%d commits, byte %d of %d: commit %d is gone: %v", n, at, size, i, err)
				}
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if damaged == 0 {
			t.Error("no damage was noticed")
		}
	}
}

// A damaged edit in the list of tables is no end of it, if others follow.
func TestDamagedListOfTables(t *testing.T) {
	mem := vfs.NewCrashableMem()
	open := func(fs vfs.FS) (*Index, error) {
		return Open("d", &Options{FS: fs, Create: true, ReserveBytes: -1})
	}
	x, err := open(mem)
	if err != nil {
		t.Fatal(err)
	}
	list, size := "", int64(0) // before the last edit
	for i := range 6 {
		for _, name := range logsOf(t, mem, "d") {
			if strings.HasPrefix(name, "MANIFEST-") {
				fi, err := mem.Stat(mem.PathJoin("d", name))
				if err != nil {
					t.Fatal(err)
				}
				list, size = name, fi.Size()
			}
		}
		b := x.NewBatch()
		b.Set(SpaceMeta, fmt.Append(nil, i), []byte("value"))
		if err := errors.Join(b.Commit(true), x.Flush()); err != nil {
			t.Fatal(err)
		}
		b.Close()
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if size < 200 {
		t.Fatalf("%s had %d bytes", list, size)
	}
	step := 5
	if testing.Short() || raceEnabled {
		step = 29
	}
	for at := 0; at < int(size); at += step {
		damaged := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		flipByte(t, damaged, damaged.PathJoin("d", list), at)
		if x, err := open(damaged); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("byte %d of %d: opened: %v, %v", at, size, x, err)
		}
	}
}

// Bytes that change between two reads are an error.
func TestLogReadsTheSameTwice(t *testing.T) {
	mem := vfs.NewMem()
	f, err := mem.Create("000007.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456789abcdef"), 5000)
	if _, err := f.Write(bytes.Clone(want)); err != nil { // this file system may change what it is given
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, flip := range []bool{false, true} {
		log, err := openLog(mem, "000007.log", 7)
		if err != nil {
			t.Fatal(err)
		}
		if flip {
			flipByte(t, mem, "000007.log", 50_000)
		}
		got, err := io.ReadAll(log)
		if flip != errors.Is(err, kv.ErrCorrupt) || !flip && !bytes.Equal(got, want) {
			t.Errorf("flipped %v: %d bytes, %v", flip, len(got), err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is parsed may be anything.
func FuzzLogScan(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 1}, uint32(0))
	f.Add(bytes.Repeat([]byte{9}, 100), uint32(9))
	f.Fuzz(func(t *testing.T, b []byte, number uint32) {
		s := logScan{number: number}
		want := plainScan(b, number)
		for len(b) > 0 {
			n := min(len(b), logBlock)
			s.block(b[:n])
			b = b[n:]
		}
		if s.damaged != want {
			t.Errorf("damaged: %v, want %v", s.damaged, want)
		}
	})
}

// plainScan is logScan without a short cut: it looks for a chunk at every byte
// behind the end.
func plainScan(b []byte, number uint32) (damaged bool) {
	ended, end := false, 0
	for at := 0; at < len(b); at += logBlock {
		block := b[at:min(len(b), at+logBlock)]
		for i := 0; i < len(block); {
			c, ok := parseChunk(block[i:], number)
			switch {
			case ok && ended && (number != 0 && c.synced > uint64(end) || number == 0 && c.first):
				return true
			case ok:
				i += c.size
			case ended:
				i++
			case padding(block[i:]):
				i = len(block)
			default:
				ended, end = true, at+i
				i++
			}
		}
	}
	return false
}
