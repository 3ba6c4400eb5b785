package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/local"
)

// Commands that read versions ask the process that has the database open for pages, also if
// that process is of another user or another build. The commands use the credentials and the
// allowed prefixes of their own process.

// joined are the processes through which a command reads, until it ends.
type joined struct {
	mu      sync.Mutex
	clients []*local.Client
	peers   []*engine.DB
}

// peer opens a database for reading through the process that has the database open.
func (j *joined) peer(ctx context.Context, held *engine.LockedError, o *engine.Options) (*engine.DB, error) {
	c, err := j.to(ctx, held)
	if err != nil {
		return nil, err
	}
	p, err := c.Peer("", o)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.peers = append(j.peers, p)
	return p, nil
}

// to connects to the process that has a database open.
func (j *joined) to(ctx context.Context, held *engine.LockedError) (*local.Client, error) {
	c, err := local.Dial(ctx, held.Holder.Socket, &local.DialOptions{Dir: filepath.Dir(held.Dir)})
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clients = append(j.clients, c)
	return c, nil
}

// leave ends the connections. If the command failed since one of those processes has
// ended, the error is local.ErrGone.
func (j *joined) leave(ctx context.Context, err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.peers {
		_ = p.Close()
	}
	for _, c := range j.clients {
		if err != nil && ctx.Err() == nil && !errors.Is(err, local.ErrGone) && c.Gone(ctx) {
			err = fmt.Errorf("%w while this command read its database; run it again: %v", local.ErrGone, err)
		}
		_ = c.Close()
	}
	return err
}

// openThrough opens a version for reading through a socket.
func openThrough(cmd *cobra.Command, held *engine.LockedError, t target, o *engine.SourceOptions) (*engine.Source, error) {
	peer, err := here(cmd).joined.peer(cmd.Context(), held, &engine.Options{Codecs: o.Codecs, Adapters: o.Adapters, Workers: o.Workers, CacheBytes: cmp.Or(o.CacheBytes, -1), Follow: o.Follow})
	if err != nil {
		return nil, here(cmd).unless(err, held)
	}
	v, err := peer.At(cmd.Context(), t.rev)
	if err != nil {
		return nil, err
	}
	return engine.OpenViewSource(v, here(cmd).path(t.db), t.path, o)
}

// openCopy opens a database for reading by a copy of its index, as of this moment.
func openCopy(cmd *cobra.Command, dir string, held *engine.LockedError, o *engine.Options) (*engine.DB, error) {
	c, err := here(cmd).joined.to(cmd.Context(), held)
	if err != nil {
		return nil, err
	}
	read := *o
	if read.IndexCopy, err = c.CopyIndex(cmd.Context(), ""); err != nil {
		return nil, err
	}
	return engine.Open(cmd.Context(), here(cmd).path(dir), &read)
}
