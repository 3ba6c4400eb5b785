package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zarrdb/zarrdb/serve/wire"
)

// Clients that run commands themselves read the database through a copy of its index,
// which ends with their connection.

// maxCopies bounds the copies of all clients together: each keeps the disk space of
// what was replaced since.
const maxCopies = 16

func (c *conn) copyIndex(ctx context.Context, in *wire.Database) (*wire.Copy, error) {
	db, err := c.db(in.Database)
	if err != nil {
		return nil, err
	}
	if n := c.s.copies.Add(1); n > maxCopies {
		c.s.copies.Add(-1)
		return nil, fmt.Errorf("%w: %d commands of other processes read the database", ErrLimit, n-1)
	}
	made, err := db.CopyIndex(ctx)
	if err != nil {
		c.s.copies.Add(-1)
		return nil, err
	}
	c.mu.Lock()
	c.copies = append(c.copies, made)
	c.mu.Unlock()
	if !c.who.Admin {
		if err := c.s.l.share(filepath.Join(db.Dir(), filepath.FromSlash(made.Name()))); err != nil {
			return nil, err
		}
	}
	return &wire.Copy{Path: made.Name()}, nil
}

// removeCopies removes the copies of this client, when its last request has ended.
func (c *conn) removeCopies() {
	for _, made := range c.copies {
		if err := made.Close(); err != nil {
			c.s.o.Log.Warn("remove the copy of an index", "error", err)
		}
		c.s.copies.Add(-1)
	}
}

// share lets users read a copy of the index if they may connect to the socket, whatever
// the umask of this process is.
func (l *Listener) share(path string) error {
	err := filepath.WalkDir(path, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return l.shareFile(path)
	})
	return errors.Join(err, l.shareFile(filepath.Dir(path)))
}

func (l *Listener) shareFile(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	add := l.mode & 0o044
	if fi.IsDir() {
		add |= add >> 2
	}
	if fi.Mode().Perm()|add == fi.Mode().Perm() {
		return nil
	}
	if l.mode&0o004 == 0 {
		_ = os.Chown(path, -1, l.gid) // without effect if this user is not in the group
	}
	return os.Chmod(path, fi.Mode().Perm()|add)
}
