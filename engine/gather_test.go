package engine

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/zarr"
)

// origin is a web server that notes what it is asked for.
type origin struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte // by path with a slash
	tag   string
	asked []string
	// before, if not nil, answers a request itself and then returns true. n is
	// how often that path was asked for.
	before func(w http.ResponseWriter, r *http.Request, n int) bool
	counts map[string]int
}

func newOrigin(t testing.TB, files map[string][]byte) *origin {
	o := &origin{files: files, tag: `"1"`, counts: map[string]int{}}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.asked = append(o.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+strings.TrimPrefix(r.Header.Get("Range"), "bytes=")))
	o.counts[r.URL.Path]++
	n := o.counts[r.URL.Path]
	b, ok := o.files[r.URL.Path]
	tag, before := o.tag, o.before
	o.mu.Unlock()
	switch {
	case before != nil && before(w, r, n):
	case !ok:
		http.NotFound(w, r)
	default:
		w.Header().Set("ETag", tag)
		w.Header().Set("X-Goog-Generation", "5")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}
}

// requests returns what was asked for since the last time, sorted.
func (o *origin) requests() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.asked
	o.asked = nil
	slices.Sort(asked)
	return asked
}

// generate serves files that are made when they are read, with their sizes; nil is
// none.
func (o *origin) generate(file func(path string) (io.ReaderAt, int64)) {
	o.before = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		f, size := file(r.URL.Path)
		if f == nil {
			return false
		}
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(f, 0, size))
		return true
	}
}

// endOf is io.EOF if something is left of a buffer.
func endOf(left []byte) error {
	if len(left) > 0 {
		return io.EOF
	}
	return nil
}

// atMost bounds the requests since the last time.
func (o *origin) atMost(t testing.TB, what string, most int) {
	t.Helper()
	if got := o.requests(); len(got) > most {
		t.Errorf("%s: %d requests, want at most %d: %s", what, len(got), most, strings.Join(got, ", "))
	}
}

func (o *origin) want(t testing.TB, what string, want ...string) {
	t.Helper()
	if got := o.requests(); !slices.Equal(got, want) {
		t.Errorf("%s: asked for %q, want %q", what, got, want)
	}
}

// hasty are adapters whose requests do not wait between tries.
func hasty(r remote.Options) *Adapters {
	r.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	a := DefaultAdapters()
	for scheme, root := range source.RemoteRoots(&source.RemoteOptions{Requests: r}) {
		a.ReplaceRoot(scheme, root)
	}
	return a
}

// numbered is n bytes that tell where they are.
func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// tiles is a set with one array t of int8, whose chunks of size elements are the
// given references.
func tiles(size int, codecs string, refs []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{".zgroup":{"zarr_format":2},"t/.zarray":{"zarr_format":2,"shape":[%d],"chunks":[%d],"dtype":"|i1","compressor":%s,"filters":null,"fill_value":-1,"order":"C"}`, size*len(refs), size, codecs)
	for i, r := range refs {
		if r != "" {
			fmt.Fprintf(&b, `,"t/%d":%s`, i, r)
		}
	}
	return b.String() + "}"
}

// linked is a database that links a set to a server.
func linked(t testing.TB, o *origin, set string, opts *Options) *DB {
	t.Helper()
	base := folder(t, map[string]string{"refs.json": strings.ReplaceAll(set, "ORIGIN", o.URL)})
	if opts.Adapters == nil {
		opts.Adapters = hasty(remote.Options{})
	}
	opts.Follow.Allow = append(opts.Follow.Allow, o.URL+"/")
	db := openDB(t, opts)
	src := must.Get(OpenSource(bg, base+"/refs.json", &SourceOptions{Follow: opts.Follow, Adapters: opts.Adapters}))(t)
	defer src.Close()
	must.Get(db.Import(bg, src, ImportOptions{Link: true, Validate: ValidateLocal}))(t)
	return db
}

func readAll(t testing.TB, h hierarchy) []byte {
	t.Helper()
	b := must.Get(values(t, h))(t)
	return b
}

// TestGather counts the requests that reading virtual chunks takes.
func TestGather(t *testing.T) {
	a, b := numbered(4000), numbered(3000)
	var refs []string
	var want []byte
	add := func(path string, data []byte, off, n int) {
		refs = append(refs, fmt.Sprintf(`["ORIGIN/%s",%d,%d]`, path, off, n))
		want = append(want, data[off:off+n]...)
	}
	for i := 39; i >= 0; i-- { // back to front, with gaps of 50
		add("a", a, i*100, 50)
	}
	refs, want = append(refs, ""), append(want, bytes.Repeat([]byte{255}, 50)...)
	for i := range 4 { // far apart, and one twice
		add("b", b, i/2*2500, 50)
	}
	refs, want = append(refs, `["ORIGIN/c"]`, `["ORIGIN/c"]`), append(want, slices.Concat(numbered(50), numbered(50))...)
	o := newOrigin(t, map[string][]byte{"/a": a, "/b": b, "/c": numbered(50)})
	first := []string{"GET /a 0-1949", "GET /a 2000-3949", "GET /b 0-49", "GET /b 2500-2549", "GET /c"}

	opts := memOptions()
	opts.CacheBytes = -1
	opts.Adapters = hasty(remote.Options{Gap: 100, MaxMerged: 2000})
	db := linked(t, o, tiles(50, "null", refs), opts)
	o.want(t, "linking")
	for what, h := range map[string]hierarchy{"snapshot": at(t, db, ""), "set": nil} {
		if h == nil {
			base := folder(t, map[string]string{"refs.json": strings.ReplaceAll(tiles(50, "null", refs), "ORIGIN", o.URL)})
			src := must.Get(OpenSource(bg, base+"/refs.json", &SourceOptions{Follow: opts.Follow, Adapters: opts.Adapters, Workers: 3}))(t)
			defer src.Close()
			must.Get(src.Node(bg))(t)
			at := must.Get(src.dataset(bg))(t)
			h = nodes{at.View, src.open}
		}
		for range 2 {
			if got := readAll(t, h); !bytes.Equal(got, want) {
				t.Errorf("%s: other values", what)
			}
			o.want(t, what, first...)
		}
	}

	// A session reads the same, and what it wrote from itself.
	s := must.Get(db.Begin(bg, ""))(t)
	defer s.Abort()
	must.Do(t, s.Set(bg, "t/0", bytes.Repeat([]byte{9}, 50)))
	copy(want, bytes.Repeat([]byte{9}, 50))
	if got := readAll(t, s); !bytes.Equal(got, want) {
		t.Error("session: other values")
	}
	o.want(t, "session", "GET /a 0-1949", "GET /a 2000-3849", "GET /b 0-49", "GET /b 2500-2549", "GET /c")
}

func zlibbed(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, err := w.Write(b)
	must.Do(t, errors.Join(err, w.Close()))
	return out.Bytes()
}

// TestGatherCached asks for nothing that is decoded already.
func TestGatherCached(t *testing.T) {
	data := numbered(1000)
	var deflated []byte
	var refs []string
	for i := range 10 {
		z := zlibbed(t, data[i*100:(i+1)*100])
		refs = append(refs, fmt.Sprintf(`["ORIGIN/a",%d,%d]`, len(deflated), len(z)))
		deflated = append(deflated, z...)
	}
	o := newOrigin(t, map[string][]byte{"/a": deflated})
	opts := memOptions()
	opts.CacheBytes = 8 << 20
	db := linked(t, o, tiles(100, `{"id":"zlib","level":1}`, refs), opts)
	s := at(t, db, "")
	if !bytes.Equal(readAll(t, s), data) {
		t.Error("other values")
	}
	o.want(t, "first", fmt.Sprintf("GET /a 0-%d", len(deflated)-1))
	db.cache.Wait()
	if !bytes.Equal(readAll(t, s), data) {
		t.Error("other values from the cache")
	}
	o.want(t, "cached")
}

// TestGatherFaults reads right values or fails, whatever the server does.
func TestGatherFaults(t *testing.T) {
	data := numbered(1000)
	var refs []string
	for i := range 100 {
		refs = append(refs, fmt.Sprintf(`["ORIGIN/a",%d,10]`, i*10))
	}
	set := tiles(10, "null", refs)
	part := func(w http.ResponseWriter, r *http.Request) (from, to int) {
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil {
			from, to = 0, len(data)-1
		} else {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)))
		}
		w.Header().Set("ETag", `"1"`)
		return from, to
	}
	for _, test := range []struct {
		name     string
		before   func(w http.ResponseWriter, r *http.Request, n int) bool
		requests int
		err      error // nil: the values are right
	}{
		{name: "nothing", requests: 4},
		{name: "ranges ignored", requests: 4, before: func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			w.Header().Set("ETag", `"1"`)
			_, _ = w.Write(data)
			return true
		}},
		{name: "each request fails once", requests: 8, before: func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n <= 4 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return n <= 4
		}},
		{name: "the connection drops in the middle", requests: 8, before: func(w http.ResponseWriter, r *http.Request, n int) bool {
			if n > 4 {
				return false
			}
			from, to := part(w, r)
			w.Header().Set("Content-Length", strconv.Itoa(to-from+1))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data[from : from+5])
			panic(http.ErrAbortHandler)
		}},
		{name: "half of it", requests: 8, before: func(w http.ResponseWriter, r *http.Request, n int) bool {
			if n > 4 {
				return false
			}
			from, to := part(w, r)
			w.Header().Set("Content-Length", strconv.Itoa(to-from+1))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "short")
			return true
		}},
		{name: "another range", err: remote.ErrAnswer, before: func(w http.ResponseWriter, r *http.Request, _ int) bool {
			from, to := part(w, r)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from+1, to+1, len(data)+1))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data[from : to+1])
			return true
		}},
		{name: "another version each time", err: kv.ErrChanged, before: func(w http.ResponseWriter, r *http.Request, n int) bool {
			w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n))
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
			return true
		}},
		{name: "never there", err: errAny, before: func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}},
		{name: "gone", err: ErrUnreachable, before: func(w http.ResponseWriter, r *http.Request, _ int) bool {
			http.NotFound(w, r)
			return true
		}},
		{name: "shorter", err: ErrUnreachable, before: func(w http.ResponseWriter, r *http.Request, _ int) bool {
			w.Header().Set("ETag", `"1"`)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data[:995]))
			return true
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOrigin(t, map[string][]byte{"/a": data})
			opts := memOptions()
			opts.Adapters = hasty(remote.Options{MaxMerged: 250})
			db := linked(t, o, set, opts)
			o.before = test.before
			b, err := values(t, at(t, db, ""))
			n := len(o.requests())
			switch {
			case test.err == nil && (err != nil || !bytes.Equal(b, data) || n != test.requests):
				t.Errorf("%d requests, %v", n, err)
			case test.err == errAny && err == nil, test.err != nil && test.err != errAny && !errors.Is(err, test.err):
				t.Errorf("%v, want %v", err, test.err)
			case err != nil && errors.Is(err, kv.ErrNotFound):
				t.Errorf("%v would be read as the fill value", err)
			}
		})
	}
}

var errAny = errors.New("any")

// TestGatherRecorded compares the version that was recorded with that in the
// answer of each read, and asks nothing else.
func TestGatherRecorded(t *testing.T) {
	data := numbered(100)
	refs := []string{`["ORIGIN/a",0,10]`, `["ORIGIN/a",10,10]`}
	o := newOrigin(t, map[string][]byte{"/a": data})
	opts := memOptions()
	db := openDB(t, opts)
	opts.Adapters = hasty(remote.Options{})
	base := folder(t, map[string]string{"refs.json": strings.ReplaceAll(tiles(10, "null", refs), "ORIGIN", o.URL)})
	follow := Follow{Allow: []string{o.URL}}
	src := must.Get(OpenSource(bg, base+"/refs.json", &SourceOptions{Follow: follow}))(t)
	defer src.Close()
	must.Get(db.Import(bg, src, ImportOptions{Link: true, Validate: ValidateAll}))(t)
	o.want(t, "linking", "HEAD /a")
	db.env.Follow = follow
	if got := readAll(t, at(t, db, "")); !bytes.Equal(got, data[:20]) {
		t.Error("other values")
	}
	o.want(t, "reading", "GET /a 0-19")
	o.mu.Lock()
	o.tag = `"2"`
	o.mu.Unlock()
	for range 2 {
		if _, err := values(t, at(t, db, "")); !errors.Is(err, kv.ErrChanged) {
			t.Errorf("a changed file: %v", err)
		}
	}
}

// TestGatherStopped ends with its context while a server says nothing.
func TestGatherStopped(t *testing.T) {
	asked := make(chan struct{}, 100)
	o := newOrigin(t, nil)
	db := linked(t, o, tiles(10, "null", []string{`["ORIGIN/a",0,10]`, `["ORIGIN/b",10,10]`}), memOptions())
	o.before = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		asked <- struct{}{}
		<-r.Context().Done()
		return true
	}
	ctx, cancel := context.WithCancel(bg)
	go func() {
		<-asked
		cancel()
	}()
	a := array(t, at(t, db, ""), "t")
	if err := a.ReadBytes(ctx, zarr.Sel(), make([]byte, 20)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestGatherForbidden sends no request for what may not be followed.
func TestGatherForbidden(t *testing.T) {
	inner := newOrigin(t, map[string][]byte{"/a": numbered(10)})
	o := newOrigin(t, map[string][]byte{"/a": numbered(10)})
	db := linked(t, o, tiles(10, "null", []string{`["ORIGIN/a",0,10]`, fmt.Sprintf(`["%s/a",0,10]`, inner.URL)}), memOptions())
	if _, err := values(t, at(t, db, "")); !errors.Is(err, ErrForbidden) {
		t.Error(err)
	}
	inner.want(t, "forbidden")

	// Nor is a redirect to it followed.
	db = linked(t, o, tiles(10, "null", []string{`["ORIGIN/a",0,10]`}), memOptions())
	o.before = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		http.Redirect(w, r, inner.URL+"/a", http.StatusFound)
		return true
	}
	if _, err := values(t, at(t, db, "")); !errors.Is(err, remote.ErrRedirect) || strings.Contains(fmt.Sprint(err), "/a?") {
		t.Error(err)
	}
	inner.want(t, "redirected")
}

// TestGatherRoot reads native chunks of a store on a server: a request each for
// chunks, and for shards one for the index and few for what is in it.
func TestGatherRoot(t *testing.T) {
	mem := kv.NewMem()
	keys := func(prefix string) map[string][]byte {
		files := map[string][]byte{}
		for key, err := range mem.List(bg, kv.ListOptions{}) {
			must.Do(t, err)
			b := must.Get(kv.Get(bg, mem, key))(t)
			files[prefix+key] = b
		}
		return files
	}
	data := numbered(64 * 64)
	plain := must.Get(zarr.Create(bg, mem, "p", zarr.Spec{Shape: []int64{64, 64}, Chunks: []int64{32, 32}, DataType: "uint8", Codecs: []byte(`["bytes","crc32c"]`)}, nil))(t)
	sharded := must.Get(zarr.Create(bg, mem, "s", zarr.Spec{Shape: []int64{64, 64}, Chunks: []int64{8, 8}, Shards: []int64{64, 32}, DataType: "uint8", Codecs: []byte(`["bytes"]`)}, nil))(t)
	raw := must.Get(zarr.Create(bg, mem, "r", zarr.Spec{Shape: []int64{64, 64}, Chunks: []int64{64, 64}, DataType: "uint8", Codecs: []byte(`["bytes"]`)}, nil))(t)
	for _, a := range []*zarr.Array{plain, sharded, raw} {
		must.Do(t, a.WriteBytes(bg, zarr.Sel(), data))
	}
	must.Do(t, mem.Delete(bg, "p/c/1/1"))
	o := newOrigin(t, keys("/z/"))
	size := len(o.files["/z/s/c/0/0"])
	u := must.Get(url.Parse(o.URL))(t)
	src := must.Get(OpenSource(bg, "http://"+u.Host+"/z/", &SourceOptions{Adapters: hasty(remote.Options{Gap: 40, MaxMerged: 1000}), Workers: 2}))(t)
	defer src.Close()
	open := func(path string) *zarr.Array {
		a, err := zarr.OpenArray(bg, src.at.View, "z/"+path, src.open)
		if err != nil {
			a, err = zarr.OpenArray(bg, src.at.Dir(), path, src.open)
		}
		must.Do(t, err)
		return a
	}
	read := func(a *zarr.Array, sel string) []byte {
		t.Helper()
		s := must.Get(zarr.ParseSelection(sel, a.DimensionNames()))(t)
		shape := must.Get(a.Resolve(s))(t)
		n := int64(1)
		for _, k := range shape {
			n *= k
		}
		b := make([]byte, n)
		must.Do(t, a.ReadBytes(bg, s, b))
		return b
	}
	box := func(y0, y1, x0, x1 int) (b []byte) {
		for y := y0; y < y1; y++ {
			b = append(b, data[y*64+x0:y*64+x1]...)
		}
		return b
	}
	p, s, r := open("p"), open("s"), open("r")
	o.requests()
	for _, test := range []struct {
		a    *zarr.Array
		sel  string
		want []byte
		ask  []string
	}{
		{p, "0:32", box(0, 32, 0, 64), []string{"GET /z/p/c/0/0", "GET /z/p/c/0/1"}},
		{p, "40:41,40:41", []byte{0}, []string{"GET /z/p/c/1/1"}},
		{s, ":", data, []string{"GET /z/s/c/0/0", "GET /z/s/c/0/1"}},
		{s, "0:8,0:16", box(0, 8, 0, 16), []string{"GET /z/s/c/0/0 -516", "GET /z/s/c/0/0 0-127"}},
		{s, "0:16,0:8", box(0, 16, 0, 8), []string{"GET /z/s/c/0/0 -516", "GET /z/s/c/0/0 0-63", "GET /z/s/c/0/0 256-319"}},
		{r, "2:4,10:20", box(2, 4, 10, 20), []string{"GET /z/r/c/0/0 138-147", "GET /z/r/c/0/0 202-211"}},
		{r, "2:4,10:30", box(2, 4, 10, 30), []string{"GET /z/r/c/0/0 138-221"}},
	} {
		if got := read(test.a, test.sel); !bytes.Equal(got, test.want) {
			t.Errorf("%s of %s: other values", test.sel, test.a.Path())
		}
		o.want(t, test.sel+" of "+test.a.Path()+fmt.Sprint(" shards of ", size), test.ask...)
	}
}

// TestGatherCopies localises, imports and checks in few requests.
func TestGatherCopies(t *testing.T) {
	data := numbered(2000)
	var refs []string
	for i := range 40 {
		refs = append(refs, fmt.Sprintf(`["ORIGIN/%c",%d,25]`, 'a'+i%2, i*50))
	}
	o := newOrigin(t, map[string][]byte{"/a": data, "/b": data})
	opts := memOptions()
	db := linked(t, o, tiles(25, "null", refs), opts)
	want := readAll(t, at(t, db, ""))
	o.requests()

	s := must.Get(db.Begin(bg, ""))(t)
	defer s.Abort()
	if keys, bytes, err := db.Localize(bg, s, "t", LocalizeOptions{}); err != nil || keys != 40 || bytes != 1000 {
		t.Errorf("%d keys, %d bytes, %v", keys, bytes, err)
	}
	o.want(t, "localize", "GET /a 0-1924", "GET /b 50-1974")
	if got := readAll(t, s); !bytes.Equal(got, want) {
		t.Error("localised: other values")
	}
	o.want(t, "localised")

	// Of a set that is copied, metadata is read too.
	base := folder(t, map[string]string{"refs.json": strings.ReplaceAll(tiles(25, "null", refs), "ORIGIN", o.URL)})
	src := must.Get(OpenSource(bg, base+"/refs.json", &SourceOptions{Follow: Follow{Allow: []string{o.URL}}, Adapters: opts.Adapters}))(t)
	defer src.Close()
	copied := openDB(t, memOptions())
	must.Get(copied.Import(bg, src, ImportOptions{}))(t)
	o.want(t, "import", "GET /a 0-1924", "GET /b 50-1974")
	if got := readAll(t, at(t, copied, "")); !bytes.Equal(got, want) {
		t.Error("imported: other values")
	}

	if found, r := problems(t, src, RefCheckOptions{}); len(found) > 0 || r.Done != 40 {
		t.Errorf("%q, %+v", found, r)
	}
	o.want(t, "check", "HEAD /a", "HEAD /b")
	o.mu.Lock()
	delete(o.files, "/b")
	o.mu.Unlock()
	again := must.Get(OpenSource(bg, base+"/refs.json", &SourceOptions{Follow: Follow{Allow: []string{o.URL}}, Adapters: opts.Adapters}))(t)
	defer again.Close()
	if found, r := problems(t, again, RefCheckOptions{From: 10}); len(found) != 15 || r.Done != 40 {
		t.Errorf("%q, %+v", found, r)
	}
	o.want(t, "check of what is gone", "HEAD /a", "HEAD /b")
}

// TestGatherBounded keeps no more requests under way than it says, of reading and
// of checking many files.
func TestGatherBounded(t *testing.T) {
	files := map[string][]byte{}
	var refs []string
	for i := range 200 {
		files[fmt.Sprintf("/%d", i)] = numbered(10)
		refs = append(refs, fmt.Sprintf(`["ORIGIN/%d",0,5]`, i))
	}
	o := newOrigin(t, files)
	var mu sync.Mutex
	running, most := 0, 0
	o.before = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		defer func() {
			mu.Lock()
			running--
			mu.Unlock()
		}()
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(numbered(10)))
		return true
	}
	db := linked(t, o, tiles(5, "null", refs), memOptions())
	if got := readAll(t, at(t, db, "")); !bytes.Equal(got, bytes.Repeat(numbered(5), 200)) {
		t.Error("other values")
	}
	if n := len(o.requests()); n != 200 || most > virtual.Requests {
		t.Errorf("%d requests, %d at a time", n, most)
	}
	c := refChecker{files: db.files}
	var batch []reference
	for i := range refs {
		batch = append(batch, reference{key: fmt.Sprint(i), src: tree.Source{URL: fmt.Sprintf("%s/%d", o.URL, i)}, offset: 5, length: 6})
	}
	if err := c.check(bg, batch); err != nil || c.report.Problems != 200 || most > virtual.Requests {
		t.Errorf("%+v, %d at a time, %v", c.report, most, err)
	}
}

// TestGatherZip reads a store in an archive on a server in few requests.
func TestGatherZip(t *testing.T) {
	keys := map[string]string{"t/.zarray": `{"zarr_format":2,"shape":[6400],"chunks":[100],"dtype":"|i1","compressor":null,"filters":null,"fill_value":-1,"order":"C"}`}
	data := numbered(6400)
	for i := range 64 {
		keys[fmt.Sprintf("t/%d", i)] = string(data[100*i:][:100])
	}
	o := newOrigin(t, map[string][]byte{"/x.zip": []byte(zipped(t, keys))})
	for _, url := range []string{o.URL + "/x.zip|zip:|zarr2:t", o.URL + "/x.zip|zip:t/"} {
		src := must.Get(OpenSource(bg, url, &SourceOptions{Adapters: hasty(remote.Options{})}))(t)
		defer src.Close()
		n := must.Get(src.Node(bg))(t)
		a, _ := n.Array()
		o.requests()
		got := make([]byte, 6400)
		if err := a.ReadBytes(bg, zarr.Sel(), got); err != nil || !bytes.Equal(got, data) {
			t.Errorf("other values, %v", err)
		}
		if asked := o.requests(); len(asked) != 1 || !strings.HasPrefix(asked[0], "GET /x.zip ") {
			t.Errorf("reading: asked for %q", asked)
		}
		db := openDB(t, nil)
		must.Get(db.Import(bg, src, ImportOptions{}))(t)
		if asked := o.requests(); len(asked) > 3 {
			t.Errorf("importing: asked for %q", asked)
		}
	}
}

// shardOf is the metadata and the only shard of an array of 4 × 4 inner chunks of
// 64 bytes, and its elements.
func shardOf(t *testing.T) (doc, shard, data []byte) {
	t.Helper()
	mem := kv.NewMem()
	data = numbered(32 * 32)
	a, err := zarr.Create(bg, mem, "", zarr.Spec{Shape: []int64{32, 32}, Chunks: []int64{8, 8}, Shards: []int64{32, 32}, DataType: "uint8", Codecs: []byte(`["bytes"]`)}, nil)
	if err == nil {
		err = a.WriteBytes(bg, zarr.Sel(), data)
	}
	must.Do(t, err)
	doc, err1 := kv.Get(bg, mem, "zarr.json")
	shard, err2 := kv.Get(bg, mem, "c/0/0")
	must.Do(t, errors.Join(err1, err2))
	return doc, shard, data
}

// apart reads the inner chunks of a column one by one.
var apart = remote.Options{Gap: 64, MaxMerged: 64}

// shardOnServer is a database with a shard on a server.
func shardOnServer(t *testing.T) (o *origin, db *DB, data []byte) {
	t.Helper()
	doc, shard, data := shardOf(t)
	o = newOrigin(t, map[string][]byte{"/s": append([]byte("head"), shard...)})
	opts := memOptions()
	opts.CacheBytes = -1
	opts.Adapters = hasty(apart)
	set := fmt.Sprintf(`{"zarr.json":{"zarr_format":3,"node_type":"group"},"t/zarr.json":%s,"t/c/0/0":["ORIGIN/s",4,%d]}`, doc, len(shard))
	return o, linked(t, o, set, opts), data
}

// shardColumn reads the second column of inner chunks.
func shardColumn(t *testing.T, a *zarr.Array) ([]byte, error) {
	t.Helper()
	sel := must.Get(zarr.ParseSelection(":,8:16", nil))(t)
	got := make([]byte, 32*8)
	return got, a.ReadBytes(bg, sel, got)
}

func columnOf(data []byte) (b []byte) {
	for y := range 32 {
		b = append(b, data[y*32+8:y*32+16]...)
	}
	return b
}

// allAtOnce answers no request for an inner chunk before all four are there.
func allAtOnce(o *origin) {
	var mu sync.Mutex
	inside, all := 0, make(chan struct{})
	o.before = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		var from, to int
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil || to-from+1 != 64 {
			return false
		}
		mu.Lock()
		if inside++; inside == 4 {
			close(all)
		}
		mu.Unlock()
		select {
		case <-all:
		case <-r.Context().Done():
		}
		return false
	}
}

// TestGatherShard reads inner chunks of a shard on a server at a time: none of
// them comes before all were asked for.
func TestGatherShard(t *testing.T) {
	o, db, data := shardOnServer(t)
	allAtOnce(o)
	got, err := shardColumn(t, array(t, at(t, db, ""), "t"))
	if err != nil || !bytes.Equal(got, columnOf(data)) {
		t.Errorf("other values, %v", err)
	}
	o.want(t, "a column", "GET /s 1028-1287", "GET /s 324-387", "GET /s 580-643", "GET /s 68-131", "GET /s 836-899")
}

// TestGatherShardSources does so whatever is between the shard and the server.
func TestGatherShardSources(t *testing.T) {
	doc, shard, data := shardOf(t)
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for name, b := range map[string][]byte{"t/zarr.json": doc, "t/c/0/0": shard} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = f.Write(b)
		}
		must.Do(t, err)
	}
	must.Do(t, w.Close())
	files := map[string][]byte{
		"/z/t/zarr.json": doc, "/z/t/c/0/0": shard, "/s": append([]byte("head"), shard...),
		"/x.zip": archive.Bytes(), "/padded": append([]byte("head"), archive.Bytes()...),
	}
	set := fmt.Sprintf(`{"zarr.json":{"zarr_format":3,"node_type":"group"},"t/zarr.json":%s,"t/c/0/0":["ORIGIN/s",4,%d]}`, doc, len(shard))
	for _, url := range []string{
		"ORIGIN/z/t", "ORIGIN/x.zip|zip:t/", fmt.Sprintf("ORIGIN/padded|byte-range:4-%d|zip:t/", 4+archive.Len()), "SET|kerchunk:t",
	} {
		o := newOrigin(t, files)
		if strings.HasPrefix(url, "SET") {
			base := folder(t, map[string]string{"refs.json": strings.ReplaceAll(set, "ORIGIN", o.URL)})
			url = strings.Replace(url, "SET", base+"/refs.json", 1)
		}
		src := must.Get(OpenSource(bg, strings.Replace(url, "ORIGIN", o.URL, 1), &SourceOptions{Adapters: hasty(apart), Follow: Follow{Allow: []string{o.URL + "/"}}}))(t)
		defer src.Close()
		n := must.Get(src.Node(bg))(t)
		a, _ := n.Array()
		allAtOnce(o)
		if got, err := shardColumn(t, a); err != nil || !bytes.Equal(got, columnOf(data)) {
			t.Errorf("%s: other values, %v", url, err)
		}
	}
}
