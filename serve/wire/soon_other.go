//go:build !unix

package wire

import (
	"net"
	"syscall"
	"time"
)

func rawConn(net.Conn) syscall.RawConn { return nil }

func (c *Conn) look(time.Duration) bool { return false }

func (c *Conn) wait() bool { return false }
