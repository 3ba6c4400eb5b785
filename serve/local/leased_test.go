package local

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// A version that was leased on a connection that has ended is leased again: others were
// renewed on the next one before it was noted.
func TestLeaseOfLostConnection(t *testing.T) {
	h, c := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": []byte("v")})
	in := must.Get(ask[wire.Lease](bg, c.l, wire.OpLease, wire.Open{}))(t)
	commit := must.Get(txn.DecodeCommit(commitID(in.ID), in.Record))(t)
	late := &lease{c: c, commit: commit, l: c.l, handle: in.View}
	dir := h.db.Dir()
	must.Do(t, h.end())
	hold(t, dir, nil)
	must.Get(c.Source().Resolve(bg, ""))(t)
	if err := c.keep(late); !errors.Is(err, ErrGone) || len(c.leases) > 0 {
		t.Errorf("%v, %d leases", err, len(c.leases))
	}
}

// While a goroutine connects again, others give up when their contexts end, versions are
// closed, and so is the client.
func TestWaitForConnection(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	redial := func(context.Context) (net.Conn, error) {
		close(begun)
		<-end
		return nil, txn.ErrClosed
	}
	h, c := served(t, nil, &DialOptions{Redial: redial})
	put(t, h.db, map[string][]byte{"k": []byte("v")})
	v := version(t, c, "")
	must.Do(t, h.end())
	<-c.l.ended
	first := make(chan error)
	go func() {
		_, err := c.Source().Resolve(bg, "")
		first <- err
	}()
	<-begun
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := c.Source().Resolve(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := errors.Join(v.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	close(end)
	if err := <-first; !errors.Is(err, txn.ErrClosed) {
		t.Error(err)
	}
}

// A version that is released while it is renewed is not kept on the new connection.
func TestReleasedWhileRenewed(t *testing.T) {
	h, c := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": []byte("v")})
	v := version(t, c, "")
	var k *lease
	for k = range c.leases {
	}
	l := must.Get(c.connect(bg))(t)
	defer l.close(txn.ErrClosed)
	in := must.Get(ask[wire.Lease](bg, l, wire.OpLease, wire.Open{}))(t)
	must.Do(t, v.Close())
	for _, letGo := range c.letGo { // as a recall does
		(*letGo)()
	}
	if c.renewed(k, l, in.View, nil) || k.l == l {
		t.Error("a lease that was released was renewed")
	}
}

// A peer that is closed is not recalled any more.
func TestPeersAreForgotten(t *testing.T) {
	_, c := served(t, nil, nil)
	for range 3 {
		p := must.Get(c.Peer(nil))(t)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(c.letGo) > 0 {
		t.Errorf("%d peers are recalled", len(c.letGo))
	}
}
