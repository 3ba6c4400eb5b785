//go:build linux || darwin

package sockets

import "net"

// UserOf returns the user of the process at the other end.
func UserOf(c *net.UnixConn) (uid int, ok bool, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var user uint32
	var failed error
	if err = raw.Control(func(fd uintptr) { user, failed = peerUID(int(fd)) }); err == nil {
		err = failed
	}
	return int(user), err == nil, err
}
