package local

import (
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// A server that ends between a client's hello and its first request says that it did
// not begin with that.
func TestLeaveAfterHello(t *testing.T) {
	h, _ := served(t, nil, nil)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(shortDir(t), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(h.l, h.table, &Options{Database: "t"})
	c := newConn(s, here, serve.Owner("x"))
	c.leave()
	go c.serve()
	link, err := newLink(bg, there, &Client{})
	if err != nil {
		t.Fatal(err)
	}
	defer link.close(ErrGone)
	_, err = link.call(bg, &wire.Frame{Op: wire.OpDatabases, Meta: []byte("{}")}, true)
	if !errors.Is(err, ErrGone) || errors.Is(err, ErrUnknown) {
		t.Errorf("%v, want ErrGone that is known", err)
	}
}
