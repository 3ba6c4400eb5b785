package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
)

// Serving is [engine.Options].Serve: the database in dir is served on its socket
// for as long as it is open. Stop waits for requests that are under way. ended,
// if not nil, is called when serving has ended by itself, with [ErrIdle] or a failure,
// and if there is no place for a socket: then the server tries again each second. With
// ended, serving also ends when the database fails, with [engine.ErrFailed]: the caller
// closes the database and opens it again. Without ended, reading goes on.
func Serving(dir string, o *Options, ended func(error)) (*engine.Serving, error) {
	at, err := sockets.Place(dir)
	if err != nil {
		var missing error
		if at, missing = sockets.Inside(dir); missing != nil {
			return nil, nil //nolint:nilerr // opening says why
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	table := serve.New(serve.Options{})
	var s *server
	done := make(chan struct{})
	return &engine.Serving{
		Socket: at.Path,
		Start: func(db *engine.DB) error {
			if err := table.AddDatabase(databaseName(dir), db); err != nil {
				return err
			}
			s = newServer(&sockets.Listener{Dir: at.Dir, Readers: at.Readers(), At: at}, table, o)
			if ended != nil {
				s.failed = db.Versions().Failed
			}
			if !db.ReadOnly() {
				removeLeft(at.Dir)
			}
			if failed := s.keepSockets(ctx); len(s.sockets) == 0 && ended != nil {
				ended(fmt.Errorf("serve %s: there is no place for a socket: %v", dir, errors.Join(err, failed))) //nolint:errorlint // a missing folder is no missing database
			}
			go func() {
				defer close(done)
				if err := s.serve(ctx); err != nil && ended != nil {
					ended(err)
				}
			}()
			return nil
		},
		Dial: func() (net.Conn, error) { return s.dial() },
		Stop: func() error {
			cancel()
			<-done
			return table.Close(context.Background())
		},
	}, nil
}

// removeLeft removes the socket that a killed process has left in the directory of a database.
func removeLeft(dir string) {
	if in, err := sockets.Inside(dir); err == nil {
		if fi, err := os.Lstat(in.Path); err == nil && fi.Mode().Type() == fs.ModeSocket {
			_ = os.Remove(in.Path)
		}
	}
}

// databaseName returns the name of the database in a directory.
func databaseName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}
