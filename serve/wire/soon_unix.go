//go:build unix

package wire

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// rawConn is what Soon looks at; nil where it cannot.
func rawConn(c net.Conn) syscall.RawConn {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// look reports whether something arrives in time, or has gone wrong.
func (c *Conn) look(wait time.Duration) (here bool) {
	var first [1]byte
	err := c.raw.Read(func(fd uintptr) bool {
		for until := time.Now().Add(wait); ; {
			_, _, err := syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK)
			if here = err != syscall.EAGAIN && err != syscall.EINTR; here || time.Now().After(until) {
				return true // without waiting for more
			}
		}
	})
	return here || err != nil
}

// wait sleeps until something arrives, or has gone wrong. It is false after a deadline.
func (c *Conn) wait() bool {
	var first [1]byte
	err := c.raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK)
		return err != syscall.EAGAIN
	})
	return !errors.Is(err, os.ErrDeadlineExceeded)
}
