//go:build unix && !aix

package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
)

// dropAll makes all versions but the head expire, and collects.
func dropAll(ctx context.Context, db *engine.DB) (*txn.GCReport, error) {
	_, err := db.Expire(ctx, txn.ExpireOptions{Keep: 1, Before: time.Now().Add(time.Hour)})
	if err != nil {
		return nil, err
	}
	return db.GC(ctx, txn.GCOptions{})
}

// A reader has a version open and has not read the version yet. The version expires, and the
// process that has the database open is killed, several times. The next process collects nothing
// of the version, also while the reader sends no request. While the reader is stopped, a
// collection fails and names the reader. After the reader is killed, the space comes back.
func TestLeaseOutlivesHolders(t *testing.T) {
	runtimeDir(t)
	dir := filepath.Join(shortDir(t), "t.zdb")
	first := hold(t, dir, nil)
	old, new := map[string][]byte{}, map[string][]byte{}
	want := sha256.New()
	for i := range 30 {
		key := fmt.Sprintf("x/%02d", i)
		old[key], new[key] = random(uint64(i), 100<<10), []byte("small")
		want.Write(old[key])
	}
	put(t, first.db, old)
	must.Do(t, first.end())
	holder := startHolder(t, dir)
	keeper := start(t, "keeper", dir)
	if got := keeper.line(t); got != "open" {
		t.Fatal(got)
	}
	writer := peerOfDir(t, dir)
	put(t, writer, new)
	must.Get(dropAll(bg, writer))(t)
	for range 2 {
		holder.kill(t)
		holder = startHolder(t, dir)
		if r, err := dropAll(bg, peerOfDir(t, dir)); err != nil || r.FreedBytes > 0 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	keeper.say(t, "read")
	if got := keeper.line(t); got != fmt.Sprintf("%x", want.Sum(nil)) {
		t.Errorf("the reader read %s", got)
	}

	stop(t, keeper)
	holder.kill(t)
	last := hold(t, dir, nil)
	ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
	defer cancel()
	_, err := dropAll(ctx, last.db)
	if pid := strconv.Itoa(keeper.cmd.Process.Pid); !errors.Is(err, txn.ErrPeersAway) || !strings.Contains(err.Error(), "process "+pid) {
		t.Fatalf("while process %s is stopped: %v", pid, err)
	}
	if _, err := last.db.GC(bg, txn.GCOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	must.Do(t, keeper.cmd.Process.Signal(syscall.SIGCONT))
	if r, err := dropAll(bg, last.db); err != nil || r.FreedBytes > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	keeper.say(t, "read")
	if got := keeper.line(t); got != fmt.Sprintf("%x", want.Sum(nil)) {
		t.Errorf("the reader read %s", got)
	}
	keeper.kill(t)
	frees(t, last, 2<<20)
	if left, err := os.ReadDir(filepath.Join(dir, "peers")); err != nil || len(left) > 1 { // of the first writer
		t.Errorf("files of peers are left: %v, %v", left, err)
	}
}

// peerOfDir joins the process that has the database in dir open.
func peerOfDir(t *testing.T, dir string) *engine.DB {
	t.Helper()
	p := must.Get(joinDir(t, dir).Peer(nil))(t)
	t.Cleanup(func() { p.Close() })
	return p
}

// The versions of a client whose connection ends are kept while the client lives.
func TestLeaseOutlivesConnection(t *testing.T) {
	h, c := served(t, nil, nil)
	want := random(1, 100<<10)
	put(t, h.db, map[string][]byte{"k": want})
	v := version(t, c, "")
	put(t, h.db, map[string][]byte{"k": []byte("small")})
	dropVersions(t, h)
	c.busy.WaitLock() // the client does not connect again before the collection
	c.l.shut(true)
	<-c.l.ended
	if r := collect(t, h); r.FreedBytes > 0 {
		t.Errorf("collected %+v", r)
	}
	c.busy.Unlock()
	wantValue(t, v, "k", want)
	must.Do(t, v.Close())
	must.Do(t, c.Close())
	frees(t, h, int64(len(want)))
}

// frees expects that collections free so many bytes, as soon as the server knows that a client
// has ended.
func frees(t *testing.T, h *holder, want int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	for got := int64(0); got < want; {
		r, err := dropAll(ctx, h.db)
		if err != nil {
			t.Fatalf("%d bytes came back: %v", got, err)
		}
		got += r.FreedBytes
	}
}
