// Package hostname reads the names of hosts.
package hostname

import (
	"net"
	"net/netip"
	"strings"
)

// Of returns a host, which may have a port, without the port and without the brackets
// of an IPv6 address.
func Of(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

// IsLoopback reports whether a host, with or without a port, is this machine on every
// system: "localhost" or a loopback address. Other names can lead to other machines, even
// if they end with ".localhost".
func IsLoopback(host string) bool {
	name := Of(host)
	at, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && at.IsLoopback()
}
