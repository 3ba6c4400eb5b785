package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// A process checks, collects, copies and repairs a database that another process has open.
func TestCareThroughSocket(t *testing.T) {
	h, c := served(t, nil, nil)
	for i := range 4 {
		put(t, h.db, map[string][]byte{"k": random(uint64(i), 80_000), "same": random(9, 80_000)})
	}
	p := must.Get(c.Peer(nil))(t)
	defer p.Close()
	dir := filepath.Join(shortDir(t), "copy.zdb")
	seen := 0
	if r, err := p.Clone(bg, dir, txn.TransferOptions{Progress: func(txn.TransferProgress) { seen++ }}); err != nil || r.Commits != 5 || r.Verified != 5 || seen == 0 {
		t.Fatalf("clone: %+v, %v, progress %d", r, err, seen)
	}
	seen = 0
	if r, err := p.Check(bg, txn.CheckOptions{Payloads: true, Progress: func(txn.CheckProgress) { seen++ }}); err != nil || r.Commits != 5 || r.Found != 0 || seen == 0 {
		t.Errorf("check: %+v, %v, progress %d", r, err, seen)
	}
	if r, err := p.Expire(bg, txn.ExpireOptions{Keep: 1}); err != nil || r.Expired != 4 {
		t.Errorf("expire: %+v, %v", r, err)
	}
	if r, err := p.GC(bg, txn.GCOptions{DryRun: true}); err != nil || r.FreedBytes == 0 {
		t.Errorf("dry gc: %+v, %v", r, err)
	}
	if r, err := p.GC(bg, txn.GCOptions{}); err != nil || r.DeletedPages == 0 || r.Leased != 0 {
		t.Errorf("gc: %+v, %v", r, err)
	}
	v := must.Get(p.At(bg, "main"))(t)
	wantValue(t, v, "k", random(3, 80_000))
	must.Do(t, v.Close())

	// Between two databases, one of which this process has open.
	to := must.Get(engine.Open(bg, dir, &engine.Options{Author: "tester"}))(t)
	defer to.Close()
	put(t, h.db, map[string][]byte{"k": random(5, 80_000)})
	if r, err := p.Push(bg, to, txn.TransferOptions{}); err != nil || r.Commits != 1 {
		t.Errorf("push from the peer: %+v, %v", r, err)
	}
	put(t, to, map[string][]byte{"k": random(6, 80_000)})
	must.Do(t, to.Close())
	src := must.Get(engine.Open(bg, dir, &engine.Options{ReadOnly: true}))(t)
	if _, err := p.Pull(bg, src, txn.TransferOptions{}); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("pull from a database that this process has open, and does not serve: %v", err)
	}
	dirOf, err := filepath.Abs(src.Dir())
	if err != nil || dirOf != dir {
		t.Fatal(dirOf, err)
	}
	must.Do(t, src.Close())
	if r, err := p.Pull(bg, src, txn.TransferOptions{}); err != nil || r.Commits != 1 {
		t.Errorf("pull into the peer: %+v, %v", r, err)
	}
	v = must.Get(p.At(bg, "main"))(t)
	defer v.Close()
	wantValue(t, v, "k", random(6, 80_000))
}

// A peer that is stopped and reads no reports does not delay the work that it has asked for.
func TestReportsThatAreNotRead(t *testing.T) {
	h, _ := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": random(1, 80_000)})
	near, far := net.Pipe() // takes nothing that is not read
	c := newConn(h.s, new(net.UnixConn), serve.Owner("tester"))
	c.w = wire.NewConn(near, wire.Limits{}, 0)
	ended := make(chan error, 1)
	go func() {
		ended <- c.ask(bg, &wire.Frame{ID: 1, Op: wire.OpAsk, Meta: must.Get(json.Marshal(wire.Ask{Name: "gc", In: []byte("{}")}))(t)})
	}()
	header := make([]byte, 1)
	must.Get(far.Read(header))(t) // the first report has begun
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	err := txn.ErrCollecting // of the peer
	for errors.Is(err, txn.ErrCollecting) && ctx.Err() == nil {
		_, err = h.db.GC(ctx, txn.GCOptions{})
	}
	if err != nil {
		t.Errorf("a collection after that of the peer: %v", err)
	}
	far.Close()
	<-ended
}

// The process that has one database open joins the process that has the other one.
func TestPullBetweenHolders(t *testing.T) {
	runtimeDir(t)
	dir := shortDir(t)
	open := func(name string, create bool) *engine.DB {
		db := must.Get(engine.Open(bg, filepath.Join(dir, name), &engine.Options{Create: create, Author: "tester", Join: Join,
			Serve: func(dir string) (*engine.Serving, error) { return Serving(dir, nil, nil) }}))(t)
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return db
	}
	from := open("from.zdb", true)
	put(t, from, map[string][]byte{"k": random(1, 80_000)})
	must.Get(from.Clone(bg, filepath.Join(dir, "to.zdb"), txn.TransferOptions{}))(t)
	to := open("to.zdb", false)
	want := put(t, from, map[string][]byte{"k": random(2, 80_000)})
	peer := func(db *engine.DB) *engine.DB {
		c := must.Get(DialDir(bg, db.Dir(), nil))(t)
		p := must.Get(c.Peer(nil))(t)
		t.Cleanup(func() { _, _ = p.Close(), c.Close() })
		return p
	}
	pTo := peer(to)
	if r, err := pTo.Pull(bg, peer(from), txn.TransferOptions{}); err != nil || len(r.Moves) != 1 || r.Moves[0].New != want {
		t.Errorf("pull between peers: %+v, %v", r, err)
	}
	if r, err := pTo.Repair(bg, txn.CheckOptions{}, from); err != nil || r.After.Found != 0 {
		t.Errorf("repair: %+v, %v", r, err)
	}
	if _, err := pTo.Pull(bg, to, txn.TransferOptions{}); !contains(err, "the same") {
		t.Errorf("pull from itself: %v", err)
	}
}

// If the process that has the source of a transfer open is killed, the process that reads the
// source takes its place.
func TestJoinTakesOver(t *testing.T) {
	runtimeDir(t)
	dir := filepath.Join(shortDir(t), "from.zdb")
	h := hold(t, dir, nil)
	want := put(t, h.db, map[string][]byte{"k": random(1, 80_000)})
	must.Do(t, h.end())
	child := start(t, "opener", dir)
	if got := child.line(t); got != "open" {
		t.Fatal(got)
	}
	o := &engine.Options{ReadOnly: true}
	_, err := engine.Open(bg, dir, o)
	var held *engine.LockedError
	if !errors.As(err, &held) {
		t.Fatal(err)
	}
	db, done, err := Join(bg, held, o)
	must.Do(t, err)
	child.kill(t)
	v := must.Get(db.Snapshot(bg, want))(t)
	wantValue(t, v, "k", random(1, 80_000))
	if _, err := db.Begin(bg, "main"); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("begin: %v", err)
	}
	if err := errors.Join(v.Close(), done()); err != nil {
		t.Error(err)
	}
}

// The end of ctx ends what the server does for a request.
func TestAskIsCancelled(t *testing.T) {
	h, c := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": {1}})
	ctx, cancel := context.WithCancel(bg)
	number := make(chan uint64, 1)
	done := make(chan error, 1)
	asks := c.Source().(interface {
		Ask(context.Context, string, []byte, func([]byte)) ([]byte, error)
	})
	go func() {
		_, err := asks.Ask(ctx, "keep", []byte("{}"), func(b []byte) {
			var n uint64
			if err := json.Unmarshal(b, &n); err != nil {
				t.Error(err)
			}
			number <- n
		})
		done <- err
	}()
	kept := <-number
	of := txn.RecordRange{Space: 'r', Kept: kept}
	if list, _, err := c.Source().Records(bg, of); err != nil || len(list) == 0 {
		t.Errorf("%d records of the moment that is kept, %v", len(list), err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the request: %v", err)
	}
	for { // the server has to get the cancellation
		if _, _, err := c.Source().Records(bg, of); err != nil {
			break
		}
	}
	if _, err := asks.Ask(bg, "none", []byte("{}"), nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an unknown request: %v", err)
	}
	if _, err := asks.Ask(bg, "gc", []byte(`"x"`), nil); !errors.Is(err, ErrRequest) {
		t.Errorf("a request without sense: %v", err)
	}
}

// Readers ask for what changes nothing.
func TestReadersAsk(t *testing.T) {
	h, _ := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": {1}})
	reader := &serve.Principal{Name: "reader", Write: []string{"*"}}
	for in, want := range map[string]error{`{"DryRun":true}`: nil, `{}`: serve.ErrDenied, `{"dryrun":false}`: serve.ErrDenied} {
		if _, err := h.table.Answer(bg, reader, "t", "gc", []byte(in), nil); !errors.Is(err, want) {
			t.Errorf("gc %s: %v", in, err)
		}
	}
	if _, err := h.table.Answer(bg, reader, "t", "check", []byte("{}"), nil); err != nil {
		t.Error(err)
	}
}

// A request is repeated if its answer is lost, unless it changes something.
func TestAskAnswerLost(t *testing.T) {
	h, _ := served(t, nil, nil)
	path := filepath.Join(shortDir(t), "s")
	l, err := net.Listen("unix", path)
	must.Do(t, err)
	defer l.Close()
	go func() {
		for {
			u, err := l.Accept()
			if err != nil {
				return
			}
			w := wire.NewConn(u, wire.Limits{}, 0)
			hello, _ := json.Marshal(wire.Hello{Protocol: wire.Protocol, PID: os.Getpid(), Requests: 8})
			if f, err := w.Receive(); err == nil {
				_ = w.Send(&wire.Frame{ID: f.ID, Op: f.Op, Flags: wire.FlagReply, Meta: hello})
				_, _ = w.Receive()
			}
			_ = w.Close()
		}
	}()
	times := 0
	c := must.Get(Dial(bg, path, &DialOptions{Redial: func(ctx context.Context) (net.Conn, error) {
		times++
		return Connect(ctx, h.l.Path())
	}}))(t)
	defer c.Close()
	src := c.Source()
	if _, err := src.Ask(bg, "checkpoint", []byte("{}"), nil); !errors.Is(err, ErrUnknown) || !contains(err, "before it answered") || !contains(err, "whether it took place") || times != 0 {
		t.Errorf("a change: %v, %d other connections", err, times)
	}
	if _, err := src.Ask(bg, "sessions", []byte("{}"), nil); err != nil || times != 1 {
		t.Errorf("the next request: %v, %d other connections", err, times)
	}
	if c, err = Dial(bg, path, &DialOptions{Redial: func(ctx context.Context) (net.Conn, error) {
		return Connect(ctx, h.l.Path())
	}}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Source().Ask(bg, "sessions", []byte("{}"), nil); err != nil {
		t.Errorf("a request that changes nothing: %v", err)
	}
}

// Errors of care keep their types.
func TestCareErrors(t *testing.T) {
	over := func(err error) error {
		meta := must.Get(json.Marshal(failure(fmt.Errorf("gc: %w", err))))(t)
		return remote(meta)
	}
	damage := &txn.DamageError{Problems: []txn.Problem{{Kind: txn.ProblemPayload, Key: "k", Err: kv.ErrCorrupt}}, Err: kv.ErrCorrupt}
	var gotDamage *txn.DamageError
	if err := over(damage); !errors.As(err, &gotDamage) || !errors.Is(err, kv.ErrCorrupt) || gotDamage.Problems[0].Key != "k" || err.Error() != "gc: "+damage.Error() {
		t.Errorf("%v", err)
	}
	base := &txn.BaseError{Base: txn.CommitID{1}, Undone: []*txn.Commit{{ID: txn.CommitID{2}, Message: "m"}}}
	var gotBase *txn.BaseError
	if err := over(base); !errors.As(err, &gotBase) || gotBase.Error() != base.Error() {
		t.Errorf("%v", err)
	}
	for _, c := range []struct{ narrow, wide error }{{txn.ErrDiverged, txn.ErrConflict}, {txn.ErrShallow, txn.ErrExpired}} {
		if err := over(c.narrow); !errors.Is(err, c.narrow) || !errors.Is(err, c.wide) {
			t.Errorf("%v", err)
		}
	}
}
