package auth

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrOpen means that a server would be open to people who should have a key, or
// would send keys in the clear.
var ErrOpen = errors.New("auth: refused")

// Listen says how a server is about to listen.
type Listen struct {
	// Address is host:port, or the path of a Unix socket after "unix:".
	Address string
	// Keys says that there is a key file; ReadOnly that nothing can be written.
	Keys, ReadOnly bool
	// TLS says that connections are encrypted, or that a proxy in front does so.
	TLS bool
}

// Local reports whether only this machine can connect.
func (l Listen) Local() bool {
	if strings.HasPrefix(l.Address, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Check returns nil for a server that is safe to start, and otherwise an ErrOpen
// that names what is missing.
func (l Listen) Check() error {
	switch {
	case !l.Keys && !l.Local():
		return fmt.Errorf("listen on %s: %w: other machines can connect, which needs a key file; without one listen on localhost", l.Address, ErrOpen)
	case !l.Keys && !l.ReadOnly:
		return fmt.Errorf("listen on %s: %w: anybody on this machine could write; give a key file, or serve read-only", l.Address, ErrOpen)
	case l.Keys && !l.TLS && !l.Local():
		return fmt.Errorf("listen on %s: %w: keys would be sent in the clear; give a certificate, or listen on localhost behind a proxy with TLS", l.Address, ErrOpen)
	}
	return nil
}
