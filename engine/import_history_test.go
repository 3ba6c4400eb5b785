package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
)

// goldenHistory is a repository of formats/icechunk/testdata, and what it holds.
type goldenHistory struct {
	Names    map[string]string
	Versions map[string]struct {
		Parent, Message, Author string
		Micros                  int64
		Keys                    map[string]string
	}
	url    string
	follow Follow
}

func historyOf(t *testing.T, name string) *goldenHistory {
	t.Helper()
	dir := must.Get(filepath.Abs("../formats/icechunk/testdata"))(t)
	b := must.Get(os.ReadFile(filepath.Join(dir, name+".json")))(t)
	g := &goldenHistory{url: "file://" + dir + "/" + name + "/|icechunk:"}
	g.follow.Map = []refs.Mapping{{From: "file:///data/icechunk/virtual/", To: "file://" + dir + "/virtual/"}}
	must.Do(t, json.Unmarshal(b, g))
	return g
}

func (g *goldenHistory) open(t *testing.T) *Source {
	t.Helper()
	src := must.Get(OpenSource(t.Context(), g.url, &SourceOptions{Follow: g.follow}))(t)
	t.Cleanup(func() { src.Close() })
	return src
}

// check compares every version of the database with what the repository holds.
func (g *goldenHistory) check(t *testing.T, db *DB, prefix string) {
	t.Helper()
	names := map[string]string{}
	seen := map[string]bool{}
	add := func(kind string, list []Ref) {
		for _, ref := range list {
			name, ok := strings.CutPrefix(ref.Name, prefix)
			if !ok {
				continue
			}
			c := must.Get(db.store.Lookup(t.Context(), ref.Commit))(t)
			names[kind+name] = c.Properties[propVersion]
			for c, err := range db.store.Log(t.Context(), ref.Commit) {
				must.Do(t, err)
				if id := c.Properties[propVersion]; id != "" && !seen[id] {
					seen[id] = true
					g.version(t, db, id, c)
				}
			}
		}
	}
	branches, tags, err := db.Refs(bg)
	if err != nil {
		t.Fatal(err)
	}
	add("branch.", branches)
	add("tag.", tags)
	if !maps.Equal(names, g.Names) || len(seen) != len(g.Versions) {
		t.Errorf("%d versions with names %v, want %d with %v", len(seen), names, len(g.Versions), g.Names)
	}
}

func (g *goldenHistory) version(t *testing.T, db *DB, id string, c *Commit) {
	t.Helper()
	want := g.Versions[id]
	if c.Message != want.Message || c.Time.UnixMicro() != want.Micros || want.Author != "" && c.Author != want.Author || len(c.Parents) != 1 {
		t.Errorf("%s is %+v", id, c)
	}
	if parent, err := db.store.Lookup(t.Context(), c.Parents[0]); err != nil || parent.Properties[propVersion] != want.Parent {
		t.Errorf("%s has parent %v, %v", id, parent, err)
	}
	snap := must.Get(db.Snapshot(t.Context(), c.ID))(t)
	defer snap.Close()
	got := map[string]string{}
	for key, err := range snap.List(t.Context(), kv.ListOptions{}) {
		must.Do(t, err)
		b := must.Get(kv.Get(t.Context(), snap, key))(t)
		sum := sha256.Sum256(b)
		got[key] = hex.EncodeToString(sum[:])
	}
	if !maps.Equal(got, want.Keys) {
		t.Errorf("%s (%s) holds %v, want %v", id, want.Message, got, want.Keys)
	}
}

func TestImportHistory(t *testing.T) {
	for _, name := range []string{"v1", "v2"} {
		for _, link := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				g := historyOf(t, name)
				db := historyDB(t)
				res, err := db.ImportHistory(t.Context(), g.open(t), HistoryOptions{Link: link})
				must.Do(t, err)
				if int(res.Versions) != len(g.Versions) || res.Known != 0 || res.NotGranted != nil {
					t.Errorf("%+v", res)
				}
				g.check(t, db, "")
				if res, err = db.ImportHistory(t.Context(), g.open(t), HistoryOptions{Link: link}); err != nil || res.Versions != 0 || int(res.Known) != len(g.Versions) {
					t.Errorf("again: %+v, %v", res, err)
				}
				must.Get(db.ImportHistory(t.Context(), g.open(t), HistoryOptions{Link: link, Prefix: "other/"}))(t)
				g.check(t, db, "other/")
			})
		}
	}
}

// Names that cannot be here become others, however often the import runs.
func TestImportHistoryNames(t *testing.T) {
	g := historyOf(t, "v1")
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS("../formats/icechunk/testdata/v1")))
	for from, to := range map[string][]string{"branch.side": {"branch.to side", "branch.to_side", "branch.-x"}, "tag.v1": {"tag.at 10:30"}} {
		for _, name := range to {
			copyRef(t, dir, from, name)
		}
	}
	g.url = "file://" + dir + "/|icechunk:"
	db := historyDB(t)
	for range 2 {
		res := must.Get(db.ImportHistory(t.Context(), g.open(t), HistoryOptions{}))(t)
		renamed := map[string]string{}
		for n, name := range res.Renamed {
			renamed[n.Name] = name
			if n.Tag != slices.Contains(res.Tags, name) || n.Tag == slices.Contains(res.Branches, name) {
				t.Errorf("%+v is called %q, and there are branches %q and tags %q", n, name, res.Branches, res.Tags)
			}
		}
		if want := map[string]string{"to side": "to_side_", "-x": "_x", "at 10:30": "at_10_30"}; !maps.Equal(renamed, want) {
			t.Errorf("%q", renamed)
		}
	}
}

// A tag of the name of a branch gets another name, since the branch would hide it.
func TestImportHistoryTagLikeBranch(t *testing.T) {
	g := historyOf(t, "v1")
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS("../formats/icechunk/testdata/v1")))
	copyRef(t, dir, "tag.v1", "tag.side")
	copyRef(t, dir, "tag.v1", "tag.main")
	g.url = "file://" + dir + "/|icechunk:"
	db := historyDB(t)
	check := func(res *HistoryResult, err error) {
		t.Helper()
		must.Do(t, err)
		for _, tag := range []string{"side_", "main_"} {
			if !slices.Contains(res.Tags, tag) {
				t.Errorf("tags %q", res.Tags)
			}
			got, err := db.Resolve(t.Context(), tag)
			if want, _ := db.Resolve(t.Context(), "v1"); err != nil || got != want {
				t.Errorf("%s is %v (%v), want %v", tag, got, err, want)
			}
		}
	}
	for range 2 {
		check(db.ImportHistory(t.Context(), g.open(t), HistoryOptions{}))
	}
	// An earlier version has made a tag that a branch hides: it is no obstacle.
	at := must.Get(db.Resolve(t.Context(), "v1"))(t)
	must.Do(t, db.store.CreateTag(t.Context(), "side", at))
	check(db.ImportHistory(t.Context(), g.open(t), HistoryOptions{}))
	// Names of a user are in nobody's way.
	for name, make := range map[string]func(db *DB, at txn.CommitID) error{
		"branch": func(db *DB, at txn.CommitID) error { return db.store.CreateBranch(t.Context(), "v1", at) },
		"tag":    func(db *DB, at txn.CommitID) error { return db.store.CreateTag(t.Context(), "side", at) },
	} {
		db := historyDB(t)
		at := must.Get(db.Head(bg, "main"))(t)
		must.Do(t, make(db, at))
		if _, err := db.ImportHistory(t.Context(), g.open(t), HistoryOptions{}); !errors.Is(err, txn.ErrRefExists) || !strings.Contains(err.Error(), "hide") {
			t.Errorf("a %s of a user: %v", name, err)
		}
		if branches, tags, err := db.Refs(bg); err != nil || len(branches)+len(tags) != 2 {
			t.Errorf("a %s of a user: the refused import made others: %v, %v, %v", name, branches, tags, err)
		}
	}
}

// copyRef makes a branch or tag of a repository of version 1 like another.
func copyRef(t *testing.T, dir, from, to string) {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(dir, "refs", from, "ref.json")))(t)
	must.Do(t, os.Mkdir(filepath.Join(dir, "refs", to), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, "refs", to, "ref.json"), b, 0o600))
}

// A tag whose versions are on no branch is made with a branch that no other branch, here
// or in the source, can be like, however long its name is.
func TestImportHistoryTagWithoutBranch(t *testing.T) {
	for _, tag := range []string{"rel", strings.Repeat("r", 248)} {
		g := historyOf(t, "v1")
		dir := t.TempDir()
		must.Do(t, os.CopyFS(dir, os.DirFS("../formats/icechunk/testdata/v1")))
		copyRef(t, dir, "branch.side", "tag."+tag)
		copyRef(t, dir, "tag.v1", "branch.rel.importing")
		must.Do(t, os.RemoveAll(filepath.Join(dir, "refs", "branch.side")))
		g.url = "file://" + dir + "/|icechunk:"
		db := historyDB(t)
		first := must.Get(db.Head(bg, "main"))(t)
		if err := db.store.CreateBranch(t.Context(), tag[:2], first); err != nil { // of a user, who is to keep it
			t.Fatal(err)
		}
		res := must.Get(db.ImportHistory(t.Context(), g.open(t), HistoryOptions{}))(t)
		if !slices.Contains(res.Tags, tag) || !slices.Contains(res.Branches, "rel.importing") {
			t.Errorf("branches %q, tags %q", res.Branches, res.Tags)
		}
		var branches []string
		refs, _, err := db.Refs(bg)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range refs {
			branches = append(branches, b.Name)
		}
		if want := append([]string{tag[:2]}, res.Branches...); !sameNames(branches, want) {
			t.Errorf("branches %q, want %q", branches, want)
		}
	}
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// An import does not touch a branch with commits of a user, whatever it is called.
func TestImportHistoryKeepsBranches(t *testing.T) {
	g := historyOf(t, "v1")
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS("../formats/icechunk/testdata/v1")))
	copyRef(t, dir, "branch.side", "tag.rel")
	must.Do(t, os.RemoveAll(filepath.Join(dir, "refs", "branch.side")))
	g.url = "file://" + dir + "/|icechunk:"
	db := historyDB(t)
	other := historyDB(t)
	must.Get(other.ImportHistory(t.Context(), g.open(t), HistoryOptions{}))(t)
	head, err := other.Head(bg, "main")
	must.Do(t, err)
	c := must.Get(other.store.Lookup(t.Context(), head))(t)
	h := &historian{source: c.Properties[propSource]}
	scratch := h.scratch(SourceName{Name: "rel", Tag: true})
	heads := map[string]txn.CommitID{}
	for _, name := range []string{"rel.importing", scratch} {
		first := must.Get(db.Head(bg, "main"))(t)
		must.Do(t, db.store.CreateBranch(t.Context(), name, first))
		s := must.Get(db.Begin(t.Context(), name))(t)
		must.Do(t, s.Set(t.Context(), "zarr.json", []byte(`{"zarr_format":3,"node_type":"group"}`)))
		c := must.Get(s.Commit(t.Context(), CommitOptions{Message: "mine"}))(t)
		heads[name] = c.ID
	}
	_, err = db.ImportHistory(t.Context(), g.open(t), HistoryOptions{})
	if !errors.Is(err, txn.ErrRefExists) || !strings.Contains(err.Error(), scratch) {
		t.Errorf("%v; want one that names %s", err, scratch)
	}
	for name, want := range heads {
		if got, err := db.Head(bg, name); got != want || err != nil {
			t.Errorf("%s is at %v (%v), was at %v", name, got, err, want)
		}
	}
	must.Do(t, db.DeleteBranch(bg, scratch))
	if _, err := db.ImportHistory(t.Context(), g.open(t), HistoryOptions{}); err != nil {
		t.Error(err)
	}
	if got, err := db.Head(bg, "rel.importing"); got != heads["rel.importing"] || err != nil {
		t.Errorf("rel.importing is at %v (%v)", got, err)
	}
}

// historyDB is a database that remembers what may be followed in a folder of the test.
func historyDB(t *testing.T) *DB {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	return openDB(t, &Options{Create: true})
}

// TestImportHistoryStopped stops after each version, and goes on.
func TestImportHistoryStopped(t *testing.T) {
	g := historyOf(t, "v2")
	db := historyDB(t)
	for round := 0; ; round++ {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		res, err := db.ImportHistory(ctx, g.open(t), HistoryOptions{Progress: func(p Progress) {
			if n++; n == 1 {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			if int(res.Known) < round || round < 2 {
				t.Errorf("after %d rounds: %+v", round, res)
			}
			break
		}
		if !errors.Is(err, context.Canceled) || round > len(g.Versions)+2 {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	g.check(t, db, "")
}

func TestImportHistoryKeepsOthers(t *testing.T) {
	g := historyOf(t, "v1")
	db := historyDB(t)
	s := must.Get(db.Begin(t.Context(), "main"))(t)
	must.Do(t, s.Set(t.Context(), "zarr.json", []byte(`{"zarr_format":3,"node_type":"group"}`)))
	c := must.Get(s.Commit(t.Context(), CommitOptions{Message: "mine"}))(t)
	if _, err := db.ImportHistory(t.Context(), g.open(t), HistoryOptions{}); !errors.Is(err, txn.ErrRefExists) {
		t.Errorf("onto another branch: %v", err)
	}
	if branches, _, err := db.Refs(bg); err != nil || len(branches) != 1 || branches[0].Commit != c.ID {
		t.Errorf("something was written: %v, %v", branches, err)
	}
	must.Get(db.ImportHistory(t.Context(), g.open(t), HistoryOptions{Prefix: "ic/"}))(t)
	g.check(t, db, "ic/")
}

func TestImportHistoryNeedsVersions(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "refs.json"), []byte(`{".zgroup":"{\"zarr_format\":2}"}`), 0o600))
	src := must.Get(OpenSource(t.Context(), "file://"+dir+"/refs.json|kerchunk:", nil))(t)
	defer src.Close()
	if _, err := historyDB(t).ImportHistory(t.Context(), src, HistoryOptions{}); !errors.Is(err, ErrFormat) {
		t.Errorf("a set without versions: %v", err)
	}
}
