//go:build !unix

package local

import (
	"errors"
	"net"
)

const canLend = false

func socketPair() (a, b *net.UnixConn, err error) { return nil, nil, errors.ErrUnsupported }
