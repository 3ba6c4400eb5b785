package modeltest

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

// store is what an export wrote: a directory, a zip archive, a store in memory or
// a reference set.
type store struct {
	url  string
	tree tree
	refs bool // it refers to packs
}

const mostStores = 6

func (r *run) openStore(s *store) *engine.Source {
	src, err := engine.OpenSource(bg, s.url, &engine.SourceOptions{Follow: engine.Follow{Allow: []string{filepath.ToSlash(r.dir)}}})
	r.must(err, "open "+s.url)
	return src
}

func (r *run) compareStore(s *store) {
	src := r.openStore(s)
	defer src.Close()
	view, err := src.Store()
	r.must(err, "keys of "+s.url)
	r.must(compareTree(bg, s.tree, zarr.Walk(bg, view, "", nil)), "export to "+s.url)
}

// stepExport exports a version, or a group of it, and reads the result.
func stepExport(r *run) {
	d := r.database()
	v := one(r, r.usable(d))
	if v.tree[""] == nil {
		return
	}
	top := one(r, v.tree.groups())
	s := &store{tree: v.tree.below(top)}
	old := slices.DeleteFunc(slices.Clone(r.stores), func(s *store) bool { return s.refs })
	over := len(old) > 0 && r.chance(3)
	switch kind := r.rng.IntN(4); {
	case over: // the older export is gone then
		s.url = one(r, old).url
		r.stores = slices.DeleteFunc(r.stores, func(o *store) bool { return o.url == s.url })
	case kind == 0:
		s.url = r.file("store.zarr")
	case kind == 1:
		s.url = r.file("store.zip") + "|zip:"
	case kind == 2:
		s.url = fmt.Sprintf("memory:modeltest-%d-%d/", r.seed, memories.Add(1))
	case kind == 3:
		s.url, s.refs = r.file("set.json")+"|kerchunk:", true
	}
	dest, _, _ := strings.Cut(s.url, "|")
	r.note("%s: export /%s of %s to %s, overwrite %v", d.name, top, v.name, dest, over)
	r.closed(d, func() {
		src, err := engine.OpenDatabaseSource(bg, d.dir, v.id.String(), "", top, &engine.SourceOptions{
			CacheBytes: one(r, []int64{0, 1 << 20}), Follow: engine.Follow{Allow: []string{filepath.ToSlash(r.dir)}}})
		r.must(err, "open the database as a source")
		if r.chance(2) { // a read before
			for _, err := range src.Members(bg, "") {
				r.must(err, "members")
			}
		}
		if s.refs {
			_, err = engine.ExportReferences(bg, src, dest, engine.ExportReferencesOptions{Version: r.rng.IntN(2)})
		} else {
			_, err = engine.Export(bg, src, dest, engine.ExportOptions{Workers: 1 + r.rng.IntN(3), Overwrite: over || r.chance(3)})
		}
		r.must(err, "export")
		r.must(src.Close(), "close the source")
	})
	r.compareStore(s)
	if r.stores = append(r.stores, s); len(r.stores) > mostStores {
		r.stores = r.stores[1:]
	}
}

// stepImport imports a store into a branch.
func stepImport(r *run) {
	if len(r.stores) == 0 {
		return
	}
	s := one(r, r.stores)
	d := r.database()
	branch := one(r, d.branches())
	head := r.head(d, branch)
	o := engine.ImportOptions{To: fmt.Sprint("i", r.rng.IntN(3)), Branch: branch, Overwrite: r.chance(2), Link: s.refs && r.chance(2)}
	r.note("import %s to /%s of %s, branch %s, overwrite %v, link %v", s.url, o.To, d.name, branch, o.Overwrite, o.Link)
	src := r.openStore(s)
	defer src.Close()
	res, err := d.db.Import(bg, src, o)
	if head.tree[o.To] != nil && !o.Overwrite {
		r.expect(err, "import", zarr.ErrExists)
		return
	}
	r.must(err, "import")
	after := maps.Clone(head.tree)
	after.remove(o.To)
	imported := r.copies(s.tree)
	for p, n := range imported { // an array at the place of another is that one, changed
		n.linked = o.Link
		if old := head.tree[joined(o.To, p)]; old != nil && old.array != nil && n.array != nil {
			n.id, n.linked = old.id, o.Link || old.linked
		}
	}
	after.put(o.To, imported)
	r.replayed(d, branch, res.Commit, after, true)
	if r.chance(2) {
		o.Overwrite = true
		again, err := d.db.Import(bg, src, o)
		if r.must(err, "import again"); again.Commit.ID != res.Commit.ID {
			r.fail("a second import of %s made a commit", s.url)
		}
	}
}

// stepLocalize copies the values of references into the database.
func stepLocalize(r *run) {
	d, s := r.session()
	if s.work[""] == nil {
		return
	}
	p := one(r, s.work.paths())
	r.note("localize /%s", p)
	_, _, err := d.db.Localize(bg, s.s, p, engine.LocalizeOptions{})
	r.must(err, "localize")
	for at, n := range s.work {
		if n.linked && inside(at, p) {
			s.work[at] = n.withArray(n.array) // another node now, as if written
		}
	}
	r.compareSession(s)
}
