package local

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// TokenSize is the length of what each side of a [Bridge] proves itself with, in bytes.
const TokenSize = 32

// Bridge connects a client without Unix sockets, which listens at a TCP address of this
// machine, to the process that serves the database in dir:
//
//	client ◀──TCP──▶ Bridge ◀──Unix socket──▶ server
//
// It sends the first TokenSize bytes of tokens to the client, and expects the other
// TokenSize from it, so that no other program is connected in the client's place. Then
// it copies bytes both ways until both sides have ended. Descriptors do not pass.
// os.ErrNotExist if no process serves the database.
func Bridge(ctx context.Context, dir, addr string, tokens [2 * TokenSize]byte) error {
	s, err := serverOf(dir, func(socket string) (net.Conn, error) { return Connect(ctx, socket) })
	if err != nil {
		return err
	}
	server := s.(*net.UnixConn)
	defer server.Close()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	client := c.(*net.TCPConn)
	defer client.Close()
	defer context.AfterFunc(ctx, func() { _, _ = server.Close(), client.Close() })()
	var got [TokenSize]byte
	_ = client.SetDeadline(time.Now().Add(helloTime)) // if it fails so does what follows
	if _, err = client.Write(tokens[:TokenSize]); err == nil {
		_, err = io.ReadFull(client, got[:])
	}
	if err == nil && subtle.ConstantTimeCompare(got[:], tokens[TokenSize:]) != 1 {
		err = errors.New("another program listens there")
	}
	if err != nil {
		return fmt.Errorf("bridge to %s: %w", addr, err)
	}
	_ = client.SetDeadline(time.Time{})
	done := make(chan struct{})
	go func() {
		relay(server, client)
		close(done)
	}()
	relay(client, server)
	<-done
	return ctx.Err()
}

// half is a connection whose two directions end one by one.
type half interface {
	net.Conn
	CloseWrite() error
}

// relay copies from one connection to the other until it ends, then ends that direction.
// If to does not take the bytes, the rest of them is thrown away: to close from before would
// also lose what goes the other way.
func relay(to, from half) {
	_, _ = io.Copy(to, from)
	_ = to.CloseWrite()
	_, _ = io.Copy(io.Discard, from)
}
