package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/icechunk"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
)

// exportIcechunk exports a database and returns the folder.
func exportIcechunk(t *testing.T, db *DB, history bool) string {
	t.Helper()
	src := sourceOf(t, db)
	dest := filepath.Join(t.TempDir(), "repo")
	o := ExportOptions{Foreign: ForeignOptions{Format: "icechunk", History: history}}
	must.Get(Export(t.Context(), src, dest, o))(t)
	if _, err := Export(t.Context(), src, dest, o); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto what is there: %v", err)
	}
	o.Overwrite = true
	if _, err := Export(t.Context(), src, dest, o); err != nil {
		t.Errorf("over what is there: %v", err)
	}
	return dest
}

// sourceOf opens the branch main of a database that is open.
func sourceOf(t *testing.T, db *DB) *Source {
	t.Helper()
	src := must.Get(OpenDatabaseSource(t.Context(), db.Dir(), "main", "", "", &SourceOptions{Open: func(_ context.Context, _ string, o *Options) (*DB, error) { return db.Handle(o) }}))(t)
	t.Cleanup(func() { src.Close() })
	return src
}

// sums hashes every value of a version of a repository.
func sums(t *testing.T, url string, follow Follow) map[string]string {
	t.Helper()
	src := must.Get(OpenSource(t.Context(), url, &SourceOptions{Follow: follow}))(t)
	defer src.Close()
	view := must.Get(src.Store())(t)
	got := map[string]string{}
	for key, err := range view.List(t.Context(), kv.ListOptions{}) {
		must.Do(t, err)
		b := must.Get(kv.Get(t.Context(), view, key))(t)
		sum := sha256.Sum256(b)
		got[key] = hex.EncodeToString(sum[:])
	}
	return got
}

func TestExportIcechunkHistory(t *testing.T) {
	for _, name := range []string{"v1", "v2"} {
		for _, link := range []bool{false, true} {
			g := historyOf(t, name)
			db := historyDB(t)
			must.Get(db.ImportHistory(t.Context(), g.open(t), HistoryOptions{Link: link}))(t)
			dest := exportIcechunk(t, db, true)
			follow := g.follow
			follow.Allow = []string{strings.TrimSuffix(g.url, "|icechunk:")}
			for ref, id := range g.Names {
				if got := sums(t, "file://"+dest+"/|icechunk:@"+ref+"/", follow); !maps.Equal(got, g.Versions[id].Keys) {
					t.Errorf("%s: %s holds %v, want %v", name, ref, got, g.Versions[id].Keys)
				}
			}
			store := must.Get(dirkv.Open(dest, &dirkv.Options{ReadOnly: true}))(t)
			defer store.Close()
			if virtual := countVirtual(t, store); (virtual > 0) != link {
				t.Errorf("%s: %d virtual chunks with link %v", name, virtual, link)
			}
			// There and back again.
			back := historyDB(t)
			src := must.Get(OpenSource(t.Context(), "file://"+dest+"/|icechunk:", &SourceOptions{Follow: follow}))(t)
			defer src.Close()
			must.Get(back.ImportHistory(t.Context(), src, HistoryOptions{}))(t)
			branches, _, err := db.Refs(bg)
			must.Do(t, err)
			for _, ref := range branches {
				head := must.Get(back.Head(bg, ref.Name))(t)
				a := must.Get(db.store.Lookup(t.Context(), ref.Commit))(t)
				b, err := back.store.Lookup(t.Context(), head)
				if err != nil || a.Message != b.Message || !a.Time.Equal(b.Time) || a.Author != b.Author || a.Generation != b.Generation-1 {
					t.Errorf("%s: %+v came back as %+v, %v", ref.Name, a, b, err)
				}
			}
		}
	}
}

func countVirtual(t *testing.T, files kv.Reader) (n int) {
	t.Helper()
	s := must.Get(icechunk.Open(t.Context(), files, ""))(t)
	for e, err := range s.Entries(t.Context()) {
		must.Do(t, err)
		if strings.Contains(e.URL, "://") {
			n++
		}
	}
	return n
}

// TestExportIcechunkMerge writes a merge, and one version alone.
func TestExportIcechunkMerge(t *testing.T) {
	db := openDB(t, &Options{Create: true})
	commit := func(branch, key string) *Commit {
		t.Helper()
		s, err := db.Begin(t.Context(), branch)
		if err == nil {
			err = s.Set(t.Context(), key+"zarr.json", []byte(`{"zarr_format":3,"node_type":"group"}`))
		}
		must.Do(t, err)
		c := must.Get(s.Commit(t.Context(), CommitOptions{Message: key, Properties: map[string]string{"k": "v"}}))(t)
		return c
	}
	base := commit("main", "")
	must.Do(t, db.store.CreateBranch(t.Context(), "b/c", base.ID))
	other := commit("b/c", "x/")
	commit("main", "y/")
	must.Get(db.store.Merge(t.Context(), "main", other.ID, CommitOptions{Message: "merge"}))(t)
	dest := exportIcechunk(t, db, true)
	if got := sums(t, "file://"+dest+"/|icechunk:", Follow{}); len(got) != 3 {
		t.Errorf("the merge holds %v", got)
	}
	if got := sums(t, "file://"+dest+"/|icechunk:@branch.b_c/", Follow{}); len(got) != 2 {
		t.Errorf("the branch holds %v", got)
	}
	dest = exportIcechunk(t, db, false)
	if got := sums(t, "file://"+dest+"/|icechunk:", Follow{}); len(got) != 3 {
		t.Errorf("one version holds %v", got)
	}
	s, err := db.Begin(t.Context(), "main")
	if err == nil {
		err = s.Set(t.Context(), "notes.txt", []byte("text"))
	}
	must.Do(t, err)
	must.Get(s.Commit(t.Context(), CommitOptions{}))(t)
	src := sourceOf(t, db)
	dest = filepath.Join(t.TempDir(), "repo")
	if _, err := Export(t.Context(), src, dest, ExportOptions{Foreign: ForeignOptions{Format: "icechunk", History: true}}); !errors.Is(err, formats.ErrUnsupported) || !errors.Is(err, ErrConvert) {
		t.Errorf("a key that Icechunk has no place for: %v", err)
	}
	if _, err := os.Stat(dest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
}
