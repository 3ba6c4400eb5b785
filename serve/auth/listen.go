package auth

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/zarrdb/zarrdb/internal/hostname"
)

// errOpen means that a server would allow access without a key, or would send
// keys unencrypted.
var errOpen = errors.New("auth: refused")

// Listen describes how a server will listen.
type Listen struct {
	// Address is host:port, or the path of a Unix socket after "unix:".
	Address string
	// Keys means that there is a key file; ReadOnly that all writes are refused.
	Keys, ReadOnly bool
	// TLS means that the server, or a proxy in front of it, encrypts
	// connections.
	TLS bool
}

// On returns l with the address of a listener. A listener can have another address than the option names: a
// host name may resolve to any address, and a service manager hands over any socket.
func (l Listen) On(at net.Addr) Listen {
	l.Address = at.String()
	if at.Network() == "unix" {
		l.Address = "unix:" + l.Address
	}
	return l
}

// Local reports whether only this machine can connect.
func (l Listen) Local() bool {
	return strings.HasPrefix(l.Address, "unix:") || hostname.IsLoopback(l.Address)
}

// Check returns nil for a server that is safe to start, and otherwise an ErrOpen
// that names the missing option or the port.
func (l Listen) Check() error {
	_, _, err := net.SplitHostPort(l.Address)
	switch {
	case l.Address == "unix:":
		return fmt.Errorf("listen on %s: %w: want unix:PATH, the path of a socket", l.Address, errOpen)
	case err != nil && !strings.HasPrefix(l.Address, "unix:"):
		return fmt.Errorf("listen on %s: %w: want HOST:PORT, such as localhost:8080, or :PORT for every address of this machine", l.Address, errOpen)
	case !l.Keys && !l.Local():
		return fmt.Errorf("listen on %s: %w: other machines can connect, which needs a key file (--keys); without one listen on localhost", l.Address, errOpen)
	case !l.Keys && !l.ReadOnly:
		return fmt.Errorf("listen on %s: %w: every user of this machine could write; give a key file (--keys), or serve read-only (--read-only)", l.Address, errOpen)
	case l.Keys && !l.TLS && !l.Local():
		return fmt.Errorf("listen on %s: %w: keys would be sent in the clear; give a certificate (--tls-cert, --tls-key), or, if a proxy in front encrypts, --behind-tls-proxy, or listen on localhost", l.Address, errOpen)
	}
	return nil
}
