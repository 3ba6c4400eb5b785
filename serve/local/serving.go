package local

import (
	"context"
	"path/filepath"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve"
)

// Serving is [engine.Options].Serve: the database in dir is served on its socket
// for as long as it is open. Stop waits for requests that are under way. ended,
// if not nil, is called once when serving has ended by itself, with [ErrIdle] or
// a failure. nil without an error means that no place for a socket exists.
func Serving(dir string, o *Options, ended func(error)) (*engine.Serving, error) {
	at, err := place(dir)
	if err != nil {
		return nil, nil //nolint:nilerr // the database can be used all the same
	}
	ctx, cancel := context.WithCancel(context.Background())
	table := serve.New(serve.Options{})
	done := make(chan struct{})
	return &engine.Serving{
		Socket: at.path,
		Start: func(db *engine.DB) error {
			if err := table.AddDatabase(databaseName(dir), db); err != nil {
				return err
			}
			l, err := at.listen()
			go func() {
				defer close(done)
				for ; err != nil; l, err = at.listen() { // others wait meanwhile
					select {
					case <-time.After(watchPause):
					case <-ctx.Done():
						return
					}
				}
				if err := Serve(ctx, l, table, o); err != nil && ended != nil {
					ended(err)
				}
			}()
			return nil
		},
		Stop: func() error {
			cancel()
			<-done
			return table.Close(context.Background())
		},
	}, nil
}

// databaseName returns the name of the database in a directory.
func databaseName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}
