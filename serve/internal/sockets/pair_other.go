//go:build !unix

package sockets

import (
	"errors"
	"net"
)

// CanPair says that connections are passed to other processes.
const CanPair = false

// Pair is not supported here.
func Pair() (a, b *net.UnixConn, err error) { return nil, nil, errors.ErrUnsupported }
