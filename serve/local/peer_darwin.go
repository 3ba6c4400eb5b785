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
	var cred *unix.Xucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED) })
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, false, err
	}
	return int(cred.Uid), true, nil
}
