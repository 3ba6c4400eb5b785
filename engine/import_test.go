package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Every store that other software wrote comes in with its keys and bytes, and
// reads as it must.
func TestImportStoresOfOthers(t *testing.T) {
	for _, area := range []string{"v1", "v2", "v3", "early-v3"} {
		db := openDB(t, nil)
		arrays, unknown := 0, 0
		for _, f := range fixtures(t, area) {
			if f.Kind != "array" && f.Kind != "hierarchy" {
				continue
			}
			o := ImportOptions{To: "s/" + strings.ReplaceAll(f.name, "/", "_"), Message: f.name}
			if area == "early-v3" { // its keys begin at the root
				o.To, o.Overwrite = "", true
			}
			src := openURL(t, memoryURL(t, f.store))
			res, err := db.Import(bg, src, o)
			if errors.Is(err, codecs.ErrUnknown) {
				unknown++
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", f.name, err)
				continue
			}
			if res.Keys != int64(len(f.store)) || res.Commit == nil || res.Commit.Message != f.name {
				t.Errorf("%s: result %+v for %d keys", f.name, res, len(f.store))
			}
			s := at(t, db, "")
			sameContents(t, contents(t, kv.SubLister(s, names.Dir(o.To))), f.store)
			for _, n := range f.arrays() {
				arrays++
				path := names.Clean(names.Dir(o.To) + names.Clean(n.Path))
				if sum := sumOf(t, array(t, s, path)); n.SHA != "" && sum != n.SHA && sum != n.OtherSHA {
					t.Errorf("%s: other values", f.name)
				}
			}
		}
		t.Logf("%s: %d arrays; %d stores have codecs that are not known", area, arrays, unknown)
		if arrays == 0 {
			t.Errorf("%s: nothing was imported", area)
		}
	}
}

// Nodes of another format below a node come along. If a node is in two formats and the
// URL names one, documents of the other stay behind.
func TestImportMixedFormats(t *testing.T) {
	const v2, v3 = `{"zarr_format":2}`, `{"zarr_format":3,"node_type":"group"}`
	below := map[string]string{".zgroup": v2, "a/.zgroup": v2, "b/zarr.json": v3, "README": "hello"}
	both := map[string]string{".zgroup": v2, "zarr.json": v3, "a/.zgroup": v2, "b/zarr.json": v3}
	for i, c := range []struct {
		store map[string]string
		step  string
		left  []string
	}{
		{below, "", nil},
		{below, "|zarr2:", nil},
		{map[string]string{"zarr.json": v3, "a/.zgroup": v2, "b/zarr.json": v3}, "", nil},
		{both, "|zarr2:", []string{"zarr.json", "b/zarr.json"}},
		{both, "|zarr3:", []string{".zgroup", "a/.zgroup"}},
		{both, "|zarr:", nil},
	} {
		db, want := openDB(t, nil), maps.Clone(c.store)
		for _, key := range c.left {
			delete(want, key)
		}
		must.Get(db.Import(bg, openURL(t, memoryURL(t, c.store)+c.step), ImportOptions{}))(t)
		sameContents(t, contents(t, at(t, db, "")), want)
		dest := t.TempDir() + "/out"
		must.Get(Export(bg, openURL(t, memoryURL(t, c.store)+c.step), dest, ExportOptions{}))(t)
		out := must.Get(dirkv.Open(dest, nil))(t)
		if got := contents(t, out); !maps.Equal(got, want) {
			t.Errorf("%d: exported %v, want %v", i, got, want)
		}
	}
	if _, err := openDB(t, nil).Import(bg, openURL(t, memoryURL(t, both)), ImportOptions{}); !errors.Is(err, ErrFormat) {
		t.Errorf("without a format: %v", err)
	}
}

// An array of v3 below a group of v2 is a member of it, and is converted with it. Of a
// node in both formats, a URL that names one has the members of that one.
func TestConvertMixedFormats(t *testing.T) {
	const v2, v3 = `{"zarr_format":2}`, `{"zarr_format":3,"node_type":"group"}`
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(4, 2)) })
	array := contents(t, at(t, db, ""))["x/zarr.json"]
	below := map[string]string{".zgroup": v2, "a/.zgroup": v2, "b/zarr.json": array, "b/c/0": "\x01\x02"}
	both := maps.Clone(below)
	both["zarr.json"] = v3
	for _, c := range []struct {
		store map[string]string
		step  string
		want  []string
	}{
		{below, "", []string{"a", "b"}},
		{below, "|zarr2:", []string{"a", "b"}},
		{both, "|zarr2:", []string{"a"}},
		{both, "|zarr3:", []string{"b"}},
	} {
		src := openURL(t, memoryURL(t, c.store)+c.step)
		var got []string
		for m, err := range src.Members(bg, "") {
			must.Do(t, err)
			if m.Node != nil {
				got = append(got, m.Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: members %q, want %q", c.step, got, c.want)
		}
		dest := t.TempDir() + "/out"
		must.Get(Export(bg, src, dest, ExportOptions{Format: zarr.V3}))(t)
		for _, name := range c.want {
			if _, err := os.Stat(dest + "/" + name + "/zarr.json"); err != nil {
				t.Errorf("%s: %s was not converted: %v", c.step, name, err)
			}
		}
	}
}

// Whatever cannot be opened is refused by naming node and document, and the
// database stays as it was.
func TestImportRefusesMalformedMetadata(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(4, 2)) })
	before := head(t, db, "")
	for _, area := range []string{"v1", "v2", "v3"} {
		n := 0
		for _, f := range fixtures(t, area) {
			if f.Kind != "invalid" || f.Lenient || f.Operation != "" || f.Stage == "read" || f.Path != "" && f.Path != "/" {
				continue
			}
			n++
			for _, scheme := range []string{"", "|zarr:"} {
				src := openURL(t, memoryURL(t, f.store)+scheme)
				if sv, err := src.Survey(bg); err == nil && len(sv.Unreadable) > 0 {
					continue // see TestUnreadableArraysAreCopied
				}
				_, err := db.Import(bg, src, ImportOptions{To: "y"})
				var e *zarr.Error
				switch {
				case err == nil:
					t.Errorf("%s (%s): imported", f.name, f.Error)
				case errors.Is(err, ErrFormat): // nothing there looks like metadata
				case !errors.As(err, &e) && !errors.Is(err, zarr.ErrNotFound):
					t.Errorf("%s: the error names no node: %v", f.name, err)
				}
			}
			unchanged(t, db, before)
		}
		if n == 0 {
			t.Errorf("%s: no cases", area)
		}
	}
	// A node deep inside counts too.
	src := openURL(t, memoryURL(t, map[string]string{
		"zarr.json":       `{"zarr_format":3,"node_type":"group"}`,
		"g/zarr.json":     `{"zarr_format":3,"node_type":"group"}`,
		"g/bad/zarr.json": `{"zarr_format":3,"node_type":"group","attributes":[]}`,
	}))
	_, err := db.Import(bg, src, ImportOptions{To: "y"})
	if err == nil || !strings.Contains(err.Error(), "open g/bad: zarr.json") || !strings.Contains(err.Error(), "attributes") {
		t.Errorf("error %v", err)
	}
	unchanged(t, db, before)
}

// Damaged chunks are copied as they are: reading them is the error.
func TestImportDamagedStores(t *testing.T) {
	db := openDB(t, nil)
	for _, f := range fixtures(t, "corrupt") {
		before := head(t, db, "")
		to := strings.ReplaceAll(f.name, "/", "_")
		_, err := db.Import(bg, openURL(t, memoryURL(t, f.store)+"|zarr:"), ImportOptions{To: to})
		if err != nil {
			unchanged(t, db, before)
			continue
		}
		sameContents(t, contents(t, kv.SubLister(at(t, db, ""), to)), f.store)
	}
}

// unchanged makes sure that an operation that failed left nothing.
func unchanged(t *testing.T, db *DB, before txn.CommitID) {
	t.Helper()
	if head(t, db, "") != before {
		t.Error("the head moved")
	}
	if list, err := db.Sessions(bg); err != nil || len(list) > 0 {
		t.Errorf("sessions %v are left, %v", list, err)
	}
}

// smallStore is a hierarchy with arrays of both layouts of chunk keys.
func smallStore(t testing.TB) map[string]string {
	t.Helper()
	db := openDB(t, nil)
	commit(t, db, "", "", func(s *Session) error {
		if err := create(s, "a", zarr.Spec{Shape: []int64{9, 7}, Chunks: []int64{2, 3}, DataType: "int32"}); err != nil {
			return err
		}
		return create(s, "g/b", zarr.Spec{Shape: []int64{300}, Chunks: []int64{100}, DataType: "int32", Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`)})
	})
	keys := contents(t, at(t, db, ""))
	keys["g/readme.txt"] = "not Zarr, but part of the store"
	return keys
}

func TestImportFromDirectoryZipAndDatabase(t *testing.T) {
	keys := smallStore(t)
	folder := t.TempDir()
	store := must.Get(dirkv.Create(folder+"/odd @ name:1.zarr", nil))(t)
	for k, v := range keys {
		must.Do(t, store.Set(bg, k, []byte(v)))
	}
	must.Do(t, store.Close())
	must.Do(t, os.WriteFile(folder+"/s.zip", []byte(zipped(t, keys)), 0o666))
	inner := maps.Clone(keys)
	for k, v := range keys {
		inner["deep/"+k] = v
	}
	must.Do(t, os.WriteFile(folder+"/outer.zip", []byte(zipped(t, map[string]string{"in/s.zip": zipped(t, inner)})), 0o666))
	other := openAt(t, folder+"/o.zdb", &Options{Create: true})
	for _, url := range []string{
		folder + "/odd @ name:1.zarr",
		"file://" + folder + "/odd%20@%20name:1.zarr/",
		"file://" + folder + "/odd%20%40%20name%3A1.zarr/|zarr3:",
		folder + "/s.zip",
		"file://" + folder + "/s.zip|zip:",
		"file://" + folder + "/outer.zip|zip:in/s.zip|zip:deep/",
		"file://" + folder + "/outer.zip|zip:in/s.zip|zip:|zarr3:deep",
		"file://" + folder + "/o.zdb/|zarrdb:y",
		"file://" + folder + "/o.zdb",
	} {
		db := openDB(t, nil)
		src := openURL(t, url)
		res, err := db.Import(bg, src, ImportOptions{To: "new/place", Message: "m", Author: "me"})
		if err := src.Close(); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if res.Commit.Author != "me" || res.Nodes < 4 {
			t.Errorf("%s: result %+v", url, res)
		}
		s := at(t, db, "")
		got := contents(t, kv.SubLister(s, "new/place"))
		if strings.HasSuffix(url, "o.zdb") { // the whole database, with the store at y
			got = contents(t, kv.SubLister(s, "new/place/y"))
		}
		sameContents(t, got, keys)
		if _, err := s.Group(bg, "new"); err != nil {
			t.Errorf("%s: no group above: %v", url, err)
		}
		if url == folder+"/odd @ name:1.zarr" { // then from a database
			must.Get(other.Import(bg, openURL(t, url), ImportOptions{To: "y"}))(t)
			closeChecked(t, other)
		}
	}
}

func TestImportDestinations(t *testing.T) {
	keys := smallStore(t)
	url := memoryURL(t, keys)
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(4, 2)) })
	must.Do(t, db.store.CreateBranch(bg, "side", head(t, db, "")))
	for _, c := range []struct {
		o    ImportOptions
		want error
	}{
		{ImportOptions{}, zarr.ErrExists},
		{ImportOptions{To: "x"}, zarr.ErrExists},
		{ImportOptions{To: "/x/"}, zarr.ErrExists},
		{ImportOptions{To: "x/y"}, zarr.ErrKind},
		{ImportOptions{To: "a//b"}, zarr.ErrPath},
		{ImportOptions{To: "../y"}, zarr.ErrPath},
		{ImportOptions{To: "__y"}, zarr.ErrPath},
		{ImportOptions{To: "y", Branch: "nope"}, txn.ErrNoRef},
		{ImportOptions{To: "y", Session: &txn.SessionID{1}}, txn.ErrNoRef},
	} {
		before := head(t, db, "")
		if _, err := db.Import(bg, openURL(t, url), c.o); !errors.Is(err, c.want) {
			t.Errorf("%+v: error %v, want %v", c.o, err, c.want)
		}
		unchanged(t, db, before)
	}
	must.Get(db.Import(bg, openURL(t, url), ImportOptions{To: "y", Branch: "side"}))(t)
	if _, err := at(t, db, "").Group(bg, "y"); !errors.Is(err, zarr.ErrNotFound) {
		t.Errorf("on the other branch: %v", err)
	}
	if _, err := at(t, db, "side").Array(bg, "y/g/b"); err != nil {
		t.Error(err)
	}
	// In place of what is there; one commit takes away and puts.
	must.Get(db.Import(bg, openURL(t, url), ImportOptions{To: "x", Overwrite: true}))(t)
	sameContents(t, contents(t, kv.SubLister(at(t, db, ""), "x")), keys)
	must.Get(db.Import(bg, openURL(t, url), ImportOptions{Overwrite: true}))(t)
	sameContents(t, contents(t, at(t, db, "")), keys)
}

func TestImportIntoSession(t *testing.T) {
	keys := smallStore(t)
	url := memoryURL(t, keys)
	db := openDB(t, nil)
	s := must.Get(db.Begin(bg, ""))(t)
	id := s.ID()
	must.Do(t, create(s, "x", line(4, 2)))
	must.Do(t, s.Detach(bg))
	before := head(t, db, "")
	res, err := db.Import(bg, openURL(t, url), ImportOptions{To: "y", Session: &id})
	if err != nil || res.Commit != nil {
		t.Fatalf("result %+v, %v", res, err)
	}
	for _, bad := range []ImportOptions{{To: "y", Session: &id}, {To: "z", Session: &id, Branch: "side"}} {
		if _, err := db.Import(bg, openURL(t, url), bad); err == nil {
			t.Errorf("%+v went through", bad)
		}
	}
	if head(t, db, "") != before {
		t.Error("the head moved")
	}
	if s, err = db.Resume(bg, id); err != nil { // it was let go
		t.Fatal(err)
	}
	sameContents(t, contents(t, kv.SubLister(s, "y")), keys)
	must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
	wantInts(t, at(t, db, ""), "x", 0, 1, 2, 3)
}

// hooked opens a source whose view calls before ahead of every operation.
func hooked(t *testing.T, url string, before func(op kvtest.Op, key string) error) *Source {
	t.Helper()
	src := openURL(t, url)
	src.at.View = kvtest.Hook(src.at.View, before)
	return src
}

// An import that is stopped at any operation leaves the branch as it was, and
// goes on to the same version.
func TestImportStoppedAnywhereCanBeResumed(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	keys := smallStore(t)
	url := memoryURL(t, keys)
	whole := openDB(t, nil)
	res := must.Get(whole.Import(bg, openURL(t, url), ImportOptions{To: "y"}))(t)
	// Arrays get a random identity, so roots are equal only by what they hold.
	want := contents(t, at(t, whole, ""))

	stopped, resumable := 0, 0
	for k := int64(0); ; k++ {
		db := openDB(t, nil)
		before := head(t, db, "")
		ctx, cancel := context.WithCancel(bg)
		var n atomic.Int64
		src := hooked(t, url, func(kvtest.Op, string) error {
			if n.Add(1) > k {
				cancel()
			}
			return nil
		})
		_, err := db.Import(ctx, src, ImportOptions{To: "y"})
		if err == nil {
			cancel()
			break
		}
		cancel()
		stopped++
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at operation %d: %v", k, err)
		}
		if head(t, db, "") != before {
			t.Fatalf("stopped at operation %d: the head moved", k)
		}
		list, err2 := db.Sessions(bg)
		if err2 != nil || len(list) > 1 || (len(list) == 1) != errors.Is(err, ErrResumable) {
			t.Fatalf("stopped at operation %d: sessions %v, error %v, %v", k, list, err, err2)
		}
		resumable += len(list)
		again, err := db.Import(bg, openURL(t, url), ImportOptions{To: "y", Resume: true})
		if err != nil {
			t.Fatalf("resumed after %d operations: %v", k, err)
		}
		if again.Keys != res.Keys || again.Bytes != res.Bytes {
			t.Errorf("resumed after %d operations: result %+v, want %+v", k, again, res)
		}
		sameContents(t, contents(t, at(t, db, "")), want)
		unchanged(t, db, again.Commit.ID)
	}
	t.Logf("stopped %d times, %d of them resumed a session", stopped, resumable)
	if stopped < len(keys) || resumable == 0 || resumable == stopped {
		t.Error("that is not what was to be tested")
	}
}

// Resuming stores again only what is missing or has changed.
func TestImportResumesWithoutStoringAgain(t *testing.T) {
	keys := map[string]string{"zarr.json": arrayV3(`[10,10]`, `[40,50]`)}
	for i := range 100 {
		keys[fmt.Sprintf("c/%d/%d", i/10, i%10)] = strings.Repeat(string(rune('a'+i%26)), 2000)
	}
	url := memoryURL(t, keys)
	opts := memOptions()
	opts.Workers = 4 // whatever they have under way is not stored
	db := openDB(t, opts)
	ctx, cancel := context.WithCancel(bg)
	var n atomic.Int64
	src := hooked(t, url, func(op kvtest.Op, key string) error {
		if op == kvtest.OpView && strings.HasPrefix(key, "c/") && n.Add(1) == 60 {
			cancel()
		}
		return nil
	})
	if _, err := db.Import(ctx, src, ImportOptions{}); !errors.Is(err, ErrResumable) {
		t.Fatal(err)
	}
	before := db.DiskUse().PackBytes
	// A chunk of the source changes meanwhile, without changing its size.
	changed := strings.Repeat("#", 2000)
	for k := range keys {
		if strings.HasPrefix(k, "c/") {
			keys[k] = changed
			must.Do(t, openURL(t, url).at.View.(*kv.Mem).Set(bg, k, []byte(changed)))
			break
		}
	}
	must.Get(db.Import(bg, openURL(t, url), ImportOptions{Resume: true}))(t)
	sameContents(t, contents(t, at(t, db, "")), keys)
	if grown := db.DiskUse().PackBytes - before; grown > 50*2100 {
		t.Errorf("resuming added %d bytes", grown)
	}
}

// A resumed import takes up only a session of the same source, place and branch.
func TestImportResumesItsOwn(t *testing.T) {
	keys := smallStore(t)
	url := memoryURL(t, keys)
	db := openDB(t, nil)
	must.Do(t, db.store.CreateBranch(bg, "side", head(t, db, "")))
	stop := func(o ImportOptions) {
		t.Helper()
		ctx, cancel := context.WithCancel(bg)
		src := hooked(t, url, func(op kvtest.Op, key string) error {
			if op == kvtest.OpView && key == "a/c/1/1" {
				cancel()
			}
			return nil
		})
		if _, err := db.Import(ctx, src, o); !errors.Is(err, ErrResumable) {
			t.Fatal(err)
		}
	}
	stop(ImportOptions{To: "y", Branch: "side"})
	stop(ImportOptions{To: "z"})
	sessions := func() int {
		list := must.Get(db.Sessions(bg))(t)
		return len(list)
	}
	for _, c := range []struct {
		o    ImportOptions
		left int
	}{
		{ImportOptions{To: "y", Resume: true}, 2},
		{ImportOptions{To: "w", Resume: true}, 2},
		{ImportOptions{To: "z", Resume: true, Branch: "main"}, 1},
		{ImportOptions{To: "y", Resume: true, Branch: "side"}, 0},
	} {
		if _, err := db.Import(bg, openURL(t, url), c.o); err != nil {
			t.Fatalf("%+v: %v", c.o, err)
		}
		if n := sessions(); n != c.left {
			t.Errorf("%+v: %d sessions are left, want %d", c.o, n, c.left)
		}
	}
}

// A view that fails at any operation fails the import with that failure.
func TestImportFailsWithItsSource(t *testing.T) {
	keys := smallStore(t)
	url := memoryURL(t, keys)
	boom := errors.New("boom")
	for k := int64(0); ; k++ {
		db := openDB(t, nil)
		before := head(t, db, "")
		src := openURL(t, url)
		var done atomic.Int64
		src.at.View = kvtest.Hook(src.at.View, func(kvtest.Op, string) error {
			if done.Add(1)-1 == k {
				return boom
			}
			return nil
		})
		_, err := db.Import(bg, src, ImportOptions{})
		if err == nil {
			break
		}
		if !errors.Is(err, boom) {
			t.Fatalf("operation %d: %v", k, err)
		}
		unchanged(t, db, before)
	}
}

func TestImportReportsProgress(t *testing.T) {
	keys := map[string]string{"zarr.json": arrayV3(`[10,10]`, `[4000,5]`)}
	for i := range 1000 {
		keys[fmt.Sprintf("c/%d/0", i)] = strings.Repeat("x", 80)
	}
	var last Progress
	db := openDB(t, nil)
	_, err := db.Import(bg, openURL(t, memoryURL(t, keys)), ImportOptions{Progress: func(p Progress) {
		if p.Keys < last.Keys || p.Bytes < last.Bytes || p.TotalKeys != 1001 {
			t.Errorf("progress %+v after %+v", p, last)
		}
		last = p
	}})
	if err != nil || last.Keys < 256 {
		t.Errorf("last progress %+v, %v", last, err)
	}
}
