package depot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/s3kv"
)

var bg = context.Background()

// stores are a store of each kind, empty.
func stores(t *testing.T) map[string]kv.Store {
	backend := s3mem.New()
	must.Do(t, backend.CreateBucket("bucket"))
	srv := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(srv.Close)
	bucket := must.Get(s3kv.Open("bucket", &s3kv.Options{Endpoint: srv.URL, Anonymous: true}))(t)
	dir := must.Get(dirkv.Open(t.TempDir(), &dirkv.Options{NoSync: true}))(t)
	t.Cleanup(func() { dir.Close() })
	return map[string]kv.Store{"memory": kv.NewMem(), "directory": dir, "bucket": kv.Sub(bucket, "db").(kv.Store)}
}

func seq[T any](list ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// change is one of a few bytes, that moves a ref.
func change(t *testing.T, p *Push, ref string, old ID, text string) (Change, ID) {
	t.Helper()
	record := []byte("commit " + text)
	from := uint64(len(text)) * 1000
	s := must.Get(p.Segment([]Range{{[16]byte{1}, from, from + uint64(len(text)), strings.NewReader(text)}}))(t)
	return Change{
		Pages: seq(Page{[]byte("page " + text), true}), Commits: seq(Commit{record, false}, Commit{[]byte("bare " + text), true}), Segments: []*Segment{s},
		Moves: [][]byte{[]byte("move " + text)}, Refs: []RefChange{{ref, old, NameOf(record)}},
	}, NameOf(record)
}

// push publishes [change].
func push(t *testing.T, d *Depot, ref string, old ID, text string) ID {
	t.Helper()
	p := d.Begin()
	c, id := change(t, p, ref, old, text)
	must.Do(t, p.Publish(bg, c))
	return id
}

// wantPush reads what push published.
func wantPush(t *testing.T, d *Depot, text string) {
	t.Helper()
	page, commit := []byte("page "+text), []byte("commit "+text)
	from := uint64(len(text)) * 1000
	pages, err := d.Pages(bg, []ID{NameOf(page)})
	commits, err2 := d.Commits(bg, []ID{NameOf([]byte("bare " + text)), NameOf(commit)})
	parts, err3 := d.Payloads(bg, []Part{{[16]byte{1}, from + 1, from + uint64(len(text))}})
	has, err4 := d.HasCommits(bg, []ID{NameOf([]byte("bare " + text)), NameOf(commit), {}})
	if err := errors.Join(err, err2, err3, err4); err != nil || !bytes.Equal(pages[0], page) || !bytes.Equal(commits[1], commit) || string(parts[0]) != text[1:] || !slices.Equal(has, []bool{false, true, false}) {
		t.Errorf("%q: %q, %q, %q, %v, %v", text, pages, commits, parts, has, err)
	}
}

// TestPushAndRead makes a depot in a store of each kind, pushes, merges and reads.
func TestPushAndRead(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			if d, err := Open(bg, store, nil); d != nil || !errors.Is(err, ErrNone) {
				t.Errorf("open of nothing: %v", err)
			}
			small := &Options{small: 300}
			d := must.Get(Create(bg, store, small))(t)
			if _, err := Create(bg, store, nil); !errors.Is(err, ErrExists) {
				t.Errorf("create again: %v", err)
			}
			other := must.Get(Open(bg, store, &Options{Cache: kv.NewMem(), small: 300}))(t)
			want := map[string]ID{}
			for i := range 40 {
				text := strings.Repeat("x", i+2)
				ref := fmt.Sprintf("heads/%d", i%3)
				want[ref] = push(t, d, ref, want[ref], text)
				must.Get(d.Merge(bg, nil))(t)
				if i%4 == 3 {
					must.Do(t, other.Refresh(bg))
					wantPush(t, other, text)
				}
			}
			fresh := must.Get(Open(bg, store, small))(t)
			for i := range 40 {
				wantPush(t, d, strings.Repeat("x", i+2))
				wantPush(t, fresh, strings.Repeat("x", i+2))
			}
			m := fresh.Manifest()
			if !maps.Equal(m.Refs, want) || len(m.Bundles) > 14 {
				t.Errorf("%v in %d bundles", m.Refs, len(m.Bundles))
			}
			moves := ""
			for i := range m.Bundles {
				b := must.Get(fresh.Bundle(bg, &m.Bundles[i]))(t)
				moves += string(bytes.Join(b.Moves(), []byte("\n"))) + "\n"
			}
			if n := strings.Count(moves, "\n"); n != 40 || !strings.HasPrefix(moves, "move "+strings.Repeat("x", 41)+"\n") {
				t.Errorf("%d moves: %s", n, moves)
			}
			if _, err := fresh.Pages(bg, []ID{{1}}); !errors.Is(err, ErrLeft) {
				t.Errorf("a page that is not there: %v", err)
			}
		})
	}
}

// counted counts requests by kind. While cut is set, it answers conditional writes by that.
type counted struct {
	kv.Store
	mu   sync.Mutex
	n    map[string]int
	down error  // of reads of the manifest and of Set
	mark string // what tags end in
	cut  func(apply func() (kv.Tag, error)) (kv.Tag, error)
}

func (c *counted) add(op string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[op]++
}

func (c *counted) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	c.add("get")
	return c.Store.Get(ctx, key, rng)
}
func (c *counted) Set(ctx context.Context, key string, value []byte) error {
	if c.add("set"); c.down != nil {
		return c.down
	}
	return c.Store.Set(ctx, key, value)
}
func (c *counted) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	c.add("list")
	return c.Store.List(ctx, o)
}
func (c *counted) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	if c.add("gettagged"); c.down != nil {
		return kv.Tagged{}, c.down
	}
	plain, ok := strings.CutSuffix(string(known), c.mark)
	if !ok {
		plain = ""
	}
	got, err := c.Store.(kv.Conditional).GetTagged(ctx, key, kv.Tag(plain), limit)
	got.Tag += kv.Tag(c.mark)
	return got, err
}
func (c *counted) SetTagged(ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
	c.add("settagged")
	apply := func() (kv.Tag, error) {
		plain, ok := strings.CutSuffix(string(want), c.mark)
		if !ok && want != kv.NoValue {
			return "", kv.ErrChanged
		}
		tag, err := c.Store.(kv.Conditional).SetTagged(ctx, key, value, kv.Tag(plain))
		return tag + kv.Tag(c.mark), err
	}
	if c.cut != nil {
		return c.cut(apply)
	}
	return apply()
}

// TestMergeReached has merges put the pages first that refs reach, in their order. What only an older bundle has is not asked for.
func TestMergeReached(t *testing.T) {
	store := &counted{Store: kv.NewMem()}
	d := must.Get(Create(bg, store, &Options{small: 300}))(t)
	var head ID
	var pages []ID
	merges := 0
	for i := range 60 {
		text := strings.Repeat("x", i+2)
		head = push(t, d, "heads/main", head, text)
		pages = append(pages, NameOf([]byte("page "+text)))
		before, asked := d.Manifest().Bundles, map[ID]bool{}
		merged := must.Get(d.Merge(bg, func(_ context.Context, refs map[string]ID, listed func(ID) bool) iter.Seq[ID] {
			if refs["heads/main"] != head {
				t.Errorf("the head is %v", refs)
			}
			return func(yield func(ID) bool) {
				for k, id := range pages { // two of three are reached, older ones first
					if asked[id] = listed(id); asked[id] && k%3 > 0 && !yield(id) {
						return
					}
				}
			}
		}))(t)
		if !merged {
			continue
		}
		merges++
		older := false
		for k, info := range d.Manifest().Bundles {
			fresh := !slices.ContainsFunc(before, func(b BundleInfo) bool { return b.Name == info.Name })
			var got, want []ID
			end := uint64(headerSize)
			for p, err := range must.Get(d.Bundle(bg, &d.Manifest().Bundles[k]))(t).Pages() {
				must.Do(t, err)
				id := NameOf(p.Data)
				if asked[id] == older {
					t.Errorf("merge %d: page %v of bundle %d: %v", merges, id, k, asked[id])
				}
				if got = append(got, id); p.Hot {
					end += uint64(len(p.Data))
				}
			}
			if !fresh {
				continue
			}
			older = true
			for n, id := range pages {
				if n%3 > 0 && slices.Contains(got, id) {
					want = append(want, id)
				}
			}
			if !slices.Equal(got[:len(want)], want) || info.Hot != end {
				t.Errorf("merge %d: %v, want %v first; hot to %d of %d", merges, got, want, info.Hot, end)
			}
		}
		// All commits lie together, and come with one request for each bundle.
		store.n = nil
		if list := must.Get(d.CommitsBeside(bg, head, len(d.Manifest().Bundles)))(t); len(list) != 2*len(pages)+1 || store.n["get"] > len(d.Manifest().Bundles) {
			t.Errorf("%d commits of %d, %v", len(list), len(pages), store.n)
		}
	}
	if merges < 5 {
		t.Errorf("%d merges", merges)
	}
}

// TestRequests counts the requests of each operation.
func TestRequests(t *testing.T) {
	store := &counted{Store: kv.NewMem()}
	d := must.Get(Create(bg, store, nil))(t)
	if store.n["list"] != 1 {
		t.Errorf("create: %v", store.n)
	}
	check := func(what string, want map[string]int) {
		t.Helper()
		if !maps.Equal(store.n, want) {
			t.Errorf("%s: %v, want %v", what, store.n, want)
		}
		store.n = nil
	}
	store.n = nil
	first := push(t, d, "heads/main", ID{}, "one")
	check("the first push after create, which does not know the time of the store", map[string]int{"gettagged": 1, "set": 2, "settagged": 1})
	must.Do(t, d.Refresh(bg))
	second := push(t, d, "heads/main", first, "two!")
	check("push", map[string]int{"gettagged": 1, "set": 2, "settagged": 1})
	must.Do(t, d.Refresh(bg))
	must.Do(t, d.Begin().Publish(bg, Change{Refs: []RefChange{{"tags/v1", ID{}, second}}}))
	check("a ref alone", map[string]int{"gettagged": 1, "settagged": 1})
	cache := kv.NewMem()
	for _, want := range []map[string]int{{"gettagged": 1, "get": 2}, {"gettagged": 1, "get": 1}} {
		d = must.Get(Open(bg, store, &Options{Cache: cache}))(t)
		wantPush(t, d, "one")
		check("open and read", want)
	}
	// The newest bundle is in memory.
	var ids []ID
	for _, err := range must.Get(d.Bundle(bg, &d.Manifest().Bundles[0]))(t).Pages() {
		must.Do(t, err)
	}
	for _, text := range []string{"one", "two!"} {
		ids = append(ids, NameOf([]byte("page "+text)))
	}
	store.n = nil
	must.Get(d.Pages(bg, ids))(t)
	check("two pages", nil)
	// A machine whose cache has the newest bundle takes it along without a request.
	push(t, d, "heads/main", second, "three")
	check("push, cached", map[string]int{"set": 2, "settagged": 1})
	if n := len(d.Manifest().Bundles); n != 1 {
		t.Errorf("%d bundles", n)
	}
}

// TestBundlesStayFew follows the sizes of bundles through pushes of 8 KB of pages.
func TestBundlesStayFew(t *testing.T) {
	var bundles []BundleInfo
	written, most, objects := uint64(0), 0, 0
	put := func(size uint64) BundleInfo {
		written, objects = written+size, objects+1
		return BundleInfo{Name: Name{Push: uint64(objects)}, Size: size}
	}
	const pushes, size = 10_000, 8_000
	for range pushes {
		total, gone := uint64(size), []Name{}
		if len(bundles) > 0 && bundles[0].Size < carried {
			total, gone = total+bundles[0].Size, []Name{bundles[0].Name}
		}
		bundles = replace(bundles, []BundleInfo{put(total)}, gone)
		for from := mergeable(bundles, carried, nil); from != nil; from = mergeable(bundles, carried, nil) {
			total, gone = 0, nil
			for _, b := range from {
				total, gone = total+b.Size, append(gone, b.Name)
			}
			bundles = replace(bundles, []BundleInfo{put(total)}, gone)
		}
		most = max(most, len(bundles))
	}
	if factor := float64(written) / (pushes * size); most > 16 || factor > 15 {
		t.Errorf("%d bundles at most, %.1f times the pages were written", most, factor)
	} else {
		t.Logf("%d bundles at most, %d at the end, %.1f times the pages were written in %d objects", most, len(bundles), factor, objects)
	}
}

// TestRefusals publishes nothing where a push may not.
func TestRefusals(t *testing.T) {
	store := kv.NewMem()
	d := must.Get(Create(bg, store, nil))(t)
	first := push(t, d, "heads/main", ID{}, "one")
	fails := func(what string, want error, p *Push, c Change) {
		t.Helper()
		before := d.Manifest().Generation
		err := p.Publish(bg, c)
		var moved *MovedError
		if want == nil && !errors.As(err, &moved) || want != nil && !errors.Is(err, want) || errors.Is(err, kv.ErrUnknown) {
			t.Errorf("%s: %v", what, err)
		}
		must.Do(t, d.Refresh(bg))
		if now := d.Manifest().Generation; now != before {
			t.Errorf("%s: generation %d after %d", what, now, before)
		}
	}
	c, _ := change(t, d.Begin(), "heads/main", ID{1}, "two")
	fails("another ref", nil, d.Begin(), c)
	fails("a ref that is gone", nil, d.Begin(), Change{Refs: []RefChange{{"heads/none", first, first}}})
	fails("a ref that exists", nil, d.Begin(), Change{Refs: []RefChange{{"heads/main", ID{}, ID{2}}}})
	if err := d.Begin().Publish(bg, Change{Refs: []RefChange{{"a\nb", ID{}, ID{2}}}}); err == nil || errors.Is(err, kv.ErrUnknown) {
		t.Errorf("a bad name: %v", err)
	}

	// edit replaces the manifest behind the back of d.
	edit := func(f func(*Manifest)) {
		t.Helper()
		now := must.Get(store.GetTagged(bg, manifestKey, kv.NoValue, maxManifest))(t)
		m := must.Get(ParseManifest(now.Value))(t).next(7, 0)
		f(m)
		must.Get(store.SetTagged(bg, manifestKey, must.Get(m.encode())(t), now.Tag))(t)
	}
	old := d.Begin()
	segment := must.Get(old.Segment([]Range{{[16]byte{9}, 8, 16, strings.NewReader("12345678")}}))(t)
	must.Do(t, old.Upload(bg, segment))
	edit(func(m *Manifest) { m.Drops++ })
	must.Do(t, d.Refresh(bg))
	fails("planned before a collection", ErrReplan, old, Change{})
	must.Do(t, old.Replan(bg))
	edit(func(m *Manifest) { m.Floor = m.Generation })
	must.Do(t, d.Refresh(bg))
	fails("begun before the floor", ErrVoid, old, Change{})
	fails("with extents from before the floor", ErrVoid, d.Begin(), Change{Stored: segment.Extents})
	fails("with segments from before the floor", ErrVoid, d.Begin(), Change{Segments: []*Segment{segment}})
	edit(func(m *Manifest) { m.Writes = []string{"news"} })
	must.Do(t, d.Refresh(bg))
	fails("a newer writer", ErrReadOnly, d.Begin(), Change{})
	wantPush(t, d, "one")
	edit(func(m *Manifest) { m.Reads = []string{"news"} })
	if err := d.Refresh(bg); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "news") {
		t.Errorf("a newer format: %v", err)
	}
	if _, err := Create(bg, must.Get(filled("x", "y"))(t), nil); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("create beside others: %v", err)
	}
}

func filled(key, value string) (*kv.Mem, error) {
	m := kv.NewMem()
	return m, m.Set(bg, key, []byte(value))
}

// TestAnswers loses answers of the write that publishes.
func TestAnswers(t *testing.T) {
	lost := fmt.Errorf("%w: reset by peer", kv.ErrUnknown)
	var waits []time.Duration
	quick := &Options{Sleep: func(ctx context.Context, d time.Duration) error { waits = append(waits, d); return ctx.Err() }}
	for _, test := range []struct {
		name      string
		answer    func(apply func() (kv.Tag, error)) (kv.Tag, error)
		published bool
		want      error
	}{
		{"done, answer lost", func(apply func() (kv.Tag, error)) (kv.Tag, error) { _, _ = apply(); return "", lost }, true, nil},
		{"done, repeated", func(apply func() (kv.Tag, error)) (kv.Tag, error) { _, _ = apply(); return apply() }, true, nil},
		{"never done", func(apply func() (kv.Tag, error)) (kv.Tag, error) { return "", lost }, false, kv.ErrUnknown},
		{"refused", func(apply func() (kv.Tag, error)) (kv.Tag, error) { return "", errors.New("403") }, false, nil},
	} {
		store := &counted{Store: kv.NewMem()}
		d := must.Get(Create(bg, store, quick))(t)
		p := d.Begin()
		c, _ := change(t, p, "heads/main", ID{}, "one")
		store.cut = test.answer
		store.n = nil
		err := p.Publish(bg, c)
		if store.n["settagged"] > triesOfOne {
			t.Errorf("%s: %v", test.name, store.n)
		}
		if strings.Contains(test.name, "lost") || strings.Contains(test.name, "never") { // as of a store that takes one change a second
			if len(waits) == 0 || slices.Min(waits) < time.Second {
				t.Errorf("%s: waits of %v", test.name, waits)
			}
		}
		waits = nil
		if (err == nil) != test.published || test.want != nil && !errors.Is(err, test.want) || test.want == nil && errors.Is(err, kv.ErrUnknown) {
			t.Errorf("%s: %v", test.name, err)
		}
		if errors.Is(err, kv.ErrUnknown) { // and stays so, whatever else fails
			bad := c
			bad.Pages = func(yield func(Page, error) bool) { yield(Page{}, errors.New("a local error")) }
			if err := p.Publish(bg, bad); !errors.Is(err, kv.ErrUnknown) {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		// The same call again settles it.
		store.cut = nil
		if err := p.Publish(bg, c); (err != nil) != test.published {
			t.Errorf("%s, again: %v", test.name, err)
		}
		if m := d.Manifest(); m.Generation != 2 || !m.Has(p.Number()) || d.State().Push != p.Number() || d.State().Pushed != 2 {
			t.Errorf("%s: generation %d", test.name, m.Generation)
		}
		wantPush(t, d, "one")
	}
}

// TestChangedTag learns a new tag of the same manifest, as after a copy, and plans by a new manifest only if there is one.
func TestChangedTag(t *testing.T) {
	store := &counted{Store: kv.NewMem()}
	d := must.Get(Create(bg, store, nil))(t)
	p := d.Begin()
	first := push(t, d, "heads/main", ID{}, "one")
	store.down = errors.New("down")
	if err := p.Replan(bg); !errors.Is(err, store.down) || p.Base().Generation != 1 {
		t.Errorf("%v, generation %d", err, p.Base().Generation)
	}
	store.down, store.mark = nil, "-copy"
	push(t, d, "heads/main", first, "two!")
	wantPush(t, d, "two!")
}

// TestTimes notes when a manifest was made, not when the one before was read.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := must.Get(Create(bg, kv.NewMem(), nil))(t)
		first := push(t, d, "heads/main", ID{}, "one")
		time.Sleep(2 * time.Hour)
		push(t, d, "heads/main", first, "two!")
		if got := d.Manifest().Times; len(got) != 2 || got[1] != [2]int64{3, time.Now().Unix()} {
			t.Errorf("%v at %d", got, time.Now().Unix())
		}
	})
}

// TestHeal uploads a range anew beside a push that takes along the bundle with the bad one. The new range counts.
func TestHeal(t *testing.T) {
	mem := kv.NewMem()
	store := &counted{Store: mem}
	d := must.Get(Create(bg, store, nil))(t)
	upload := func(d *Depot, text string) {
		p := d.Begin()
		s := must.Get(p.Segment([]Range{{[16]byte{1}, 8, 16, strings.NewReader(text)}}))(t)
		must.Do(t, p.Publish(bg, Change{Segments: []*Segment{s}}))
	}
	upload(d, "damaged!")
	other := must.Get(Open(bg, mem, nil))(t)
	store.cut = func(apply func() (kv.Tag, error)) (kv.Tag, error) {
		store.cut = nil
		upload(other, "sound...")
		return apply()
	}
	must.Do(t, d.Begin().Publish(bg, Change{Pages: seq(Page{[]byte("page"), false})}))
	got := must.Get(d.Payloads(bg, []Part{{[16]byte{1}, 8, 16}}))(t)
	if must.Get(d.Pages(bg, []ID{NameOf([]byte("page"))}))(t); string(got[0]) != "sound..." {
		t.Errorf("%s", got)
	}
}

// TestMergeable merges neighbours.
func TestMergeable(t *testing.T) {
	for _, test := range []struct{ sizes, want string }{
		{"1111", "1-4"}, {"11111", "2-5"}, {"0111", ""}, {"1112", ""}, {"11211", ""}, {"1211211111", "7-10"}, {"22112112", "1-8"}, {"122122", "2-6"}, {"2221111", "4-7"}, {"11x1111", "4-7"}, {"1x111", ""}, {"1x1111x1", "3-6"},
	} {
		var bundles []BundleInfo
		bad := map[Name]bool{}
		for i, c := range test.sizes {
			name := Name{Index: uint32(i + 1)}
			if c == 'x' {
				c, bad[name] = '1', true
			}
			bundles = append(bundles, BundleInfo{Name: name, Size: []uint64{50, 100, 400}[c-'0']})
		}
		got := ""
		if list := mergeable(bundles, 100, bad); list != nil {
			got = fmt.Sprintf("%d-%d", list[0].Name.Index, list[len(list)-1].Name.Index)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.sizes, got, test.want)
		}
	}
}

// slow answers each request after 20 ms.
type slow struct{ counted }

func (s *slow) Set(ctx context.Context, key string, value []byte) error {
	time.Sleep(20 * time.Millisecond)
	return s.counted.Set(ctx, key, value)
}
func (s *slow) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	time.Sleep(20 * time.Millisecond)
	return s.counted.GetTagged(ctx, key, known, limit)
}
func (s *slow) SetTagged(ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
	time.Sleep(10 * time.Millisecond)
	defer time.Sleep(10 * time.Millisecond)
	return s.counted.SetTagged(ctx, key, value, want)
}

// TestRacingPushers pushes from machines that begin at the same moment: to one branch, where each that is behind
// plans anew, and to branches of their own.
func TestRacingPushers(t *testing.T) {
	for _, test := range []struct {
		machines int
		own      bool
		within   time.Duration
	}{{16, false, 10 * time.Second}, {16, true, 10 * time.Second}, {64, false, 40 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			store := &slow{counted{Store: kv.NewMem()}}
			must.Get(Create(bg, store, nil))(t)
			store.n = nil
			start := time.Now()
			var wg sync.WaitGroup
			most := make([]int, test.machines)
			for i := range test.machines {
				wg.Go(func() {
					d, err := Open(bg, store, nil)
					ref := "heads/main"
					if test.own {
						ref = fmt.Sprintf("heads/%d", i)
					}
					for moved := new(MovedError); err == nil || errors.As(err, &moved); {
						p := d.Begin()
						c, _ := change(t, p, ref, p.Base().Refs[ref], fmt.Sprintf("machine %02d", i))
						most[i]++
						if err = p.Publish(bg, c); err == nil {
							return
						}
					}
					t.Errorf("machine %d: %v", i, err)
				})
			}
			wg.Wait()
			took := time.Since(start)
			t.Logf("%d machines, own branches %v: %v, %d plans at most, %v", test.machines, test.own, took, slices.Max(most), store.n)
			if took > test.within {
				t.Errorf("the last of %d machines ended after %v", test.machines, took)
			}
		})
	}
}

// TestState tells a depot that went back, lost a push, is gone or is another one.
func TestState(t *testing.T) {
	store := kv.NewMem()
	d := must.Get(Create(bg, store, nil))(t)
	at := func(b []byte, o *Options) error {
		must.Do(t, store.Set(bg, manifestKey, b))
		_, err := Open(bg, store, o)
		return err
	}
	first := must.Get(kv.Get(bg, store, manifestKey))(t)
	push(t, d, "heads/main", ID{}, "one")
	second := must.Get(kv.Get(bg, store, manifestKey))(t)
	state := d.State()
	known := &Options{Known: &state}
	if err := at(second, known); err != nil {
		t.Error(err)
	}
	var back *BackError
	if err := at(first, known); !errors.As(err, &back) || back.Known != 2 || back.Now != 1 {
		t.Errorf("restored: %v", err)
	}
	m := must.Get(ParseManifest(first))(t)
	fork := must.Get(m.next(5, 0).encode())(t)
	if err := at(fork, known); !errors.As(err, &back) {
		t.Errorf("another one of the same generation: %v", err)
	}
	lost := must.Get(must.Get(ParseManifest(fork))(t).next(6, 0).encode())(t)
	if err := at(lost, known); !errors.Is(err, ErrLost) {
		t.Errorf("a lost push: %v", err)
	}
	if err := d.Refresh(bg); !errors.Is(err, ErrLost) {
		t.Errorf("a push of this process that was lost: %v", err)
	}
	if err := at(lost, nil); err != nil {
		t.Errorf("accepted: %v", err)
	}
	m.ID = strings.Repeat("ab", 16)
	if err := at(must.Get(m.encode())(t), known); !errors.Is(err, ErrOther) {
		t.Errorf("another depot: %v", err)
	}
	must.Do(t, store.Delete(bg, manifestKey))
	if _, err := Open(bg, store, known); !errors.Is(err, ErrGone) {
		t.Errorf("gone: %v", err)
	}
	if err := d.Refresh(bg); !errors.Is(err, ErrGone) {
		t.Errorf("gone since: %v", err)
	}
	if err := d.Begin().Publish(bg, Change{}); err == nil {
		t.Error("a depot that is gone was made anew by a push")
	}
}

// TestDamage reads damaged objects as an error, and never as other bytes.
func TestDamage(t *testing.T) {
	store := kv.NewMem()
	d := must.Get(Create(bg, store, nil))(t)
	push(t, d, "heads/main", ID{}, "one")
	name := d.Manifest().Bundles[0].Name.Bundle()
	whole := must.Get(kv.Get(bg, store, name))(t)
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 1
		must.Do(t, store.Set(bg, name, bad))
		d := must.Get(Open(bg, store, nil))(t)
		page, err := d.Pages(bg, []ID{NameOf([]byte("page one"))})
		commit, err2 := d.Commits(bg, []ID{NameOf([]byte("commit one"))})
		if err == nil && string(page[0]) != "page one" || err2 == nil && string(commit[0]) != "commit one" ||
			err != nil && !errors.Is(err, kv.ErrCorrupt) || err2 != nil && !errors.Is(err2, kv.ErrCorrupt) {
			t.Fatalf("byte %d: %q, %v; %q, %v", i, page, err, commit, err2)
		}
	}
	must.Do(t, store.Set(bg, name, whole[:40]))
	fails := func(what string) {
		t.Helper()
		d := must.Get(Open(bg, store, nil))(t)
		if _, err := d.Pages(bg, []ID{NameOf([]byte("page one"))}); !errors.Is(err, kv.ErrCorrupt) || errors.Is(err, kv.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	fails("cut")
	must.Do(t, store.Set(bg, name, append(bytes.Clone(whole), 0)))
	fails("longer")
	must.Do(t, store.Delete(bg, name))
	fails("missing")
	// Others can be read and pushed, and a push brings back what was lost.
	d = must.Get(Open(bg, store, nil))(t)
	first := d.Manifest().Refs["heads/main"]
	push(t, d, "heads/main", first, "three")
	wantPush(t, d, "three")
	fails("still missing")
	push(t, d, "heads/again", ID{}, "one")
	wantPush(t, must.Get(Open(bg, store, nil))(t), "one")
}

// TestCheck finds what is missing, short or damaged, and counts what nothing lists.
func TestCheck(t *testing.T) {
	store := kv.NewMem()
	d := must.Get(Create(bg, store, nil))(t)
	first := push(t, d, "heads/main", ID{}, "one")
	push(t, d, "heads/main", first, "three")
	m := d.Manifest()
	bundle := m.Bundles[0].Name.Bundle()
	extents := must.Get(d.Bundle(bg, &m.Bundles[0]))(t).Extents()
	segment := extents[1].Segment.Segment()
	check := func(what string, full bool, want string) {
		t.Helper()
		r := must.Get(must.Get(Open(bg, store, nil))(t).Check(bg, full))(t)
		text := ""
		for _, err := range r.Problems {
			if text += err.Error() + "\n"; !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if (want == "") != (text == "") || !strings.Contains(text, want) || r.Bundles != 1 || want == "" && (r.Segments != 2 || r.Unlisted != 1 || full != (r.Pages == 2)) {
			t.Errorf("%s: %+v, %s", what, r, text)
		}
	}
	check("sound", false, "")
	check("sound", true, "")
	b := must.Get(kv.Get(bg, store, bundle))(t)
	b[headerSize] ^= 1
	must.Do(t, store.Set(bg, bundle, b))
	check("a damaged page", true, "has bytes of the name")
	must.Do(t, store.Set(bg, bundle, b[:100]))
	check("a short bundle", false, "does not have its name")
	must.Do(t, store.Delete(bg, bundle))
	check("no bundle", false, "is missing")
	b[headerSize] ^= 1
	must.Do(t, store.Set(bg, bundle, b))
	s := must.Get(kv.Get(bg, store, segment))(t)
	must.Do(t, store.Set(bg, segment, s[:len(s)-4]))
	check("a short segment", false, segment+" has")
	must.Do(t, store.Delete(bg, segment))
	check("no segment", false, segment+" is missing")

	// Refs without whole versions.
	store = kv.NewMem()
	bare := Commit{[]byte("bare"), true}
	must.Do(t, must.Get(Create(bg, store, nil))(t).Begin().Publish(bg, Change{
		Commits: func(yield func(Commit, error) bool) { yield(bare, nil) },
		Refs:    []RefChange{{Ref: "heads/bare", New: NameOf(bare.Record)}, {Ref: "heads/none", New: ID{1}}},
	}))
	for _, full := range []bool{false, true} {
		check("a bare tip", full, "heads/bare: ")
		check("no tip", full, "heads/none: ")
	}
}

// TestOverlapping refuses an index whose entries share bytes, so that a small bundle cannot unfold into terabytes.
func TestOverlapping(t *testing.T) {
	w := newBuilder()
	must.Do(t, w.addPage(Page{make([]byte, 100), false}))
	must.Do(t, w.addPage(Page{make([]byte, 50), false}))
	for id := range w.pages {
		w.pages[id] = span{headerSize, 100}
	}
	if _, _, err := w.finish(); !errors.Is(err, kv.ErrCorrupt) {
		t.Error(err)
	}
	m := &Manifest{ID: strings.Repeat("0", 32), Generation: 1}
	for i := range uint32(17) {
		m.Bundles = append(m.Bundles, BundleInfo{Name: Name{Index: i}, Size: maxBundle, Index: headerSize, Hot: headerSize})
	}
	if err := m.check(); err == nil {
		t.Error("indexes of more than a GiB")
	}
}

// TestLargePush goes on with another bundle where one is full.
func TestLargePush(t *testing.T) {
	if testing.Short() {
		t.Skip("200 MB")
	}
	d := must.Get(Create(bg, kv.NewMem(), nil))(t)
	push(t, d, "heads/main", ID{}, "one") // is not taken along by several
	data := make([]byte, 4<<20)
	var ids []ID
	must.Do(t, d.Begin().Publish(bg, Change{Pages: func(yield func(Page, error) bool) {
		for i := range 25 {
			data[0] = byte(i)
			ids = append(ids, NameOf(data))
			if !yield(Page{data, i == 0}, nil) {
				return
			}
		}
	}}))
	m := d.Manifest()
	if len(m.Bundles) != 4 || m.Bundles[2].Hot != headerSize+4<<20 {
		t.Errorf("%+v", m.Bundles)
	}
	for i, b := range must.Get(d.Pages(bg, ids))(t) {
		if b[0] != byte(i) {
			t.Fatalf("page %d", i)
		}
	}
}

// TestOverlay compares overlay with a map of bytes.
func TestOverlay(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		list := func(n uint64) (out []Extent) {
			for pack := range byte(2) {
				for at := rnd.Uint64N(4); at < 20; at += rnd.Uint64N(4) {
					e := Extent{[16]byte{pack}, at, at + 1 + rnd.Uint64N(5), Name{Push: n}, 100 + at}
					out, at = append(out, e), e.To
				}
			}
			return out
		}
		newer, older := list(1), list(2)
		type place struct {
			pack byte
			at   uint64
		}
		want, got := map[place]Extent{}, map[place]Extent{}
		fill := func(m map[place]Extent, list []Extent) {
			for _, e := range list {
				for at := e.From; at < e.To; at++ {
					m[place{e.Pack[0], at}] = Extent{Segment: e.Segment, Offset: e.Offset + at - e.From}
				}
			}
		}
		fill(want, older)
		fill(want, newer)
		w := newBuilder()
		w.extents = overlay(newer, older)
		fill(got, w.extents)
		parsed, _, err := w.finish()
		if err != nil || !maps.Equal(got, want) {
			t.Fatalf("%v over %v: %v, %v", newer, older, w.extents, err)
		}
		if !slices.Equal(parsed.Extents(), w.extents) {
			t.Fatal("other extents after parsing")
		}
		for p := range want {
			if e, ok := parsed.x.cover([16]byte{p.pack}, p.at, p.at+1); !ok || e.Segment != want[p].Segment || e.Offset+p.at-e.From != want[p].Offset {
				t.Fatalf("%v: %v, %v", p, e, ok)
			}
		}
	}
}

// TestSegment reads a segment by itself.
func TestSegment(t *testing.T) {
	store := kv.NewMem()
	d := must.Get(Create(bg, store, nil))(t)
	p := d.Begin()
	s := must.Get(p.Segment([]Range{{[16]byte{1}, 64, 69, strings.NewReader("12345")}, {[16]byte{2}, 8, 16, strings.NewReader("abcdefgh")}}))(t)
	must.Do(t, p.Upload(bg, s))
	b := must.Get(kv.Get(bg, store, s.Name.Segment()))(t)
	got, err := ParseSegment(bytes.NewReader(b), int64(len(b)), s.Name)
	if err != nil || !slices.Equal(got, s.Extents) || int64(len(b)) != s.Size() || string(b[got[1].Offset:][:8]) != "abcdefgh" {
		t.Errorf("%v, %v", got, err)
	}
	got, err = ParseSegment(bytes.NewReader(b), int64(len(b)-1), s.Name)
	if !errors.Is(err, kv.ErrCorrupt) || !slices.Equal(got, s.Extents[:1]) {
		t.Errorf("cut: %v, %v", got, err)
	}
	if _, err := p.Segment([]Range{{[16]byte{1}, 8, 8, nil}}); err == nil {
		t.Error("an empty range")
	}
}
