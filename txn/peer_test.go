package txn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn/internal/overlay"
)

// openOnDisk makes a database on disk, whose packs can be lent.
func openOnDisk(t *testing.T, o *Options) *DB {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("files cannot be lent")
	}
	o.FS = nil
	db := must.Get(Create(t.TempDir()+"/db", o))(t)
	t.Cleanup(func() { closeChecked(t, db) })
	return db
}

func peerOf(t *testing.T, db *DB) *DB {
	t.Helper()
	p := NewPeer(db.Dir(), db.Identity(), db.Source(), testOptions(nil))
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func peerAt(t *testing.T, p *DB, rev string) *Snapshot {
	t.Helper()
	s := must.Get(p.At(bg, rev))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// large are values that go into packs.
func large(n int, of string) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("k%03d", i)] = strings.Repeat(fmt.Sprint(of, i, " "), 4000)
	}
	return out
}

// A peer finds that the content of an expired version has come back.
func TestPeerSeesWhatAPullBrings(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	grow(t, db, 10, 0)
	must.Get(db.Clone(bg, "shallow", TransferOptions{Depth: 2}))(t)
	to := openCopy(t, fs, "shallow")
	p := peerOf(t, to)
	id := must.Get(db.Resolve(bg, "main~3"))(t)
	if gone, err := p.Expired(bg, id); err != nil || !gone {
		t.Errorf("a version that was not copied: %v, %v", gone, err)
	}
	must.Get(to.Pull(bg, db, TransferOptions{Unshallow: true}))(t)
	mustGC(t, to) // recalls, so that the peer asks again at once
	if gone, err := p.Expired(bg, id); err != nil || gone {
		t.Errorf("a version that was pulled: %v, %v", gone, err)
	}
}

func (s *countingSource) Lease(ctx context.Context, rev string) (Lease, error) {
	s.versions.Add(1)
	return s.Source.Lease(ctx, rev)
}

func (s *countingSource) Resolve(ctx context.Context, rev string) (CommitID, error) {
	s.versions.Add(1)
	return s.Source.Resolve(ctx, rev)
}

func (s *countingSource) Pack(ctx context.Context, a PackAddress) (PackFile, error) {
	s.packs.Add(1)
	return s.Source.Pack(ctx, a)
}

// A commit that was open is opened again by its id without a request, and packs stay mapped, until a recall.
func TestPeerKeepsWhatIsOpen(t *testing.T) {
	must.Set(t, &unusedTime, time.Hour)
	db := openOnDisk(t, testOptions(nil))
	values := large(3, "a")
	id := update(t, db, "main", values).ID
	src := &countingSource{Source: db.Source()}
	p := NewPeer(db.Dir(), db.Identity(), src, testOptions(nil))
	defer p.Close()
	for round, want := range []struct{ versions, packs int64 }{{1, 1}, {1, 1}, {2, 2}} {
		if round == 2 {
			db.letGo()
		}
		first := must.Get(p.At(bg, id.String()))(t)
		second := must.Get(p.At(bg, id.String()))(t)
		if got := must.Get(p.Resolve(bg, id.String()))(t); got != id {
			t.Errorf("%v, want %v", got, id)
		}
		must.Do(t, first.Close())
		if got := contents(t, second); !maps.Equal(got, values) {
			t.Errorf("%d values", len(got))
		}
		must.Do(t, second.Close())
		if v, n := src.versions.Load(), src.packs.Load(); v != want.versions || n != want.packs {
			t.Errorf("round %d: %d requests for versions and %d for packs, want %+v", round, v, n, want)
		}
	}
}

// A peer opens a branch without a request until a ref moves, and sees each move that was acknowledged.
func TestPeerSeesMoves(t *testing.T) {
	must.Set(t, &unusedTime, time.Hour)
	db := openTest(t, nil)
	src := &countingSource{Source: db.Source()}
	p := NewPeer("db", db.Identity(), src, testOptions(nil))
	defer p.Close()
	look := func(rev string, want CommitID) {
		t.Helper()
		s := must.Get(p.At(bg, rev))(t)
		defer s.Close()
		if got := must.Get(p.Resolve(bg, rev))(t); s.Commit().ID != want || got != want {
			t.Errorf("%s is %v and %v, want %v", rev, s.Commit().ID, got, want)
		}
	}
	for i := range 4 {
		id := update(t, db, "main", map[string]string{"n": fmt.Sprint(i)}).ID
		for range 4 {
			look("main", id)
			look("", id)
		}
		must.Do(t, db.CreateTag(bg, fmt.Sprintf("t%d", i), id))
		look(fmt.Sprintf("t%d", i), id)
		must.Do(t, db.CreateBranch(bg, "beef", id)) // as the beginning of an id
		look("beef", id)
		must.Do(t, db.DeleteBranch(bg, "beef"))
	}
	first := must.Get(db.Resolve(bg, "t0"))(t)
	look("main", must.Get(db.Resolve(bg, "t3"))(t))
	must.Get(db.Reset(bg, "main", first))(t)
	look("main", first)
	asked := src.versions.Load()
	for range 100 {
		look("main", first)
	}
	if n := src.versions.Load() - asked; n > 0 {
		t.Errorf("%d requests where no ref moved", n)
	}
}

// A version that a peer has closed and keeps to be opened again holds nothing.
func TestPeerKeepsNothingFromCollections(t *testing.T) {
	must.Set(t, &unusedTime, time.Hour)
	db := openOnDisk(t, testOptions(nil))
	p := peerOf(t, db)
	for range 5 {
		id := update(t, db, "main", large(3, "a")).ID
		must.Do(t, must.Get(p.At(bg, "main"))(t).Close())
		update(t, db, "main", large(3, "b"))
		mustExpire(t, db, ExpireOptions{Keep: 1})
		mustGC(t, db)
		if s, err := p.Snapshot(bg, id); !errors.Is(err, ErrExpired) {
			t.Errorf("%v, %v", s, err)
		}
	}
}

// A peer counts the packs of the database, whether it has read them or not.
func TestPeerDiskUse(t *testing.T) {
	db := openOnDisk(t, testOptions(nil))
	update(t, db, "main", large(3, "a"))
	p := peerOf(t, db)
	want := db.DiskUse().Packs
	for range 2 {
		if got := p.DiskUse().Packs; got != want || want == 0 {
			t.Errorf("%d packs, want %d", got, want)
		}
		contents(t, peerAt(t, p, "main"))
	}
}

// A peer reads every version while the packs grow, are written anew and get holes.
func TestPeerReadsBesideGC(t *testing.T) {
	o := testOptions(nil)
	o.PackBytes = 256 << 10
	db := openOnDisk(t, o)
	p := peerOf(t, db)
	var kept *Snapshot
	var want map[string]string
	for round := range 6 {
		values := large(20, fmt.Sprint(round))
		update(t, db, "main", values)
		s := peerAt(t, p, "main")
		if got := contents(t, s); !maps.Equal(got, values) {
			t.Fatalf("round %d: %d keys, or other values", round, len(got))
		}
		if round == 2 {
			kept, want = s, values
		} else if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		mustExpire(t, db, ExpireOptions{Keep: 1})
		if r := mustGC(t, db); round > 3 && r.FreedBytes == 0 || r.Leased > 0 {
			t.Errorf("round %d: a collection beside a peer: %+v", round, r)
		}
		if kept != nil {
			if got := contents(t, kept); !maps.Equal(got, want) {
				t.Fatalf("round %d: the version that is kept has %d keys, or other values", round, len(got))
			}
		}
	}
	must.Do(t, kept.Close())
	if _, err := kept.Get(bg, "k000", kv.All()); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("a read of a closed snapshot: %v", err)
	}
	if _, err := p.At(bg, "none"); !errors.Is(err, ErrNoRef) {
		t.Errorf("a branch that is not there: %v", err)
	}
	if _, err := p.At(bg, "main~1"); !errors.Is(err, ErrExpired) {
		t.Errorf("a version that has expired: %v", err)
	}
}

// While a peer reads a file the space of the file stays, and comes back afterwards.
func TestPeerKeepsWhatItReads(t *testing.T) {
	db := openOnDisk(t, testOptions(nil))
	p := peerOf(t, db)
	update(t, db, "main", large(20, "a"))
	s := peerAt(t, p, "main")
	v := must.Get(s.Locate(bg, "k003"))(t)
	reads, ends := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- v.View(bg, kv.All(), func(b []byte) error {
			close(reads)
			<-ends
			if !strings.HasPrefix(string(b), "a3 a3 ") {
				return errors.New("the bytes have changed")
			}
			return nil
		})
	}()
	<-reads
	collected := make(chan *GCReport)
	must.Do(t, s.Close())
	update(t, db, "main", large(20, "b"))
	mustExpire(t, db, ExpireOptions{Keep: 1})
	go func() { collected <- mustGC(t, db) }()
	<-collected
	close(ends)
	if err := <-done; err != nil {
		t.Errorf("a read beside a collection: %v", err)
	}
	mustGC(t, db)
	if got := contents(t, peerAt(t, p, "main")); !maps.Equal(got, large(20, "b")) {
		t.Error("the new version has other values")
	}
}

// The source is asked for times that it understands in any zone.
func TestAbsolute(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.FixedZone("", 3600))
	local := must.Get(ParseTime("2026-01-31 12:00"))(t)
	for rev, want := range map[string]string{
		"main@{2026-01-31 12:00}~2": "main@{" + local.UTC().Format(time.RFC3339) + "}~2",
		"@{1h ago}":                 "@{2026-03-01T10:00:00.005Z}",
		"a@{2026-01-31T12:00+0900}": "a@{2026-01-31T03:00:00Z}",
		"a@{3}":                     "a@{3}",
		"a@{x}":                     "a@{x}",
		"a@{1h":                     "a@{1h",
		"a~1":                       "a~1",
	} {
		got := absolute(rev, now)
		if got != want || absolute(got, now) != want {
			t.Errorf("%s is %s, want %s", rev, got, want)
		}
	}
}

// countingSource counts requests.
type countingSource struct {
	Source
	pages, commits, versions, packs atomic.Int64
}

func (s *countingSource) Pages(ctx context.Context, q PageQuery) ([][]byte, error) {
	s.pages.Add(1)
	return s.Source.Pages(ctx, q)
}

func (s *countingSource) Ancestors(ctx context.Context, from CommitID, n int) ([]Ancestor, error) {
	s.commits.Add(1)
	return s.Source.Ancestors(ctx, from, n)
}

// A peer that goes over many directories, differences or commits asks for many at once, and
// one that reads a key for the pages on its path alone.
func TestPeerRequests(t *testing.T) {
	db := openTest(t, nil)
	const dirs, commits = 600, 900
	for round := range 2 {
		s := begin(t, db)
		for i := range dirs {
			must.Do(t, s.Set(bg, fmt.Sprintf("d%03d/k", i), fmt.Append(nil, i, round)))
		}
		must.Get(s.Commit(bg, CommitOptions{}))(t)
	}
	head := must.Get(db.Head(bg, ""))(t)
	for i := range commits {
		s := begin(t, db)
		must.Do(t, s.Set(bg, "n", fmt.Append(nil, i)))
		must.Get(s.Commit(bg, CommitOptions{}))(t)
	}
	var reqs []kv.Request
	for i := range dirs {
		reqs = append(reqs, kv.Request{Key: fmt.Sprintf("d%03d/k", i), Range: kv.All()})
	}
	for _, c := range []struct {
		what       string
		want, most int
		run        func(p *DB, s *Snapshot) (n int, err error)
	}{
		{"list", dirs + 1, 60, func(_ *DB, s *Snapshot) (n int, err error) {
			for range s.List(bg, kv.ListOptions{}) {
				n++
			}
			return n, nil
		}},
		{"documents", dirs + 1, 60, func(_ *DB, s *Snapshot) (n int, err error) {
			for range s.Documents(bg, "") {
				n++
			}
			return n, nil
		}},
		{"get many", dirs, 60, func(_ *DB, s *Snapshot) (n int, err error) {
			out, err := kv.GetMany(bg, s, reqs)
			return len(out), err
		}},
		{"diff", dirs, 100, func(p *DB, s *Snapshot) (n int, err error) {
			for range p.Diff(bg, first(t, p, head), head, "") {
				n++
			}
			return n, nil
		}},
		{"log", commits + 3, 12, func(p *DB, s *Snapshot) (n int, err error) {
			for range p.Log(bg, s.Commit().ID) {
				n++
			}
			return n, nil
		}},
		{"get", 1, 4, func(_ *DB, s *Snapshot) (int, error) {
			_, err := s.Get(bg, "d300/k", kv.All())
			return 1, err
		}},
		{"names of one directory", 1, 4, func(_ *DB, s *Snapshot) (n int, err error) {
			for range s.ListDir(bg, "d300/") {
				n++
			}
			return n, nil
		}},
	} {
		src := &countingSource{Source: db.Source()}
		p := NewPeer("db", db.Identity(), src, testOptions(nil))
		s := must.Get(p.At(bg, "main"))(t)
		n, err := c.run(p, s)
		asked := src.pages.Load() + src.commits.Load()
		if err != nil || n != c.want || asked > int64(c.most) {
			t.Errorf("%s: %d of %d, %v, with %d requests", c.what, n, c.want, err, asked)
		}
		t.Logf("%s: %d requests", c.what, asked)
		_ = errors.Join(s.Close(), p.Close())
	}
}

// A peer that reads a part of a long log asks for two answers beyond it, not for all.
func TestPeerAsksAhead(t *testing.T) {
	db := openTest(t, &Options{FS: vfs.NewMem(), Durability: DurabilityNone})
	for i := range 3000 {
		s := begin(t, db)
		must.Do(t, s.Set(bg, "n", fmt.Append(nil, i)))
		must.Get(s.Commit(bg, CommitOptions{}))(t)
	}
	src := &countingSource{Source: db.Source()}
	p := NewPeer("db", db.Identity(), src, testOptions(nil))
	defer p.Close()
	n := 0
	for _, err := range p.Log(bg, must.Get(db.Head(bg, ""))(t)) {
		must.Do(t, err)
		if n++; n == 700 { // in the sixth answer: they have 1, 4, 16, 64, 256, 512 commits
			break
		}
	}
	if got := src.commits.Load(); got < 6 || got > 8 {
		t.Errorf("%d requests, want 6 to 8", got)
	}
}

// first is the parent of a commit.
func first(t *testing.T, db *DB, id CommitID) CommitID {
	t.Helper()
	c := must.Get(db.Lookup(bg, id))(t)
	return c.Parents[0]
}

// silentSource does not answer what refs are.
type silentSource struct {
	Source
	ended bool
}

func (s *silentSource) Refs(ctx context.Context) (branches, tags []Ref, err error) {
	if !s.ended {
		return s.Source.Refs(ctx)
	}
	<-ctx.Done()
	return nil, nil, ctx.Err()
}

// Where the other process does not answer, refs are an error until the context ends, not what
// they were or none.
func TestPeerRefsWithoutAnswer(t *testing.T) {
	db := openTest(t, nil)
	src := &silentSource{Source: db.Source()}
	p := NewPeer(db.Dir(), db.Identity(), src, testOptions(nil))
	defer p.Close()
	if len(branchesOf(p)) != 1 {
		t.Error("no branch")
	}
	src.ended = true
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if branches, _, err := p.Refs(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("branches %v, %v", branches, err)
	}
	if id, err := p.Head(ctx, ""); !errors.Is(err, context.Canceled) || errors.Is(err, ErrNoRef) {
		t.Errorf("head %v, %v", id, err)
	}
}

// A peer that is closed is not recalled any more.
func TestPeersAreForgotten(t *testing.T) {
	db := openTest(t, nil)
	for range 3 {
		must.Do(t, NewPeer(db.Dir(), db.Identity(), db.Source(), testOptions(nil)).Close())
	}
	if len(db.caches) > 0 {
		t.Errorf("%d functions are called before collections", len(db.caches))
	}
}

// To close the last version does not wait for a read that is under way.
func TestPeerClosesWhileItReads(t *testing.T) {
	must.Set(t, &releaseTime, time.Hour)
	db := openOnDisk(t, testOptions(nil))
	update(t, db, "main", large(1, "a"))
	s := peerAt(t, peerOf(t, db), "main")
	v := must.Get(s.Locate(bg, "k000"))(t)
	if err := v.View(bg, kv.All(), func([]byte) error { return s.Close() }); err != nil {
		t.Error(err)
	}
}

// Pages of an answer lie one behind the other in the memory of the caller.
func TestPagesInto(t *testing.T) {
	ctx := context.Background()
	store := overlay.New(nil, 1<<20)
	var names []PageName
	for i := range 4 {
		names = append(names, PageName{byte(i)})
		must.Do(t, store.PutPage(ctx, names[i], bytes.Repeat([]byte{byte(i)}, 10)))
	}
	for _, of := range []struct{ room, want int }{{0, 4}, {5, 1}, {10, 1}, {29, 2}, {40, 4}, {99, 4}} {
		var into []byte
		if of.room > 0 {
			into = make([]byte, 0, of.room)
		}
		pages := must.Get(somePages(ctx, store, PageQuery{Names: names, Into: into}))(t)
		if len(pages) != of.want {
			t.Errorf("room for %d bytes: %d pages, want %d", of.room, len(pages), of.want)
		}
		joined := bytes.Join(pages, nil)
		if of.room >= 10 && !bytes.Equal(into[:len(joined)], joined) {
			t.Errorf("room for %d bytes: %v is in %v", of.room, pages, into[:of.room])
		}
		for i, page := range pages {
			if want := must.Get(store.GetPage(ctx, names[i]))(t); !bytes.Equal(page, want) {
				t.Errorf("room for %d bytes: page %d is %v, want %v", of.room, i, page, want)
			}
		}
	}
}
