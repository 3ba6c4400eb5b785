//go:build unix && !aix

package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// A reader maps the packs that it reads, and gives them back when it has closed its
// versions.
func TestPacksAreGivenBack(t *testing.T) {
	h, c := served(t, nil, nil)
	keys := map[string][]byte{}
	for i := range 20 {
		keys[fmt.Sprintf("x/%d", i)] = random(uint64(i), 100<<10)
	}
	put(t, h.db, keys)
	v := version(t, c, "")
	for key, want := range keys {
		wantValue(t, v, key, want)
	}
	must.Do(t, v.Close())
	small := map[string][]byte{}
	for i := range 20 {
		if i != 4 {
			small[fmt.Sprintf("x/%d", i)] = []byte("small")
		}
	}
	put(t, h.db, small)
	dropVersions(t, h)
	if r := collect(t, h); r.Leased > 0 || r.FreedBytes == 0 {
		t.Errorf("after the reader has closed its version: %+v", r)
	}
	// They are lent again where they are needed again.
	wantValue(t, version(t, c, ""), "x/4", keys["x/4"])
}

// A damaged value is an error here as it is there.
func TestDamageIsSeen(t *testing.T) {
	h, c := served(t, nil, nil)
	want := random(1, 200<<10)
	put(t, h.db, map[string][]byte{"k": want})
	packs, err := filepath.Glob(filepath.Join(h.db.Dir(), "packs", "*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatal(packs, err)
	}
	damage := func(with byte) {
		for _, path := range packs {
			b := must.Get(os.ReadFile(path))(t)
			if at := bytes.Index(b, want[1000:1100]); at >= 0 {
				f, err := os.OpenFile(path, os.O_WRONLY, 0)
				if err == nil {
					_, err = f.WriteAt([]byte{with}, int64(at)+200)
					err = errors.Join(err, f.Close())
				}
				must.Do(t, err)
			}
		}
	}
	v := version(t, c, "")
	damage(want[1200] + 1)
	defer damage(want[1200])
	if _, err := kv.Get(bg, v, "k"); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("get: %v", err)
	}
}

func collect(t testing.TB, h *holder) *txn.GCReport {
	t.Helper()
	r := must.Get(h.db.GC(bg, txn.GCOptions{}))(t)
	return r
}

// dropVersions makes everything but the head expire.
func dropVersions(t testing.TB, h *holder) {
	t.Helper()
	must.Get(h.db.Expire(bg, txn.ExpireOptions{Keep: 1, Before: time.Now().Add(time.Hour)}))(t)
}

// A version is kept for a client that reads it. When it has closed the version, but
// goes on to read a value from its map, gc leaves the file; when it ends, also by a
// kill, the space is given back.
func TestCollectBesideLease(t *testing.T) {
	h, _ := served(t, nil, nil)
	const n = 12
	keys := map[string][]byte{}
	for i := range n {
		keys[fmt.Sprintf("x/%02d", i)] = random(uint64(i), 1<<20)
	}
	old := put(t, h.db, keys)
	want := keys["x/03"]
	// Odd ones stay, so that the pack is live in part.
	changed := map[string][]byte{}
	for i := 1; i < n; i += 2 {
		changed[fmt.Sprintf("x/%02d", i)] = []byte("small")
	}
	put(t, h.db, changed)

	child := start(t, "reader", h.l.Path(), old.String(), "x/03")
	if got := child.line(t); got != "reading" {
		t.Fatal(got)
	}
	dropVersions(t, h)
	if r := collect(t, h); r.FreedBytes > 1<<20 {
		t.Errorf("freed while a client has the version open: %+v", r)
	}
	child.say(t, "close")
	if got := child.line(t); got != "closed" {
		t.Fatal(got)
	}
	h.table.Close(bg) // so that the server does not keep the version open for the next one
	r := collect(t, h)
	if r.Leased == 0 || r.FreedBytes > 0 {
		t.Errorf("beside a map of a client: %+v", r)
	}
	child.say(t, "sum")
	if got := child.line(t); got != fmt.Sprintf("%x", sum(want)) {
		t.Error("the mapped bytes have changed")
	}
	child.kill(t)
	if r := collect(t, h); r.Leased != 0 || r.FreedBytes < (n/2-1)<<20 {
		t.Errorf("after the client was killed: %+v", r)
	}
}

// A descriptor that is open on neither side is none too many: after many views of
// many packs both sides have as many as before.
func TestNoDescriptorsLeak(t *testing.T) {
	h, c := served(t, nil, nil)
	var commits []txn.CommitID
	for i := range 4 {
		commits = append(commits, put(t, h.db, map[string][]byte{"k": random(uint64(i), 20<<20), fmt.Sprint(i): random(9, 40<<10)}))
	}
	use := func() {
		for i, id := range commits {
			v := must.Get(viewOf(t, c, id.String()))(t)
			wantValue(t, v, "k", random(uint64(i), 20<<20))
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		}
		other := must.Get(Dial(bg, h.l.Path(), nil))(t)
		v := must.Get(viewOf(t, other, ""))(t)
		wantValue(t, v, "3", random(9, 40<<10))
		other.Close()
	}
	must.Do(t, h.db.Checkpoint(bg)) // a checkpoint that is due opens a file of the index later
	use()                           // so does the first read of a table
	before := descriptors(t)
	for range 5 {
		use()
	}
	after := descriptors(t)
	for begun := time.Now(); after > before; after = descriptors(t) { // the server has yet to see that connections ended
		if time.Since(begun) > time.Minute {
			t.Fatalf("%d descriptors, %d before", after, before)
		}
		time.Sleep(time.Millisecond)
	}
}

// A second client opens a version that expired while the first one has it open.
func TestOpenVersionOfAnotherClient(t *testing.T) {
	h, c := served(t, nil, nil)
	old := put(t, h.db, map[string][]byte{"k": []byte("old")})
	first := version(t, c, "")
	put(t, h.db, map[string][]byte{"k": []byte("new")})
	dropVersions(t, h)
	collect(t, h)
	second := version(t, join(t, h, nil), old.String())
	must.Do(t, first.Close())
	dropVersions(t, h)
	collect(t, h)
	wantValue(t, second, "k", []byte("old"))
}
