package local

import (
	"net"

	"golang.org/x/sys/unix"
)

// peer returns the user of the process at the other end.
func peer(c *net.UnixConn) (uid int, ok bool, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, false, err
	}
	return int(cred.Uid), true, nil
}
