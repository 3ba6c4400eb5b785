package engine

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// protect changes the access to the maps of packs below dir, from 40 % of each file to 70 %: the
// end, which a read compares always, can be read.
func protect(t *testing.T, dir string, access int) {
	t.Helper()
	n := 0
	for line := range strings.Lines(string(must.Get(os.ReadFile("/proc/self/maps"))(t))) {
		var from, to uintptr
		var off int
		var mode string
		if !strings.Contains(line, dir+"/") || !strings.Contains(line, ".pack") {
			continue
		}
		must.Get(fmt.Sscanf(line, "%x-%x %s %x", &from, &to, &mode, &off))(t)
		b := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), from)), to-from)
		size := int(must.Get(os.Stat(strings.TrimSpace(line[strings.Index(line, dir):])))(t).Size())
		page := os.Getpagesize()
		lo, hi := max(0, size*4/10/page*page-off), min(len(b), size*7/10/page*page-off)
		if lo < hi {
			must.Do(t, unix.Mprotect(b[lo:hi], access))
			n++
		}
	}
	if n == 0 {
		t.Fatalf("no pack of %s is mapped", dir)
	}
}

// unreadable stands for a disk that is damaged after a database was opened and read: it calls
// use while pages of its packs cannot be read, and while its pack is cut off.
func unreadable(t *testing.T, dir string, use func(what string)) {
	t.Helper()
	protect(t, dir, unix.PROT_NONE)
	use("without access")
	protect(t, dir, unix.PROT_READ)
	packs := must.Get(filepath.Glob(filepath.Join(dir, "packs", "*.pack")))(t)
	for _, pack := range packs {
		info := must.Get(os.Stat(pack))(t)
		must.Do(t, os.Truncate(pack, info.Size()*2/5))
	}
	use("cut off")
}

// big makes a database of an array with one chunk of n bytes that do not compress well. It has
// been read, so that its checksums are not compared again.
func big(t *testing.T, n int, codecs string) (dir string, db *DB) {
	dir = filepath.Join(t.TempDir(), "db")
	db = must.Get(Create(bg, dir, nil))(t)
	values := make([]byte, n)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range values {
		values[i] = byte(random.IntN(6))
	}
	commit(t, db, "main", "", func(s *Session) error {
		a, err := zarr.Create(bg, s, "a", zarr.Spec{Version: zarr.V3, Shape: []int64{int64(len(values))}, Chunks: []int64{int64(len(values))}, DataType: "uint8", Codecs: []byte(codecs)}, nil)
		if err != nil {
			return err
		}
		return a.WriteBytes(bg, zarr.Sel(), values)
	})
	must.Do(t, db.Close())
	db = must.Get(Open(bg, dir, &Options{CacheBytes: -1}))(t)
	t.Cleanup(func() { _ = db.Close() })
	got := make([]byte, len(values))
	must.Do(t, array(t, at(t, db, "main"), "a").ReadBytes(bg, zarr.Sel(), got))
	if !bytes.Equal(got, values) {
		t.Fatal("other values")
	}
	return dir, db
}

// A page of a chunk that cannot be read is an error of the read, whichever codec decodes it, on
// one processor and on many, and does not end the process.
func TestUnreadablePage(t *testing.T) {
	blosc := func(cname, shuffle string) string {
		return `["bytes",{"name":"blosc","configuration":{"cname":"` + cname + `","clevel":3,"shuffle":"` + shuffle + `","typesize":1,"blocksize":65536}}]`
	}
	packed := func(name, configuration string) string {
		return `["bytes",{"name":"` + name + `","configuration":` + configuration + `}]`
	}
	for name, codecs := range map[string]string{
		"raw":              `["bytes"]`,
		"crc32c":           `["bytes",{"name":"crc32c"}]`,
		"gzip":             packed("gzip", `{"level":1}`),
		"zlib":             packed("numcodecs.zlib", `{"level":1}`),
		"zstd":             packed("zstd", `{"level":1,"checksum":true}`),
		"lz4":              packed("numcodecs.lz4", `{"acceleration":1}`),
		"bz2":              packed("numcodecs.bz2", `{"level":1}`),
		"lzma":             packed("numcodecs.lzma", `{"preset":0}`),
		"pcodec":           `[{"name":"numcodecs.pcodec","configuration":{"level":1}}]`,
		"blosc lz4":        blosc("lz4", "shuffle"),
		"blosc lz4hc":      blosc("lz4hc", "bitshuffle"),
		"blosc blosclz":    blosc("blosclz", "noshuffle"),
		"blosc zlib":       blosc("zlib", "noshuffle"),
		"blosc zstd":       blosc("zstd", "bitshuffle"),
		"n5":               `[{"name":"n5_default","configuration":{"codecs":[{"name":"transpose","configuration":{"order":[0]}},{"name":"bytes","configuration":{"endian":"big"}},{"name":"zstd","configuration":{"level":1,"checksum":false}}]}}]`,
		"shards":           `[{"name":"sharding_indexed","configuration":{"chunk_shape":[131072],"codecs":["bytes",{"name":"zstd","configuration":{"level":1,"checksum":false}}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}],"index_location":"start"}}]`,
		"shards of blosc":  `[{"name":"sharding_indexed","configuration":{"chunk_shape":[2097152],"codecs":` + blosc("lz4", "noshuffle") + `,"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}],"index_location":"start"}}]`,
		"crc32c and blosc": strings.TrimSuffix(blosc("zstd", "noshuffle"), "]") + `,{"name":"crc32c"}]`,
	} {
		if testing.Short() && name != "zstd" && name != "blosc lz4" && name != "shards of blosc" {
			continue
		}
		for _, procs := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s/%d", name, procs), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				n := 512 << 10
				if strings.Contains(name, "blosc") {
					n = 4 << 20 // for several processors
				}
				dir, db := big(t, n, codecs)
				a := array(t, at(t, db, "main"), "a")
				unreadable(t, dir, func(what string) {
					for _, sel := range []zarr.Selection{zarr.Sel(), zarr.Sel(zarr.Slice(int64(n/3), int64(n), 1))} {
						shape := must.Get(a.Resolve(sel))(t)
						if what != "cut off" { // checksums that were compared are not compared again
							protect(t, dir, unix.PROT_READ)
							must.Do(t, a.ReadBytes(bg, zarr.Sel(), make([]byte, n)))
							protect(t, dir, unix.PROT_NONE)
						}
						if err := a.ReadBytes(bg, sel, make([]byte, shape[0])); !errors.Is(err, ErrCorrupt) {
							t.Errorf("%s: %v, want ErrCorrupt", what, err)
						}
					}
				})
			})
		}
	}
}

// What copies such a chunk to a file, a directory, an archive or another database gets the same
// error, and the other database stays usable.
func TestUnreadablePageCopied(t *testing.T) {
	dir, db := big(t, 1<<20, `["bytes"]`)
	snap, other := at(t, db, "main"), openDB(t, nil)
	unreadable(t, dir, func(what string) {
		v := must.Get(kv.Locate(bg, snap, "a/c/0"))(t)
		s := must.Get(other.Begin(bg, "main"))(t)
		export := func(dest string) error {
			src := must.Get(OpenViewSource(snap, dir, "", nil))(t)
			defer src.Close()
			_, err := Export(bg, src, filepath.Join(t.TempDir(), dest), ExportOptions{})
			return err
		}
		for to, copied := range map[string]func() error{
			"directory": func() error { return export("out") },
			"archive":   func() error { return export("out.zip") },
			"file": func() error {
				return v.View(bg, kv.All(), func(b []byte) error { return os.WriteFile(filepath.Join(t.TempDir(), "f"), b, 0o666) })
			},
			"database": func() error {
				return v.View(bg, kv.All(), func(b []byte) error { return s.Set(bg, "k", b) })
			},
		} {
			if err := copied(); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, to a %s: %v", what, to, err)
			}
		}
		must.Do(t, s.Set(bg, "ok", []byte(what)))
		must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
	})
}
