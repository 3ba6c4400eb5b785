package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/icechunk"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/refs"
)

// conditional is a repository of Icechunk with one virtual chunk that states the version
// of its file.
type conditional struct {
	name, dir, url string
	put            func(changed bool) // writes the file as the chunk wants it, or another one
	follow         Follow
	adapters       *Adapters
}

const conditionalDoc = `{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"uint8","fill_value":0,` +
	`"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},"chunk_key_encoding":{"name":"default"},` +
	`"codecs":[{"name":"bytes"}],"attributes":{}}`

func conditionalRepositories(t *testing.T) (list []*conditional) {
	t.Helper()
	add := func(name, url, condition string, put func(bool), adapters *Adapters) {
		put(false)
		dir := t.TempDir()
		files := must.Get(dirkv.Open(dir, nil))(t)
		defer files.Close()
		w := must.Get(icechunk.Create(t.Context(), files))(t)
		changes := func(yield func(formats.Change, error) bool) {
			_ = yield(formats.Change{Entry: refs.Entry{Key: "a/zarr.json", Reference: refs.Reference{Data: []byte(conditionalDoc)}}}, nil) &&
				yield(formats.Change{Entry: refs.Entry{Key: "zarr.json", Reference: refs.Reference{Data: []byte(`{"zarr_format":3,"node_type":"group"}`)}}}, nil) &&
				yield(formats.Change{Entry: refs.Entry{Key: "a/c/0", Reference: refs.Reference{URL: url, Offset: 1, Length: 4, Condition: condition}}}, nil)
		}
		id, err := w.Commit(t.Context(), formats.Version{ID: "x", Time: time.Unix(5, 0)}, iter.Seq2[formats.Change, error](changes))
		if err == nil {
			err = w.Finish(t.Context(), []formats.Name{{Name: "main", ID: id}})
		}
		must.Do(t, err)
		root := url[:strings.LastIndexByte(url, '/')+1]
		list = append(list, &conditional{name, dir, "file://" + dir + "/|icechunk:", put, Follow{Allow: []string{root, "file://" + dir}}, adapters})
	}
	text := map[bool]string{false: "0abcd5", true: "0ABCD5"}
	name := filepath.Join(t.TempDir(), "blob")
	n := int64(1_700_000_000)
	local := func(changed bool) {
		at := time.Unix(n, 0)
		if changed {
			at = time.Unix(n+1, 0)
		}
		must.Do(t, errors.Join(os.WriteFile(name, []byte(text[changed]), 0o666), os.Chtimes(name, time.Time{}, at)))
	}
	local(false)
	folder := must.Get(dirkv.Open(filepath.Dir(name), nil))(t)
	defer folder.Close()
	v := must.Get(folder.Locate(t.Context(), "blob"))(t)
	add("local tag", "file://"+name, kv.IfMatch(kv.StampOf(v).ETag), local, nil)
	add("local time", "file://"+name, kv.IfUnmodifiedSince(time.Unix(n, 0)), local, nil)
	o := newOrigin(t, nil)
	o.before = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		w.Header().Set("Last-Modified", time.Unix(n, 0).UTC().Format(http.TimeFormat))
		if o.tag != `"1"` {
			w.Header().Set("Last-Modified", time.Unix(n+1, 0).UTC().Format(http.TimeFormat))
		}
		return false
	}
	server := func(changed bool) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.tag, o.files = `"1"`, map[string][]byte{"/blob": []byte(text[changed])}
		if changed {
			o.tag = `"2"`
		}
	}
	add("server tag", o.URL+"/blob", kv.IfMatch("1"), server, hasty(remote.Options{}))
	add("server time", o.URL+"/blob", kv.IfUnmodifiedSince(time.Unix(n, 0)), server, hasty(remote.Options{}))
	return list
}

func (c *conditional) open(t *testing.T, url string) *Source {
	t.Helper()
	src := must.Get(OpenSource(t.Context(), url, &SourceOptions{Follow: c.follow, Adapters: c.adapters}))(t)
	t.Cleanup(func() { src.Close() })
	return src
}

// inPlace reads the chunk of the repository at a URL in both ways.
func (c *conditional) inPlace(t *testing.T, url string) (string, error) {
	t.Helper()
	view := must.Get(c.open(t, url).Store())(t)
	b, err := kv.Get(t.Context(), view, "a/c/0")
	gathered := ""
	err2 := kv.Gather(t.Context(), view, []kv.Want{{Key: "a/c/0", Range: kv.All()}}, kv.Gathering{
		Take: func(ctx context.Context, _ int, v kv.Value) error {
			b, err := kv.ReadValue(ctx, v, kv.All())
			gathered = string(b)
			return err
		},
	})
	if (err == nil) != (err2 == nil) || err == nil && string(b) != gathered {
		t.Errorf("%s: read %q, %v; gathered %q, %v", c.name, b, err, gathered, err2)
	}
	return string(b), err
}

func (c *conditional) db(t *testing.T) *DB {
	t.Helper()
	opts := memOptions()
	opts.Adapters, opts.Follow = c.adapters, c.follow
	return openDB(t, opts)
}

// chunk reads the chunk out of a database.
func chunkOf(t *testing.T, db *DB) (string, error) {
	t.Helper()
	head := must.Get(db.Head(bg, "main"))(t)
	snap := must.Get(db.Snapshot(t.Context(), head))(t)
	defer snap.Close()
	b, err := kv.Get(t.Context(), snap, "a/c/0")
	return string(b), err
}

// TestConditions reads virtual chunks of Icechunk that state the version of their file,
// in place, imported and linked, with and without history, and exported again.
func TestConditions(t *testing.T) {
	for _, c := range conditionalRepositories(t) {
		t.Run(c.name, func(t *testing.T) {
			want := func(what, got string, err error) {
				t.Helper()
				if err != nil || got != "abcd" {
					t.Errorf("%s: %q, %v", what, got, err)
				}
			}
			changed := func(what, got string, err error) {
				t.Helper()
				if !errors.Is(err, kv.ErrChanged) {
					t.Errorf("%s of a changed file: %q, %v", what, got, err)
				}
			}
			c.put(false)
			got, err := c.inPlace(t, c.url)
			want("in place", got, err)
			type link struct {
				history bool
				db      *DB
				export  string
			}
			var links []link
			for _, history := range []bool{false, true} {
				db, copied := c.db(t), c.db(t)
				if history {
					_, err = db.ImportHistory(t.Context(), c.open(t, c.url), HistoryOptions{Link: true})
					if err == nil {
						_, err = copied.ImportHistory(t.Context(), c.open(t, c.url), HistoryOptions{})
					}
				} else {
					_, err = db.Import(t.Context(), c.open(t, c.url), ImportOptions{Link: true})
					if err == nil {
						_, err = copied.Import(t.Context(), c.open(t, c.url), ImportOptions{})
					}
				}
				must.Do(t, err)
				got, err = chunkOf(t, copied)
				want(fmt.Sprint("copied ", history), got, err)
				got, err = chunkOf(t, db)
				want(fmt.Sprint("linked ", history), got, err)
				export := exportIcechunk(t, db, history)
				url := "file://" + export + "/|icechunk:"
				got, err = c.inPlace(t, url)
				want(fmt.Sprint("exported ", history), got, err)
				links = append(links, link{history, db, url})
			}
			c.put(true)
			got, err = c.inPlace(t, c.url)
			changed("reading", got, err)
			for _, l := range links {
				got, err = chunkOf(t, l.db)
				changed(fmt.Sprint("the link ", l.history), got, err)
				got, err = c.inPlace(t, l.export)
				changed(fmt.Sprint("the export ", l.history), got, err)
			}
			problems := 0
			_, err = c.open(t, c.url).CheckReferences(t.Context(), RefCheckOptions{Problem: func(p RefProblem) error {
				if problems++; !errors.Is(p.Err, kv.ErrChanged) {
					t.Errorf("check: %v", p.Err)
				}
				return nil
			}})
			if err != nil || problems != 1 {
				t.Errorf("check: %d problems, %v", problems, err)
			}
			_, err = c.db(t).Import(t.Context(), c.open(t, c.url), ImportOptions{})
			changed("import", "", err)
			_, err = c.db(t).ImportHistory(t.Context(), c.open(t, c.url), HistoryOptions{})
			changed("import of the history", "", err)
			_, err = c.db(t).Import(t.Context(), c.open(t, c.url), ImportOptions{Link: true, Validate: ValidateAll})
			if changed("import with links", "", err); !errors.Is(err, ErrNotHere) {
				t.Errorf("import with links: %v", err)
			}
			db := c.db(t)
			must.Get(db.ImportHistory(t.Context(), c.open(t, c.url), HistoryOptions{Link: true, Validate: ValidateNone}))(t)
			got, err = chunkOf(t, db)
			changed("a link that was not asked for", got, err)
			c.put(false)
			got, err = chunkOf(t, db)
			want("changed back", got, err)
		})
	}
}
