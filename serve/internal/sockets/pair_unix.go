//go:build unix

package sockets

import (
	"net"
	"os"
	"syscall"
)

// CanPair says that connections are passed to other processes.
const CanPair = true

// Pair returns two connections to each other.
func Pair() (a, b *net.UnixConn, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		c, failed := net.FileConn(f) // a copy of the descriptor
		_ = f.Close()
		if conns[i], _ = c.(*net.UnixConn); failed != nil {
			err = failed
		}
	}
	if err != nil {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
		return nil, nil, err
	}
	return conns[0], conns[1], nil
}
