package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// flipByte changes one bit of a file.
func flipByte(t *testing.T, fs vfs.FS, path string, off int64) {
	t.Helper()
	f := must.Get(fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified))(t)
	defer f.Close()
	var b [1]byte
	must.Get(f.ReadAt(b[:], off))(t)
	b[0] ^= 0x10
	must.Get(f.WriteAt(b[:], off))(t)
}

// packFiles lists the packs of a database by name.
func packFiles(t *testing.T, fs vfs.FS) []string {
	t.Helper()
	names := must.Get(fs.List("db/packs"))(t)
	var out []string
	for _, n := range names {
		if strings.HasSuffix(n, ".pack") {
			out = append(out, "db/packs/"+n)
		}
	}
	slices.Sort(out)
	return out
}

// payload is a value that goes to a pack.
func payload(s string) string { return strings.Repeat(s, 1000/len(s)) }

// damageOf flips a byte in the middle of the payload of a key and returns
// where that was.
func damageOf(t *testing.T, db *DB, fs vfs.FS, rev, key string) tree.Value {
	t.Helper()
	s := must.Get(db.At(bg, rev))(t)
	defer s.Close()
	v, err := s.lookup(bg, key)
	if err != nil || v.Kind != tree.KindNative {
		t.Fatalf("%s is %v, %v", key, v.Kind, err)
	}
	path, off, err := db.packs.Locate(catalog.AddressOf(v))
	must.Do(t, err)
	flipByte(t, fs, path, off+int64(v.Length)/2)
	return v
}

func checkReport(t *testing.T, db *DB, o CheckOptions) *CheckReport {
	t.Helper()
	r := must.Get(db.Check(bg, o))(t)
	return r
}

// damagedHistory makes a database of an array with chunks, three versions of it, a
// tag and a branch.
func damagedHistory(t *testing.T) (*DB, *vfs.MemFS) {
	t.Helper()
	fs := vfs.NewMem()
	db := must.Get(Create("db", testOptions(fs)))(t)
	t.Cleanup(func() { db.Close() })
	values := map[string]string{"a/b/zarr.json": "array f=c/:/:2", "doc": payload("doc")}
	for i := range 30 {
		values[fmt.Sprintf("a/b/c/%d/%d", i/6, i%6)] = payload(fmt.Sprint("chunk ", i, "."))
	}
	update(t, db, "main", values)
	c := update(t, db, "main", map[string]string{"a/b/c/0/1": payload("new")})
	must.Do(t, db.CreateTag(bg, "v1", c.ID))
	update(t, db, "main", map[string]string{"a/b/c/4/5": payload("newer")})
	return db, fs
}

// A quick check reads no payloads, a full one finds a flipped byte and says
// which chunk of which array it is, in which versions, and where it lies.
func TestCheckNamesDamage(t *testing.T) {
	db, fs := damagedHistory(t)
	v := damageOf(t, db, fs, "main", "a/b/c/0/1")
	if r := checkReport(t, db, CheckOptions{}); r.Found != 0 {
		t.Errorf("a quick check reads payloads: %v", r.Problems)
	}
	var told []Problem
	r := checkReport(t, db, CheckOptions{Payloads: true, Found: func(p Problem) { told = append(told, p) }})
	if len(r.Problems) != 1 || len(told) != 1 || r.Found != 1 {
		t.Fatalf("%d problems: %v", r.Found, r.Problems)
	}
	p := r.Problems[0]
	if p.Kind != ProblemPayload || p.Key != "a/b/c/0/1" || p.Array != "a/b" || !slices.Equal(p.Chunk, []int64{0, 1}) {
		t.Errorf("%+v", p)
	}
	if p.Address != catalog.AddressOf(v) || !errors.Is(p, kv.ErrCorrupt) {
		t.Errorf("%v at %+v", p, p.Address)
	}
	if p.Versions != 2 || !slices.Equal(p.Refs, []string{"heads/main", "tags/v1"}) {
		t.Errorf("%d versions, %v", p.Versions, p.Refs)
	}
	for _, word := range []string{"chunk [0 1]", `"a/b"`, "main", "v1", p.Address.Pack.String(), fmt.Sprint(p.Address.Offset)} {
		if !strings.Contains(p.Error(), word) {
			t.Errorf("%q does not say %s", p.Error(), word)
		}
	}
}

// A payload that copies and renames share is looked at once and found
// everywhere.
func TestCheckSharedDamage(t *testing.T) {
	db, fs := damagedHistory(t)
	s := must.Get(db.Begin(bg, "main"))(t)
	must.Do(t, s.Copy(bg, nil, "a/b", "copy"))
	must.Get(s.Commit(bg, CommitOptions{}))(t)
	damageOf(t, db, fs, "main", "a/b/c/3/3")
	r := checkReport(t, db, CheckOptions{Payloads: true})
	got := map[string]int64{}
	for _, p := range r.Problems {
		got[p.Key] = p.Versions
	}
	if len(got) != 2 || got["a/b/c/3/3"] != 4 || got["copy/c/3/3"] != 1 || r.Found != 1 {
		t.Errorf("found %v, %d", got, r.Found)
	}
	if want := int64(33); r.Payloads != want { // 31 and two that were replaced
		t.Errorf("%d payloads were looked at, want %d", r.Payloads, want)
	}
}

// mislabel commits a key whose payload is sound, with right checksums, but is not
// the one that the index means.
func mislabel(t *testing.T, db *DB, key string) {
	t.Helper()
	s := mustBegin(t, db)
	v := must.Get(db.store(bg, pack.Owner{Key: []byte(key)}, []byte(payload("some")), digest.Of([]byte(payload("other")))))(t)
	must.Do(t, s.put(bg, namespace.Edit{Key: key, Value: v}, nil))
	must.Get(s.Commit(bg, CommitOptions{}))(t)
}

// A payload that its checksums do not tell from another is compared by content.
func TestCheckContentHash(t *testing.T) {
	db, _ := damagedHistory(t)
	mislabel(t, db, "a/b/c/2/2")
	r := checkReport(t, db, CheckOptions{Payloads: true})
	if len(r.Problems) != 1 || r.Problems[0].Kind != ProblemPayload || !errors.Is(r.Problems[0], kv.ErrCorrupt) {
		t.Fatalf("found %v", r.Problems)
	}
}

// The header of a payload is read too: it says where it lies and whose it is.
func TestCheckHeader(t *testing.T) {
	db, fs := damagedHistory(t)
	s := must.Get(db.At(bg, "main"))(t)
	defer s.Close()
	v := must.Get(s.lookup(bg, "a/b/c/0/1"))(t)
	path, off, err := db.packs.Locate(catalog.AddressOf(v))
	must.Do(t, err)
	for rec, err := range db.packs.Records(bg, catalog.AddressOf(v).Pack, 0) {
		must.Do(t, err)
		if rec.Address == catalog.AddressOf(v) {
			flipByte(t, fs, path, off-int64(rec.Offset-rec.Header)+9)
		}
	}
	r := checkReport(t, db, CheckOptions{Payloads: true})
	if len(r.Problems) != 1 || r.Problems[0].Key != "a/b/c/0/1" || !errors.Is(r.Problems[0], kv.ErrCorrupt) {
		t.Fatalf("found %v", r.Problems)
	}
}

// Packs that are gone or cut are found without reading any.
func TestCheckPacks(t *testing.T) {
	for _, what := range []string{"missing", "truncated", "truncated while open"} {
		t.Run(what, func(t *testing.T) {
			db, fs := damagedHistory(t)
			if what == "truncated while open" {
				writeFile(t, fs, packFiles(t, fs)[0], []byte(readFile(t, fs, packFiles(t, fs)[0])[:20_000]))
				if r := checkReport(t, db, CheckOptions{}); len(r.Problems) == 0 || r.Problems[0].Kind != ProblemPack {
					t.Errorf("found %v", r.Problems)
				}
			}
			must.Do(t, db.Close())
			path := packFiles(t, fs)[0]
			switch what {
			case "missing":
				must.Do(t, fs.Remove(path))
			case "truncated":
				writeFile(t, fs, path, []byte(readFile(t, fs, path)[:20_000]))
			}
			db = must.Get(Open("db", testOptions(fs)))(t)
			defer db.Close()
			r := checkReport(t, db, CheckOptions{})
			kinds := map[string]int{}
			for _, p := range r.Problems {
				kinds[p.Kind]++
			}
			if kinds[ProblemPack] != 1 || kinds[ProblemPayload] == 0 {
				t.Errorf("found %v", kinds)
			}
			if what == "missing" && kinds[ProblemPayload] != 33 {
				t.Errorf("%d payloads are missing, want 33", kinds[ProblemPayload])
			}
			s := must.Get(db.At(bg, "main"))(t)
			defer s.Close()
			lost := 0
			for i := range 30 {
				key := fmt.Sprintf("a/b/c/%d/%d", i/6, i%6)
				if b, err := s.Get(bg, key, kv.All()); errors.Is(err, kv.ErrCorrupt) {
					lost++
				} else if err != nil || len(b) < 900 {
					t.Errorf("read %s: %d bytes, %v", key, len(b), err)
				}
			}
			if lost == 0 {
				t.Error("everything can be read")
			}
			if b, err := s.Get(bg, "a/b/zarr.json", kv.All()); err != nil || string(b) != "array f=c/:/:2" {
				t.Errorf("a small document: %q %v", b, err)
			}
		})
	}
}

// setRecord writes a record past everything that keeps records sound.
func setRecord(t *testing.T, db *DB, space index.Space, key, value []byte) {
	t.Helper()
	b := db.idx.NewBatch()
	defer b.Close()
	if value == nil {
		b.Delete(space, key)
	} else {
		b.Set(space, key, value)
	}
	must.Do(t, b.Commit(true))
}

// chunkPage returns the page that holds a key of the newest version.
func chunkPage(t *testing.T, db *DB, dir string) tree.Name {
	t.Helper()
	head := must.Get(db.Head(bg, "main"))(t)
	c := must.Get(db.Lookup(bg, head))(t)
	root, _, err := db.space.Dir(bg, c.Root, dir)
	must.Do(t, err)
	for e, err := range db.space.Tree.Scan(bg, root, tree.Span{}) {
		must.Do(t, err)
		if _, _, m, err := namespace.ReadEntry(dir, nil, e); err == nil && m != nil && m.Form != nil {
			return e.Value.Child.Name
		}
	}
	t.Fatalf("%s has no chunk map", dir)
	return tree.Name{}
}

// Records and pages of the index that are not what they must be.
func TestCheckIndexDamage(t *testing.T) {
	cases := []struct {
		name, kind string
		damage     func(t *testing.T, db *DB)
		versions   int64
	}{
		{"page changed", care.ProblemPage, func(t *testing.T, db *DB) {
			name := chunkPage(t, db, "a/b/")
			b := must.Get(db.idx.GetPage(bg, name))(t)
			b[len(b)/2] ^= 1
			setRecord(t, db, index.SpacePage, name[:], b)
		}, 1},
		{"page gone", care.ProblemPage, func(t *testing.T, db *DB) {
			name := chunkPage(t, db, "a/b/")
			setRecord(t, db, index.SpacePage, name[:], nil)
		}, 1},
		{"commit gone", care.ProblemCommit, func(t *testing.T, db *DB) {
			id := must.Get(db.Resolve(bg, "main~1"))(t)
			setRecord(t, db, index.SpaceCommit, id[:], nil)
		}, 1},
		{"commit altered", care.ProblemCommit, func(t *testing.T, db *DB) {
			id := must.Get(db.Resolve(bg, "main~1"))(t)
			c := must.Get(db.Lookup(bg, id))(t)
			c.Message = "it was somebody else"
			setRecord(t, db, index.SpaceCommit, id[:], catalog.EncodeCommit(c))
		}, 1},
		{"ref elsewhere", care.ProblemRef, func(t *testing.T, db *DB) {
			id := must.Get(db.Resolve(bg, "main~1"))(t)
			setRecord(t, db, index.SpaceRef, []byte("heads/main"), id[:])
		}, 0},
		{"reflog altered", care.ProblemReflog, func(t *testing.T, db *DB) {
			id := must.Get(db.Resolve(bg, "main~3"))(t)
			b := db.idx.NewBatch()
			defer b.Close()
			catalog.Moves.Put(b, RefMove{Ref: "heads/main", Seq: 1, Old: id, New: id, Op: "commit"})
			must.Do(t, b.Commit(true))
		}, 0},
		{"generation", care.ProblemCommit, func(t *testing.T, db *DB) {
			id := must.Get(db.Head(bg, "main"))(t)
			c := &Commit{Parents: []CommitID{id}, Generation: 1}
			rec := catalog.SealCommit(c)
			setRecord(t, db, index.SpaceCommit, c.ID[:], rec)
			must.Get(db.Reset(bg, "main", c.ID))(t)
		}, 1},
		{"reflog entry", care.ProblemReflog, func(t *testing.T, db *DB) {
			setRecord(t, db, index.SpaceReflog, catalog.MoveKey{Ref: "heads/main", Seq: 1}.Bytes(), []byte{1, 7})
		}, 0},
		{"session", care.ProblemSession, func(t *testing.T, db *DB) {
			setRecord(t, db, index.SpaceSession, make([]byte, 8), []byte{9})
		}, 0},
		{"page of a session", care.ProblemPage, func(t *testing.T, db *DB) {
			s := mustBegin(t, db)
			set(t, s, map[string]string{"session": "1"})
			must.Do(t, s.Detach(bg))
			setRecord(t, db, index.SpacePage, s.work.Name[:], nil)
		}, 0},
		{"pack table", ProblemPack, func(t *testing.T, db *DB) {
			setRecord(t, db, index.SpacePack, make([]byte, 16), []byte{9})
		}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			db, _ := damagedHistory(t)
			c.damage(t, db)
			r := checkReport(t, db, CheckOptions{})
			i := slices.IndexFunc(r.Problems, func(p Problem) bool { return p.Kind == c.kind })
			if i < 0 {
				t.Fatalf("found %v", r.Problems)
			}
			if r.Problems[i].Versions != c.versions {
				t.Errorf("%v: %d versions, want %d", r.Problems[i], r.Problems[i].Versions, c.versions)
			}
		})
	}
}

// A check can be cancelled, and tells how far it is.
func TestCheckProgress(t *testing.T) {
	db, _ := damagedHistory(t)
	var last CheckProgress
	r := checkReport(t, db, CheckOptions{Payloads: true, Progress: func(p CheckProgress) { last = p }})
	if last.Bytes > last.TotalBytes || last.Bytes < r.PayloadBytes {
		t.Errorf("%+v at the end of %+v", last, r)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := db.Check(ctx, CheckOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// What nothing reaches is counted and no problem.
func TestCheckOrphans(t *testing.T) {
	db, _ := damagedHistory(t)
	page := []byte("a page that a session left")
	setRecord(t, db, index.SpacePage, make([]byte, 20), page)
	r := checkReport(t, db, CheckOptions{})
	if r.Found != 0 || r.OrphanPages != 1 || r.OrphanBytes != int64(len(page)) {
		t.Errorf("%+v", r)
	}
}

// rawPages writes pages past everything that keeps directories sound.
type rawPages struct {
	indexPages
	t  *testing.T
	db *DB
}

func (p rawPages) PutPage(_ context.Context, name tree.Name, page []byte) error {
	setRecord(p.t, p.db, index.SpacePage, name[:], page)
	return nil
}

// What a damaged page of a directory leads to is checked where a sound page leads to it.
func TestCheckBelowDamage(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the damaged page is read first
	db := must.Get(Create("db", testOptions(vfs.NewMem())))(t)
	defer db.Close()
	update(t, db, "main", map[string]string{"a/q/doc": "1", "b/q/doc": "1"})
	c := must.Get(db.Lookup(bg, mustHead(t, db)))(t)
	raw := tree.New(rawPages{db.committed(), t, db}, reach.Uncached)
	a, _, err := db.space.Dir(bg, c.Root, "a/")
	must.Do(t, err)
	q, _, err := db.space.Dir(bg, c.Root, "a/q/")
	must.Do(t, err)
	a = must.Get(raw.Apply(bg, a, []tree.Edit{{Key: []byte("z/"), Value: tree.Value{Kind: tree.KindInline}}}))(t)
	root := must.Get(raw.Apply(bg, c.Root, []tree.Edit{{Key: []byte("a/"), Value: tree.Value{Kind: tree.KindChild, Child: a}}}))(t)
	session := &catalog.Session{Branch: "main", Base: c.ID, Work: root}
	setRecord(t, db, index.SpaceSession, session.ID[:], session.Encode())
	setRecord(t, db, index.SpacePage, q.Name[:], []byte("damage"))
	r := checkReport(t, db, CheckOptions{})
	keys := map[string]int64{}
	for _, p := range r.Problems {
		keys[p.Key] = p.Versions
	}
	if want := map[string]int64{"a/": 0, "a/q/": 1, "b/q/": 1}; !maps.Equal(keys, want) || r.Found != 2 {
		t.Errorf("found %v in %d places, want %v", r.Problems, r.Found, want)
	}
}
