//go:build !linux && !darwin

package local

import "net"

// peer cannot tell here: who gets to the socket is the user.
func peer(*net.UnixConn) (uid int, ok bool, err error) { return 0, false, nil }
