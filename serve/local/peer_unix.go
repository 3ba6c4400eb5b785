//go:build linux || darwin

package local

import "net"

// peer returns the user of the process at the other end.
func peer(c *net.UnixConn) (uid int, ok bool, err error) {
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
