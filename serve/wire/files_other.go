//go:build !unix

package wire

import (
	"net"
	"os"
)

var oobSize = 0

func canSendFiles(net.Conn) bool { return false }

func receive(c net.Conn, p, _ []byte) (int, []*os.File, error) {
	n, err := c.Read(p)
	return n, nil, err
}

func sendFiles(net.Conn, []byte, []Descriptor) (int, error) { return 0, ErrNoFiles }
