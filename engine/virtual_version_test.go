package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/zarr"
)

// changing is a file that is another one after each put.
type changing struct {
	name string
	url  string
	put  func(b []byte)
}

// changingFiles are one of this machine and one of a server, both with one
// content, and a database that follows references to them.
func changingFiles(t *testing.T, b []byte) ([]changing, *DB) {
	t.Helper()
	dir := folder(t, nil)
	o := newOrigin(t, nil)
	n := int64(0)
	local := changing{name: "file", url: "file://" + dir + "/a", put: func(b []byte) {
		n++
		must.Do(t, errors.Join(os.WriteFile(dir+"/a", b, 0o666), os.Chtimes(dir+"/a", time.Time{}, time.Unix(n, 0))))
	}}
	server := changing{name: "server", url: o.URL + "/a", put: func(b []byte) {
		o.mu.Lock()
		defer o.mu.Unlock()
		n++
		o.tag, o.files = fmt.Sprintf(`"%d"`, n), map[string][]byte{"/a": b}
	}}
	local.put(b)
	server.put(b)
	opts := memOptions()
	opts.Adapters, opts.Follow = hasty(remote.Options{}), Follow{Allow: []string{"file://" + dir, o.URL}}
	return []changing{local, server}, openDB(t, opts)
}

// TestVirtualKeepsItsVersion changes files between two readings of one value of
// which no version was recorded. What knows nothing yet may read the new one;
// what knows the old one's identity, length or bytes may not.
func TestVirtualKeepsItsVersion(t *testing.T) {
	files, db := changingFiles(t, []byte("abcdefgh"))
	for _, f := range files {
		t.Run(f.name, func(t *testing.T) {
			src := tree.Source{URL: f.url}
			locate := func(src tree.Source, off, n uint64) kv.Value {
				t.Helper()
				f.put([]byte("abcdefgh"))
				// A file of a server stays found: what is stale is found out.
				if v, err := db.files.Locate(bg, src, off, n); err == nil {
					_, _ = kv.ReadValue(bg, v, kv.All())
				}
				v := must.Get(db.files.Locate(bg, src, off, n))(t)
				return v
			}
			changed := func(what string, v kv.Value, rng kv.Range) {
				t.Helper()
				if b, err := kv.ReadValue(bg, v, rng); !errors.Is(err, kv.ErrChanged) {
					t.Errorf("%s: %q, %v", what, b, err)
				}
				err := kv.ViewRanges(bg, v, []kv.Range{rng}, func(_ int, b []byte) error {
					t.Errorf("%s: %q", what, b)
					return nil
				})
				if !errors.Is(err, kv.ErrChanged) {
					t.Errorf("%s, by ranges: %v", what, err)
				}
				// Who looks again sees what is there now.
				again, err := db.files.Locate(bg, src, 2, 4)
				if err == nil {
					var b []byte
					if b, err = kv.ReadValue(bg, again, kv.All()); string(b) != "CDEF" {
						t.Errorf("%s: located again: %q", what, b)
					}
				}
				if err != nil {
					t.Errorf("%s: located again: %v", what, err)
				}
			}
			next := []byte("ABCDEFGH")

			v := locate(src, 2, 4)
			f.put(next)
			if b, err := kv.ReadValue(bg, v, kv.Span(0, 2)); err != nil || string(b) != "CD" {
				t.Errorf("nothing known: %q, %v", b, err)
			}
			now, err := db.files.Locate(bg, src, 2, 4)
			if err != nil || now.ID() == (kv.ID{}) || now.ID() != v.ID() {
				t.Errorf("its identity is %x, now %x, %v", v.ID(), now.ID(), err)
			}
			f.put([]byte("12CDEF78"))
			changed("changed again", v, kv.Span(2, 2))

			v = locate(src, 2, 4)
			f.put(next)
			err = kv.ViewRanges(bg, v, []kv.Range{kv.Span(0, 1), kv.Span(2, 2)}, func(i int, b []byte) error {
				if string(b) != []string{"C", "EF"}[i] {
					t.Errorf("nothing known: range %d is %q", i, b)
				}
				return nil
			})
			if err != nil {
				t.Errorf("nothing known, by ranges: %v", err)
			}

			v = locate(src, 2, 4)
			v.ID()
			f.put(next)
			changed("identity known", v, kv.All())

			v = locate(src, 2, 4)
			if b, err := kv.ReadValue(bg, v, kv.Span(0, 1)); err != nil || string(b) != "c" {
				t.Fatalf("%q, %v", b, err)
			}
			f.put(next)
			changed("bytes known", v, kv.Span(1, 1))

			v = locate(tree.Source{URL: f.url, Whole: true}, 0, 0)
			f.put([]byte("ABCDEFGH and more"))
			changed("length known", v, kv.All())

			v = locate(tree.Source{URL: f.url, Whole: true}, 0, 0)
			f.put(next)
			if b, err := kv.ReadValue(bg, v, kv.All()); err != nil || string(b) != "ABCDEFGH" {
				t.Errorf("of the same length: %q, %v", b, err)
			}
		})
	}
}

// shardWith is a shard of 4 by 4 inner chunks of 8 by 8 bytes, of which one is
// left out.
func shardWith(t *testing.T, data []byte, y, x int) (doc, shard []byte) {
	t.Helper()
	for i := range 8 {
		clear(data[(y*8+i)*32+x*8:][:8])
	}
	mem := kv.NewMem()
	a, err := zarr.Create(bg, mem, "", zarr.Spec{Shape: []int64{32, 32}, Chunks: []int64{8, 8}, Shards: []int64{32, 32}, DataType: "uint8", Codecs: []byte(`["bytes"]`)}, nil)
	if err == nil {
		err = a.WriteBytes(bg, zarr.Sel(), data)
	}
	if err == nil {
		doc, err = kv.Get(bg, mem, "zarr.json")
	}
	if err == nil {
		shard, err = kv.Get(bg, mem, "c/0/0")
	}
	must.Do(t, err)
	return doc, shard
}

// TestShardKeepsItsIndex replaces a shard by one of another layout, whose inner
// chunks the index of the first would cut out of the middle of others: behind the
// index, and when the index is known.
func TestShardKeepsItsIndex(t *testing.T) {
	first, second := numbered(32*32), numbered(32*32)
	for i := range second {
		second[i] ^= 0x80
	}
	doc, one := shardWith(t, first, 0, 0)
	_, other := shardWith(t, second, 3, 3)
	if len(one) != len(other) {
		t.Fatalf("shards of %d and %d bytes", len(one), len(other))
	}
	files, db := changingFiles(t, one)
	for _, f := range files {
		t.Run(f.name, func(t *testing.T) {
			set := fmt.Sprintf(`{"zarr.json":{"zarr_format":3,"node_type":"group"},"t/zarr.json":%s,"t/c/0/0":[%q,0,%d]}`, doc, f.url, len(one))
			set = folder(t, map[string]string{"refs.json": set}) + "/refs.json"
			linkSet(t, db, set, db.opts.Follow, ImportOptions{To: f.name, Validate: ValidateNone})
			a := array(t, at(t, db, ""), f.name+"/t")
			column := func(x int, data []byte) error {
				t.Helper()
				sel := must.Get(zarr.ParseSelection(fmt.Sprintf(":,%d:%d", 8*x, 8*x+8), nil))(t)
				got, want := make([]byte, 32*8), []byte{}
				for y := range 32 {
					want = append(want, data[y*32+8*x:][:8]...)
				}
				if err := a.ReadBytes(bg, sel, got); err != nil {
					return err
				}
				if !bytes.Equal(got, want) {
					return errors.New("other values")
				}
				return nil
			}
			must.Do(t, column(1, first))
			f.put(other)
			if err := column(2, second); err != nil && !errors.Is(err, kv.ErrChanged) {
				t.Error(err)
			}
			for x := range 4 {
				if err := column(x, second); err != nil {
					t.Errorf("column %d of the new one: %v", x, err)
				}
			}
		})
	}
}

// TestLinkRecordsHoweverSpelled records the versions of files of this machine
// whatever their URLs look like, and with mappings to other places beside.
func TestLinkRecordsHoweverSpelled(t *testing.T) {
	for _, spelled := range []string{
		"a", "./a", "x/../a", "BASE/a", "BASE//a", "BASE/./a", "file:BASE/a", "file://BASE/a", "file://localhostBASE/a", "FILE://BASE/a", "local://BASE/a", "file:////BASE/x/../a",
	} {
		for _, maps := range [][]Mapping{nil, {{From: "s3://other", To: "/other"}}} {
			base := folder(t, map[string]string{"a": "abc", "x/y": ""})
			follow := Follow{Allow: []string{base}, Map: maps}
			set := setOf(3, fmt.Sprintf(`,"t/0":[%q,0,1]`, strings.ReplaceAll(spelled, "BASE", base)))
			must.Do(t, os.WriteFile(filepath.Join(base, "refs.json"), []byte(set), 0o666))
			opts := memOptions()
			opts.Follow = follow
			db := openDB(t, opts)
			linkSet(t, db, base+"/refs.json", follow, ImportOptions{})
			if b, err := values(t, at(t, db, "")); err != nil || string(b) != "a\xff\xff" {
				t.Errorf("%s: %q, %v", spelled, b, err)
				continue
			}
			// Of the same size, so that only the time tells.
			must.Do(t, os.Chtimes(base+"/a", time.Time{}, time.Unix(1, 0)))
			if b, err := values(t, at(t, db, "")); !errors.Is(err, kv.ErrChanged) {
				t.Errorf("%s, mapped %v: %q, %v", spelled, maps, b, err)
			}
		}
	}
}

// valuesAt reads the bytes of the array t below a path.
func valuesAt(t *testing.T, db *DB, path string) ([]byte, error) {
	t.Helper()
	a := array(t, at(t, db, ""), path+"/t")
	b := make([]byte, a.Shape()[0])
	return b, a.ReadBytes(bg, zarr.Sel(), b)
}

// TestCachedPartsDiffer reads chunks that have all but one thing in common: the
// URL, or the offset.
func TestCachedPartsDiffer(t *testing.T) {
	files, db := changingFiles(t, []byte("abcdef"))
	for _, f := range files {
		t.Run(f.name, func(t *testing.T) {
			other := f.url[:len(f.url)-1] + "b"
			if path, ok := strings.CutPrefix(other, "file://"); ok {
				at := time.Unix(1, 0)
				must.Do(t, errors.Join(os.WriteFile(path, []byte("ABCDEF"), 0o666), os.Chtimes(path, time.Time{}, at), os.Chtimes(path[:len(path)-1]+"a", time.Time{}, at)))
			} else {
				o := newOrigin(t, map[string][]byte{"/a": []byte("abcdef"), "/b": []byte("ABCDEF")})
				f.url, other = o.URL+"/a", o.URL+"/b"
				opts := memOptions()
				opts.Adapters, opts.Follow = hasty(remote.Options{}), Follow{Allow: []string{o.URL}}
				db = openDB(t, opts)
			}
			set := setOf(6, fmt.Sprintf(`,"t/0":[%q,0,1],"t/1":[%q,0,1],"t/2":[%q,1,1],"t/3":[%q,1,1],"t/4":[%q,5,1]`, f.url, other, f.url, other, f.url))
			linkSet(t, db, folder(t, map[string]string{"refs.json": set})+"/refs.json", db.opts.Follow, ImportOptions{To: f.name, Validate: ValidateAll})
			for range 2 {
				if b, err := valuesAt(t, db, f.name); err != nil || string(b) != "aAbBf\xff" {
					t.Errorf("%q, %v", b, err)
				}
			}
		})
	}
}

// TestBeyondTheFile reads parts that begin, or end, behind the end of a file,
// which no import looked at.
func TestBeyondTheFile(t *testing.T) {
	files, db := changingFiles(t, []byte("abcdef"))
	for _, f := range files {
		for _, part := range []string{"6,1", "7,1", "5,2", "0,7", "9000000000,1", "1,9223372036854775807", "9223372036854775807,1", "7,0"} {
			to := f.name + strings.ReplaceAll(part, ",", "_")
			set := setOf(2, fmt.Sprintf(`,"t/0":[%q,0,1],"t/1":[%q,%s]`, f.url, f.url, part))
			src := openFollow(t, folder(t, map[string]string{"refs.json": set})+"/refs.json", db.opts.Follow)
			_, err := db.Import(bg, src, ImportOptions{Link: true, To: to, Validate: ValidateNone})
			if errors.Is(err, ErrUnreachable) {
				continue // more than any file has
			}
			must.Do(t, err)
			// What has another length than a chunk may be refused for that.
			if b, err := valuesAt(t, db, to); err == nil || strings.HasSuffix(part, ",1") && !errors.Is(err, ErrUnreachable) || errors.Is(err, kv.ErrNotFound) {
				t.Errorf("%s, %s: %q, %v", f.name, part, b, err)
			}
			if b, err := kv.Get(bg, at(t, db, ""), to+"/t/1"); !errors.Is(err, ErrUnreachable) || errors.Is(err, kv.ErrNotFound) {
				t.Errorf("%s, %s: %q, %v", f.name, part, b, err)
			}
		}
	}
}

// TestMovedFiles reads files that were moved and are mapped to where they are: of
// another time, and refused with another size.
func TestMovedFiles(t *testing.T) {
	old := folder(t, map[string]string{"a": "abc", "refs.json": setOf(3, `,"t/0":["a",1,1]`)})
	config := t.TempDir()
	db := openDB(t, linkOptions(t, config))
	linkSet(t, db, old+"/refs.json", Follow{}, ImportOptions{})
	path := db.Dir()
	must.Do(t, db.Close())
	for content, want := range map[string]error{"ABC": nil, "ABCD": kv.ErrChanged, "AB": kv.ErrChanged} {
		moved := folder(t, map[string]string{"a": content})
		must.Do(t, os.Chtimes(moved+"/a", time.Time{}, time.Unix(1, 0)))
		opts := linkOptions(t, config)
		opts.Follow = Follow{Map: []Mapping{{From: old, To: moved}}}
		db := openAt(t, path, opts)
		for _, read := range []func() (string, error){
			func() (string, error) { b, err := values(t, at(t, db, "")); return string(b), err },
			func() (string, error) { b, err := kv.Get(bg, at(t, db, ""), "t/0"); return string(b) + "\xff\xff", err },
		} {
			if b, err := read(); !errors.Is(err, want) || err == nil && b != "B\xff\xff" {
				t.Errorf("%q: %q, %v, want %v", content, b, err, want)
			}
		}
		must.Do(t, db.Close())
	}
}

// TestVirtualFollowsThePath puts another folder in the place of one that
// references lead into, as a rename or a link that is set anew do.
func TestVirtualFollowsThePath(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "data")
	write := func(text string) {
		t.Helper()
		must.Do(t, errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "a"), []byte(text), 0o666)))
	}
	opts := memOptions()
	opts.Follow = Follow{Allow: []string{dir}}
	files := openDB(t, opts).files
	wants := func(want string) {
		t.Helper()
		v, err := files.Locate(bg, tree.Source{URL: "file://" + dir + "/a"}, 0, 3)
		if err != nil {
			t.Fatalf("%v, want %q", err, want)
		}
		if b, err := kv.ReadValue(bg, v, kv.All()); err != nil || string(b) != want {
			t.Errorf("%q, %v; want %q", b, err, want)
		}
	}
	write("old")
	wants("old")
	must.Do(t, os.Rename(dir, dir+".old"))
	write("new")
	wants("new")
	must.Do(t, os.RemoveAll(dir))
	write("now")
	wants("now")
}
