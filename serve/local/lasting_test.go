package local

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
)

// handedOver ends the server of h, whose process waits for requests as a command does, and serves
// the database again. It fails if a request that peers have under way keeps the server.
func handedOver(t *testing.T, h *holder) *holder {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- h.end() }()
	select {
	case err := <-done:
		must.Do(t, err)
	case <-time.After(time.Minute): // it would wait for ever
		t.Fatal("the server waits for a request that does not end before the server has")
	}
	return hold(t, h.db.Dir(), &Options{Hurry: h.s.o.Hurry})
}

// patientServer is a database that is served as commands serve it, and a client that goes on with the
// next server.
func patientServer(t *testing.T) (*holder, *Client) {
	t.Helper()
	h, _ := served(t, &Options{Hurry: make(chan struct{})}, nil)
	c := must.Get(Dial(bg, h.l.Path(), &DialOptions{Dir: h.db.Dir(), Redial: func(ctx context.Context) (net.Conn, error) { return Connect(ctx, h.l.Path()) }}))(t)
	t.Cleanup(func() { leave(c) })
	return h, c
}

// A process that has done its work gives the database up beside each request that may last, and the
// peer goes on with the next process. The request "keep" of a transfer is under way then, since
// the peer does not go on before the end; gc and fsck may have been answered.
func TestHandoverBesideLastingRequests(t *testing.T) {
	for what, run := range map[string]func(t *testing.T, p, other *engine.DB, meanwhile func()) error{
		"backup": func(t *testing.T, p, _ *engine.DB, meanwhile func()) error {
			dir := filepath.Join(shortDir(t), "b.zdb")
			_, err := p.Backup(bg, dir, txn.TransferOptions{Progress: func(txn.TransferProgress) { meanwhile() }})
			if err == nil {
				wantCopy(t, dir)
			}
			return err
		},
		"clone": func(t *testing.T, p, _ *engine.DB, meanwhile func()) error {
			dir := filepath.Join(shortDir(t), "c.zdb")
			_, err := p.Clone(bg, dir, txn.TransferOptions{Progress: func(txn.TransferProgress) { meanwhile() }})
			if err == nil {
				wantCopy(t, dir)
			}
			return err
		},
		"push": func(t *testing.T, p, other *engine.DB, meanwhile func()) error {
			_, err := p.Push(bg, other, txn.TransferOptions{
				Refs:     []txn.RefSpec{{From: "main", To: "pushed"}},
				Progress: func(txn.TransferProgress) { meanwhile() },
			})
			if err == nil {
				wantKey(t, other, "pushed", "later", []byte{1})
			}
			return err
		},
		"fsck": func(t *testing.T, p, _ *engine.DB, meanwhile func()) error {
			r, err := p.Check(bg, txn.CheckOptions{Payloads: true, Progress: func(txn.CheckProgress) { meanwhile() }})
			if err == nil && (r.Found > 0 || r.Commits < 3) {
				t.Errorf("fsck: %+v", r)
			}
			return err
		},
		"gc": func(t *testing.T, p, _ *engine.DB, meanwhile func()) error {
			_, err := p.GC(bg, txn.GCOptions{Progress: func(txn.GCProgress) { meanwhile() }})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			h, c := patientServer(t)
			for i := range 2 {
				put(t, h.db, map[string][]byte{"k": random(uint64(i), 80_000)})
			}
			p := must.Get(c.Peer(nil))(t)
			defer p.Close()
			other := must.Get(engine.Open(bg, filepath.Join(shortDir(t), "o.zdb"), &engine.Options{Create: true}))(t)
			defer other.Close()
			times := 0
			meanwhile := func() {
				if times++; times > 1 {
					return
				}
				h = handedOver(t, h)
				// The next process removes what nothing keeps for the peer.
				put(t, h.db, map[string][]byte{"k": random(9, 80_000), "later": {1}})
				must.Get(h.db.Expire(bg, txn.ExpireOptions{Keep: 1}))(t)
				must.Get(h.db.GC(bg, txn.GCOptions{}))(t)
			}
			if err := run(t, p, other, meanwhile); err != nil {
				t.Errorf("%s beside a hand-over: %v", what, err)
			}
			if times == 0 {
				t.Errorf("%s told of no progress", what)
			}
		})
	}
}

// wantCopy checks a copy that was made beside handedOver.
func wantCopy(t *testing.T, dir string) {
	t.Helper()
	db := must.Get(engine.Open(bg, dir, nil))(t)
	defer db.Close()
	wantKey(t, db, "main", "later", []byte{1})
	r, err := db.Check(bg, txn.CheckOptions{Payloads: true})
	if err != nil || r.Found > 0 {
		t.Errorf("the copy: %v, %v", r.Problems, err)
	}
}
