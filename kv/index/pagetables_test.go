package index

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// plain makes an index that reads pages of all tables past Pebble.
func plain(fs vfs.FS) *Options {
	o := small(fs)
	o.pageTable = 1
	return o
}

// randomPages have sizes from nothing to eight blocks.
func randomPages(rng *rand.Rand, n int) map[digest.Sum][]byte {
	list := map[digest.Sum][]byte{}
	for range n {
		p := make([]byte, rng.IntN(1<<rng.IntN(14)))
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
		list[digest.Of(p)] = p
	}
	return list
}

func putAll(t *testing.T, x *Index, list map[digest.Sum][]byte) {
	t.Helper()
	b := x.NewBatch()
	defer b.Close()
	for name, p := range list {
		b.PutPage(name, p)
	}
	if err := b.Commit(true); err != nil {
		t.Fatal(err)
	}
}

// viewed returns what ViewPage finds.
func viewed(x *Index, name digest.Sum) (page []byte, err error) {
	err = x.ViewPage(name, func(p []byte) error {
		page = append([]byte{}, p...)
		return nil
	})
	return page, err
}

// past tells whether a page is found past Pebble; it is to be the right one.
func past(t *testing.T, x *Index, name digest.Sum, want []byte) bool {
	t.Helper()
	done, err := x.pages.view(name, func(p []byte) error {
		if !bytes.Equal(p, want) {
			t.Errorf("page %v: %d bytes, not the %d that were put", name, len(p), len(want))
		}
		return nil
	})
	if err != nil {
		t.Errorf("page %v: %v", name, err)
	}
	return done
}

// Pages of all levels and of tables between other spaces are found past Pebble as
// soon as they are in tables, and others by it.
func TestPageTables(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, seed))
	x := mustOpen(t, "d", plain(vfs.NewMem()))
	defer func() { mustClose(t, x) }()
	all := map[digest.Sum][]byte{}
	inTables := func(where string, want bool) {
		t.Helper()
		for name, p := range all {
			if got, err := viewed(x, name); err != nil || !bytes.Equal(got, p) {
				t.Fatalf("%s: page %v: %d bytes, %v", where, name, len(got), err)
			}
		}
		found := 0
		for range 1000 { // a compaction that ends meanwhile takes tables away
			found = 0
			x.pages.refresh()
			for name, p := range all {
				if past(t, x, name, p) {
					found++
				}
			}
			if !want || found == len(all) {
				break
			}
		}
		if want && found != len(all) || !want && found > 0 {
			t.Errorf("%s: %d of %d pages are found in tables", where, found, len(all))
		}
		for name := range randomPages(rng, 200) {
			if _, ok := all[name]; ok {
				continue
			}
			if past(t, x, name, nil) {
				t.Fatalf("%s: a page that is nowhere was found", where)
			}
			if _, err := viewed(x, name); err != ErrNotFound {
				t.Fatalf("%s: page that is not there: %v", where, err)
			}
		}
	}
	add := func(n int) {
		t.Helper()
		list := randomPages(rng, n)
		putAll(t, x, list)
		for name, p := range list {
			all[name] = p
		}
	}
	add(20)
	inTables("memory", false)
	for i := range 300 { // spaces before and behind that of pages
		if err := put(x, []Space{SpaceCommit, SpacePack, SpaceRef, SpaceExpired}[i%4], fmt.Sprint(i), "value", false); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := x.Flush(); err != nil {
			t.Fatal(err)
		}
		inTables("a young table", true)
		add(200)
	}
	if err := x.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := x.Ingest(seqOf(pages(0, 300), nil)); err != nil {
		t.Fatal(err)
	}
	for _, p := range pages(0, 300) {
		all[p.Name] = p.Bytes
	}
	inTables("ingested", true)
	old := x.pages.tables()
	if err := x.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	inTables("compacted", true)
	for _, run := range old {
		for _, p := range run {
			if !p.use.closed() && !x.has(p) {
				t.Errorf("table %d is gone and still open", p.number)
			}
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = mustOpen(t, "d", plain(x.fs))
	inTables("opened again", true)
}

// has tells whether a table is in use.
func (x *Index) has(t *pageTable) bool {
	for u := range x.pages.all() {
		if u == t {
			return true
		}
	}
	return false
}

// The index of a large table has two levels, and blocks hold one page or several.
func TestPageTablesOfTwoLevels(t *testing.T) {
	o := plain(vfs.NewMem())
	o.MemTableBytes = 16 << 20
	x := mustOpen(t, "d", o)
	defer mustClose(t, x)
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, seed))
	all := map[digest.Sum][]byte{}
	for range 10_000 {
		p := make([]byte, 1000+rng.IntN(400))
		for i := range 8 {
			p[i] = byte(rng.Uint32())
		}
		all[digest.Of(p)] = p
	}
	putAll(t, x, all)
	if err := x.Flush(); err != nil {
		t.Fatal(err)
	}
	x.pages.refresh()
	for name, p := range all {
		if !past(t, x, name, p) {
			t.Fatalf("page %v is not found in the table", name)
		}
	}
	tables := 0
	for table := range x.pages.all() {
		if layout, err := table.r.Layout(); err != nil || len(layout.Index) < 2 {
			t.Errorf("the index of the table has %d blocks, %v", len(layout.Index), err)
		}
		tables++
		if _, err := openPageTable(x.fs, x.fs.PathJoin(x.dir, tableName(table.number)), x.pages.opts, len(table.blocks)/2); !errors.Is(err, errOtherTable) {
			t.Errorf("table of too many blocks: %v", err)
		}
	}
	if tables != 1 {
		t.Errorf("%d tables", tables)
	}
}

// Damage is found by the checksum of the block, and told by Pebble.
func TestPageTablesDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	x := mustOpen(t, dir, plain(vfs.Default))
	list := pages(0, 100)
	if err := x.Ingest(seqOf(list, nil)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, x)
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, path := range tables {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(raw, list[40].Bytes); at >= 0 {
			raw[at+1000] ^= 1
			damaged++
			if err := os.WriteFile(path, raw, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if damaged != 1 {
		t.Fatalf("the page is in %d tables", damaged)
	}
	x = mustOpen(t, dir, plain(vfs.Default))
	defer mustClose(t, x)
	x.pages.refresh()
	for i, p := range list {
		got, err := viewed(x, p.Name)
		if i == 40 {
			if past(t, x, p.Name, p.Bytes) || !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("damaged page: %v", err)
			}
		} else if !past(t, x, p.Name, p.Bytes) || err != nil || !bytes.Equal(got, p.Bytes) {
			t.Errorf("page beside a damaged one: %v", err)
		}
	}
}

// brokenTables refuses to open tables for Pebble's and our reads.
type brokenTables struct {
	vfs.FS
	broken bool
}

func (f *brokenTables) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.broken && isTable(name) {
		return nil, errors.New("broken")
	}
	return f.FS.Open(name, opts...)
}

// A table that cannot be opened is left to Pebble, and taken once it can be.
func TestPageTablesThatDoNotOpen(t *testing.T) {
	fs := &brokenTables{FS: vfs.NewMem()}
	x := mustOpen(t, "d", plain(fs))
	defer mustClose(t, x)
	list := pages(0, 20)
	if err := x.Ingest(seqOf(list, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := viewed(x, list[0].Name); err != nil { // Pebble opens it
		t.Fatal(err)
	}
	for _, broken := range []bool{true, false} {
		fs.broken = broken
		x.pages.refresh()
		for _, p := range list {
			got, err := viewed(x, p.Name)
			if err != nil || !bytes.Equal(got, p.Bytes) || past(t, x, p.Name, p.Bytes) == broken {
				t.Fatalf("broken %v: page %v: %v", broken, p.Name, err)
			}
		}
	}
}

// Tables of other keys, small ones and parts of tables are left to Pebble.
func TestPageTablesLeft(t *testing.T) {
	o := plain(vfs.NewMem())
	o.pageTable = 20 << 10
	x := mustOpen(t, "d", o)
	defer mustClose(t, x)
	if err := x.Ingest(seqOf(pages(0, 5), nil)); err != nil { // 10 KB
		t.Fatal(err)
	}
	for i := range 100 {
		if err := put(x, SpaceRef, fmt.Sprint(i), string(make([]byte, 1000)), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Flush(); err != nil {
		t.Fatal(err)
	}
	x.pages.refresh()
	for table := range x.pages.all() {
		t.Errorf("table %d was taken", table.number)
	}
	if err := x.Ingest(seqOf(pages(5, 50), nil)); err != nil {
		t.Fatal(err)
	}
	x.pages.refresh()
	for _, p := range pages(0, 50) {
		if got, err := viewed(x, p.Name); err != nil || !bytes.Equal(got, p.Bytes) {
			t.Fatalf("page %v: %v", p.Name, err)
		}
	}
	n := 0
	for range x.pages.all() {
		n++
	}
	if n != 1 {
		t.Errorf("%d tables are taken, not the one of enough pages", n)
	}
	levels, err := x.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range levels {
		for _, info := range level {
			info.Virtual = true
			if x.pages.open(info, nil, maxPageBlocks) != nil {
				t.Errorf("a part of table %v was taken", info.BackingSSTNum)
			}
		}
	}
}

// What is no table, or a damaged one, is an error and no panic.
func TestPageTablesOfGarbage(t *testing.T) {
	fs := vfs.NewMem()
	x := mustOpen(t, "d", plain(fs))
	defer mustClose(t, x)
	if err := x.Ingest(seqOf(pages(0, 20), nil)); err != nil {
		t.Fatal(err)
	}
	x.pages.refresh()
	var raw []byte
	for table := range x.pages.all() {
		f, err := fs.Open(fs.PathJoin("d", tableName(table.number)))
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = io.ReadAll(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, seed))
	for i := range 300 {
		at := rng.IntN(len(raw))
		if i%3 > 0 { // in what is not pages, and in the footer
			at = len(raw) - 1 - rng.IntN([]int{0, 100, 1500}[i%3])
		}
		for _, damaged := range [][]byte{raw[:at], append(append(bytes.Clone(raw[:at]), raw[at]^0x40), raw[at+1:]...)} {
			f, err := fs.Create("table", vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write(damaged)
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			table, err := openPageTable(fs, "table", x.pages.opts, maxPageBlocks)
			if err != nil {
				continue
			}
			if len(damaged) < len(raw) {
				t.Errorf("a table of which %d bytes of %d are left was opened", at, len(raw))
			}
			r := newPageReader(table.schema)
			for _, p := range pages(0, 20) {
				_, _ = table.view(r, p.Name, func(got []byte) error {
					if !bytes.Equal(got, p.Bytes) {
						t.Errorf("with byte %d damaged, page %v has other bytes", at, p.Name)
					}
					return nil
				})
			}
			r.pool.Release()
			table.close()
		}
	}
}

// closes counts the files that are open.
type closes struct {
	vfs.FS
	open int
}

type closing struct {
	vfs.File
	fs *closes
}

func (f *closes) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, opts...)
	if err == nil {
		f.open++
		file = closing{file, f}
	}
	return file, err
}

func (f closing) Close() error {
	f.fs.open--
	return f.File.Close()
}

// A table of keys of another kind makes Pebble's reader panic, which is an error
// that leaves nothing open.
func TestPageTablesOfOtherKeys(t *testing.T) {
	x := mustOpen(t, "d", plain(vfs.NewMem()))
	defer mustClose(t, x)
	if err := x.Ingest(seqOf(pages(0, 20), nil)); err != nil {
		t.Fatal(err)
	}
	x.pages.refresh()
	o := x.pages.opts.Clone()
	o.KeySchemas = nil
	fs := &closes{FS: x.fs}
	for table := range x.pages.all() {
		if _, err := openPageTable(fs, x.fs.PathJoin(x.dir, tableName(table.number)), o, maxPageBlocks); !errors.Is(err, errOtherTable) {
			t.Errorf("table of unknown keys: %v", err)
		}
	}
	if fs.open != 0 {
		t.Errorf("%d files are open", fs.open)
	}
}

// Views make a refresh happen by themselves.
func TestPageTablesAreRefreshed(t *testing.T) {
	x := mustOpen(t, "d", plain(vfs.NewMem()))
	defer mustClose(t, x)
	list := pages(0, 100)
	for turn := range 2 {
		if err := x.Ingest(seqOf(list[turn*50:turn*50+50], nil)); err != nil {
			t.Fatal(err)
		}
		for i := 0; !past(t, x, list[turn*50].Name, list[turn*50].Bytes); i++ {
			if _, err := viewed(x, list[turn*50+i%50].Name); err != nil {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
}

// Reads go on beside commits, ingests, compactions and sweeps that replace and
// remove tables, and Close waits for them.
func TestPageTablesBesideChanges(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, seed))
	x := mustOpen(t, "d", plain(vfs.NewMem()))
	stay := randomPages(rng, 300)
	putAll(t, x, stay)
	var names []digest.Sum
	for name := range stay {
		names = append(names, name)
	}
	var readers sync.WaitGroup
	for n := range 3 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			for i := 0; ; i++ {
				if i%100 == 99 {
					x.pages.refresh()
				}
				name := names[rng.IntN(len(names))]
				got, err := viewed(x, name)
				if errors.Is(err, kv.ErrClosed) {
					return
				}
				if err != nil || !bytes.Equal(got, stay[name]) {
					t.Errorf("page %v: %d bytes, %v", name, len(got), err)
					return
				}
			}
		})
	}
	for i := range 6 {
		garbage := randomPages(rng, 100)
		putAll(t, x, garbage)
		if err := x.Flush(); err != nil {
			t.Fatal(err)
		}
		w, err := x.Sweep()
		if err != nil {
			t.Fatal(err)
		}
		var gone []digest.Sum
		for name := range garbage {
			if _, ok := stay[name]; !ok {
				gone = append(gone, name)
			}
		}
		if _, err := w.Delete(gone); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if err := x.Ingest(seqOf(pages(i*10, i*10+20), nil)); err != nil {
			t.Fatal(err)
		}
		if err := x.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, x)
	readers.Wait()
	if list := x.pages.tables(); list != nil {
		t.Errorf("%d runs are left", len(list))
	}
}

// Keys sort by their heads as they sort.
func TestHeads(t *testing.T) {
	name := digest.Of([]byte("x"))
	least, most := digest.Sum{}, digest.Sum{}
	for i := range most {
		most[i] = 0xff
	}
	page := func(name digest.Sum) []byte { return append([]byte{byte(SpacePage)}, name[:]...) }
	ordered := [][]byte{nil, {0}, {byte(SpaceCommit), 0xff}, page(least), page(name)[:3], page(name)[:9], page(name), page(most), {byte(SpacePage) + 1}, {0xff}}
	for i := 1; i < len(ordered); i++ {
		if bytes.Compare(ordered[i-1], ordered[i]) > 0 || headOf(ordered[i-1]) > headOf(ordered[i]) {
			t.Errorf("%x and %x: heads %x and %x", ordered[i-1], ordered[i], headOf(ordered[i-1]), headOf(ordered[i]))
		}
	}
	table := &pageTable{}
	for _, key := range [][]byte{{byte(SpaceCommit)}, page(name), {byte(SpaceRef)}, {byte(SpaceSession)}} {
		if err := table.addBlock(key, block.Handle{Length: 10}); err != nil {
			t.Fatal(err)
		}
	}
	if len(table.blocks) != 2 || table.blocks[0].head != head(name[:]) || table.blocks[1].head != ^uint64(0) {
		t.Errorf("blocks %x", table.blocks)
	}
	for _, h := range []struct{ offset, length uint64 }{{0, 1 << 24}, {1 << 40, 1}} {
		if err := table.addBlock(page(name), block.Handle{Offset: h.offset, Length: h.length}); !errors.Is(err, errOtherTable) {
			t.Errorf("block at %d of %d bytes: %v", h.offset, h.length, err)
		}
	}
}
