package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// Attach opens the database in a directory as a peer of the process that serves it. This process never
// takes the database over: where no process serves the database, the error is [ErrGone], also of what
// was opened before, until another process serves the database. dialed, if not nil, gets each
// connection that is made. The caller has the versions leased that it opens, and lists them in a file; see docs/protocol.md.
func Attach(ctx context.Context, dir string, o *DialOptions, e *engine.Options, dialed func(net.Conn)) (*engine.DB, error) {
	to := *o
	to.Dir, to.listed = dir, true
	to.holder = func() *engine.LockedError {
		held := &engine.LockedError{Dir: filepath.Join(dir, "index")}
		text, err := os.ReadFile(filepath.Join(held.Dir, "HOLDER"))
		if err != nil || json.Unmarshal(text, &held.Holder) != nil {
			return nil
		}
		return held
	}
	to.Redial = func(ctx context.Context) (conn net.Conn, err error) {
		sockets, err := Sockets(dir)
		for _, socket := range sockets {
			conn, failed := Connect(ctx, socket)
			if failed == nil {
				if dialed != nil {
					dialed(conn)
				}
				return conn, nil
			}
			if !absent(failed) {
				err = errors.Join(err, failed)
			}
		}
		if err == nil {
			err = nobodyError(dir)
		}
		return nil, err
	}
	conn, err := to.Redial(ctx)
	if errors.Is(err, os.ErrNotExist) {
		err = gone(err)
	}
	if err != nil {
		return nil, err
	}
	c, err := NewClient(ctx, conn, &to)
	if err != nil {
		return nil, err
	}
	db, err := engine.OpenPeer(dir, c.Identity(), attached{source{c, ""}}, e)
	if err != nil {
		err = errors.Join(err, c.Close())
	}
	return db, err
}

// nobodyError says that no process serves the database in a directory. It is not waited for, as by [Handover].
type nobodyError string

func (e nobodyError) Error() string {
	return fmt.Sprintf("%s: no process serves the database", string(e))
}
func (e nobodyError) Is(target error) bool { return target == os.ErrNotExist }

// attached is the source of a peer that leaves when it is closed.
type attached struct{ source }

func (s attached) Close() error { return s.c.Close() }

// Failure describes an error as the protocol does.
func Failure(err error) *wire.Failure { return failure(err) }
