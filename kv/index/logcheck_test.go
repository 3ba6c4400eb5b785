package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

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

// Nor is one of the log of an index that was killed, but in the last commit: each
// says how far the log was synced before it, whatever the size of those that were.
func TestDamagedLogOfAKilledIndex(t *testing.T) {
	for _, sizes := range [][]int{{10, 10, 10, 10}, {3000, 40000, 10, 70000, 9000, 10}, {40000, 40000, 40000, 10}} {
		mem := vfs.NewCrashableMem()
		x := mustOpen(t, "d", &Options{FS: mem, Create: true, ReserveBytes: -1})
		last := 0 // where the last one begins
		for i, size := range sizes {
			last = len(mustReadLog(t, mem, newestLog(t, mem)))
			if err := put(x, SpaceMeta, fmt.Sprint(i), strings.Repeat("v", size), true); err != nil {
				t.Fatal(err)
			}
		}
		image := mem.CrashClone(vfs.CrashCloneCfg{})
		mustClose(t, x)
		name := newestLog(t, image)
		whole := mustReadLog(t, image, name)
		step := 1 + len(whole)/60
		if testing.Short() || raceEnabled {
			step *= 3
		}
		for at := 0; at < len(whole); at += step {
			fs := image.CrashClone(vfs.CrashCloneCfg{})
			flipByte(t, fs, name, at)
			x, err := Open("d", &Options{FS: fs, ReadOnly: true, MemTableBytes: 1 << 20})
			if at < last && !errors.Is(err, kv.ErrCorrupt) {
				t.Fatalf("%v, byte %d of %d, the last record begins at %d: %v", sizes, at, len(whole), last, err)
			}
			if err != nil {
				continue
			}
			for i, size := range sizes[:len(sizes)-1] {
				if v, err := x.Get(SpaceMeta, fmt.Append(nil, i)); err != nil || len(v) != size {
					t.Errorf("%v, byte %d of %d: commit %d is gone: %v", sizes, at, len(whole), i, err)
				}
			}
			mustClose(t, x)
		}
	}
}

// mustReadLog returns a copy of a file.
func mustReadLog(t *testing.T, fs *vfs.MemFS, path string) []byte {
	t.Helper()
	b, err := fs.UnsafeGetFileDataBuffer(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b)
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
		log, err := openLog(mem, "000007.log", 7, 0)
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
	f.Add(append(damagedChunk(chunkOf(9, 7, 0, 30)), notedChunk(9, 7, markedLog{7, 1})...), uint32(7))
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

// chunkOf is a chunk of a log as Pebble writes it: kinds 1 to 4 are whole, first,
// middle and last; 4 more with a number of the log, 8 more with what was synced too.
func chunkOf(kind byte, number uint32, synced uint64, size int) []byte {
	return chunkWith(kind, number, synced, bytes.Repeat([]byte{0x55}, size))
}

// notedChunk is one of a record that ends with a note.
func notedChunk(kind byte, number uint32, l markedLog) []byte {
	return chunkWith(kind, number, 0, appendSyncNote([]byte("batch"), l))
}

func chunkWith(kind byte, number uint32, synced uint64, payload []byte) []byte {
	b := make([]byte, 6, 32)
	b = append(b, kind)
	if kind > 4 {
		b = binary.LittleEndian.AppendUint32(b, number)
	}
	if kind > 8 {
		b = binary.LittleEndian.AppendUint64(b, synced)
	}
	b = append(b, payload...)
	binary.LittleEndian.PutUint16(b[4:], uint16(len(payload)))
	crc := crc32.Checksum(b[6:], castagnoli)
	binary.LittleEndian.PutUint32(b, (crc>>15|crc<<17)+0xa282ead8)
	return b
}

func damagedChunk(b []byte) []byte {
	b[len(b)-1] ^= 1
	return b
}

// The scan tells damage from an end by what follows, to the byte.
func TestLogScan(t *testing.T) {
	const n = 7 // number of the log
	log := func(kind byte, synced uint64) []byte { return chunkOf(kind+8, n, synced, 100) }
	size := uint64(len(log(1, 0)))
	list := func(kind byte) []byte { return chunkOf(kind, 0, 0, 100) }
	zeros := func(n int) []byte { return make([]byte, n) }
	for _, c := range []struct {
		name   string
		number uint32
		chunks [][]byte
		ended  bool
		end    uint64
		damage bool
	}{
		{"whole", n, [][]byte{log(1, 0), log(2, 0), log(3, size), log(4, size), log(1, 4*size)}, false, 0, false},
		{"torn at the end", n, [][]byte{log(1, 0), damagedChunk(log(1, size))}, true, size, false},
		{"synced up to the damage", n, [][]byte{log(1, 0), damagedChunk(log(1, 0)), log(1, size)}, true, size, false},
		{"synced beyond its beginning", n, [][]byte{log(1, 0), damagedChunk(log(1, 0)), log(1, size+1)}, true, size, true},
		{"the first is damaged", n, [][]byte{damagedChunk(log(1, 0)), log(4, 1)}, true, 0, true},
		{"of another log behind", n, [][]byte{log(1, 0), damagedChunk(log(1, 0)), chunkOf(9, n+1, 9*size, 100)}, true, size, false},
		{"without marks behind", n, [][]byte{log(1, 0), damagedChunk(log(1, 0)), chunkOf(5, n, 0, 100)}, true, size, false},
		{"without a number", n, [][]byte{log(1, 0), list(1)}, true, size, false},
		{"marks found behind others", n, [][]byte{log(1, 0), damagedChunk(log(1, 0)), chunkOf(8, n, 0, 9), log(1, size+1)}, true, size, true},
		{"every kind", n, [][]byte{chunkOf(5, n, 0, 1), chunkOf(6, n, 0, 1), chunkOf(7, n, 0, 1), chunkOf(8, n, 0, 1), chunkOf(9, n, 0, 1), chunkOf(10, n, 0, 1), chunkOf(11, n, 0, 1), chunkOf(12, n, 0, 1)}, false, 0, false},
		{"no kind", n, [][]byte{chunkOf(13, n, 0, 1)}, true, 0, false},

		{"noted up to the damage", n, [][]byte{log(1, 0), damagedChunk(log(1, 0)), notedChunk(9, n, markedLog{n, size})}, true, size, false},
		{"noted beyond its beginning", n, [][]byte{log(1, 0), damagedChunk(log(1, 0)), notedChunk(9, n, markedLog{n, size + 1})}, true, size, true},
		{"noted at the end of a record", n, [][]byte{log(1, 0), damagedChunk(log(1, 0)), log(2, 0), notedChunk(8, n, markedLog{n, size + 1})}, true, size, true},
		{"noted within a record", n, [][]byte{log(1, 0), damagedChunk(log(1, 0)), notedChunk(10, n, markedLog{n, size + 1})}, true, size, false},
		{"noted of another log", n, [][]byte{log(1, 0), damagedChunk(log(1, 0)), notedChunk(9, n, markedLog{n - 1, size + 1})}, true, size, false},

		{"list", 0, [][]byte{list(1), list(2), list(3), list(4)}, false, 0, false},
		{"list, torn", 0, [][]byte{list(1), damagedChunk(list(1))}, true, 107, false},
		{"list, an edit behind", 0, [][]byte{list(1), damagedChunk(list(1)), list(1)}, true, 107, true},
		{"list, the beginning of one", 0, [][]byte{list(1), damagedChunk(list(1)), list(2)}, true, 107, true},
		{"list, the rest of the damaged one", 0, [][]byte{list(1), damagedChunk(list(2)), list(3), list(4)}, true, 107, false},
		{"list, a chunk of a log", 0, [][]byte{log(1, 0)}, true, 0, false},

		{"padding", n, [][]byte{log(1, 0), zeros(syncedHeader - 1)}, false, 0, false},
		{"more than padding", n, [][]byte{log(1, 0), zeros(syncedHeader)}, true, size, false},
		{"no padding", n, [][]byte{log(1, 0), append(zeros(syncedHeader-2), 1)}, true, size, false},
		{"nothing", n, nil, false, 0, false},
	} {
		s := logScan{number: c.number}
		s.block(bytes.Join(c.chunks, nil))
		if s.ended != c.ended || s.end != c.end || s.damaged != c.damage {
			t.Errorf("%s: ended %v at %d, damaged %v", c.name, s.ended, s.end, s.damaged)
		}
	}
	// Offsets go on from block to block.
	s := logScan{number: n}
	s.block(bytes.Join([][]byte{log(1, 0), log(1, 0)}, nil))
	s.block(bytes.Join([][]byte{log(1, 0), damagedChunk(log(1, 0))}, nil))
	s.block(log(1, 3*size+1))
	if s.end != 3*size || !s.damaged {
		t.Errorf("blocks: ended at %d, damaged %v", s.end, s.damaged)
	}
}

// A log that cannot be read is an error of the disk, not its end.
func TestLogCannotBeRead(t *testing.T) {
	mem := vfs.NewMem()
	x := mustOpen(t, "d", small(mem))
	if err := put(x, SpaceMeta, "k", strings.Repeat("v", 100<<10), true); err != nil {
		t.Fatal(err)
	}
	mustClose(t, x)
	broken := errors.New("broken")
	for k := int64(0); ; k++ {
		f := faults{err: broken, once: true, at: k, match: func(op errorfs.Op) bool {
			_, ok := logNumber(mem.PathBase(op.Path))
			return ok && (op.Kind == errorfs.OpFileRead || op.Kind == errorfs.OpFileReadAt || op.Kind == errorfs.OpOpen)
		}}
		x, err := Open("d", &Options{FS: f.wrap(mem), ReadOnly: true})
		if f.hits.Load() == 0 {
			if err != nil || k < 8 {
				t.Fatalf("after %d reads: %v", k, err)
			}
			mustClose(t, x)
			return
		}
		if !errors.Is(err, broken) {
			t.Errorf("read %d: %v", k, err)
			if err == nil {
				mustClose(t, x)
			}
		}
	}
}
