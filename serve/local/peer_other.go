//go:build !linux && !darwin

package local

import "net"

// peer is unknown here: every process that can connect is treated as the user.
func peer(*net.UnixConn) (uid int, ok bool, err error) { return 0, false, nil }
