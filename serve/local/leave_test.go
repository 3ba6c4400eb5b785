package local

import (
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// A server that ends between a client's hello and its first request says that it did
// not begin with that.
func TestLeaveAfterHello(t *testing.T) {
	h, _ := served(t, nil, nil)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(shortDir(t), "s")})
	must.Do(t, err)
	defer l.Close()
	there := must.Get(net.Dial("unix", l.Addr().String()))(t)
	here := must.Get(l.AcceptUnix())(t)
	s := newServer(h.l, h.table, nil)
	c := newConn(s, here, serve.Owner("x"))
	c.leave()
	go c.serve()
	link := must.Get(newLink(bg, there, &Client{}))(t)
	defer link.close(ErrGone)
	_, err = link.call(bg, &wire.Frame{Op: wire.OpRefs, Meta: []byte("{}")}, true)
	if !errors.Is(err, ErrGone) || errors.Is(err, ErrUnknown) {
		t.Errorf("%v, want ErrGone that is known", err)
	}
}
