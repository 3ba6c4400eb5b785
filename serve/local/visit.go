package local

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/serve/internal/sockets"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// A client that leases versions visits each server: it gets a file that is locked
// while the client lives, or names itself, and leases its versions again. Until then, a new
// server collects nothing. So the client looks for the next server at once; see txn.DB.Visit.

// peerFile is the file of a client. It may list the versions that the client has leased: a line for each
// behind the first one, of blanks when it was released. The next server keeps these versions if the client is stopped.
type peerFile struct {
	name string
	file *os.File

	at    int64   // of the list; 0 without one
	lines int64   // in the list
	free  []int64 // lines that are blank
}

const peerLine = 2*wire.IDSize + 1

// list writes a version into the list. client.mu is held.
func (p *peerFile) list(k *lease) {
	if p == nil || p.at == 0 {
		return
	}
	if n := len(p.free); n > 0 {
		k.line, p.free = p.free[n-1], p.free[:n-1]
	} else {
		p.lines++
		k.line = p.lines
	}
	p.write(k.line, k.commit.ID.String())
}

// unlist takes a version out of the list. client.mu is held.
func (p *peerFile) unlist(k *lease) {
	if p == nil || p.at == 0 || k.line == 0 {
		return
	}
	p.write(k.line, strings.Repeat(" ", peerLine-1))
	p.free = append(p.free, k.line)
	k.line = 0
}

func (p *peerFile) write(line int64, text string) {
	if _, err := p.file.WriteAt([]byte(text+"\n"), p.at+(line-1)*peerLine); err != nil { // without a list, collections wait for this process
		_ = p.file.Truncate(p.at - 1)
		p.at = 0
	}
}

// visitOnce visits the server, unless that was done on this connection.
func (c *Client) visitOnce(ctx context.Context, l *link) error {
	if err := c.visiting.Lock(ctx); err != nil {
		return err
	}
	defer c.visiting.Unlock()
	if l.visited {
		return nil
	}
	_, err := c.visit(ctx, l, nil)
	return err
}

// visit begins the use of the database on a connection, and leases versions again.
func (c *Client) visit(ctx context.Context, l *link, leases []*lease) (out wire.Visited, err error) {
	c.mu.Lock()
	was := c.peer
	c.mu.Unlock()
	var in wire.Visit
	if was != nil {
		in.Peer = was.name
	}
	for _, k := range leases {
		in.Versions = append(in.Versions, k.commit.ID.String())
	}
	meta, err := json.Marshal(&in)
	if err != nil {
		return out, err
	}
	f, err := l.call(ctx, &wire.Frame{Op: wire.OpVisit, Meta: meta}, false)
	if err != nil {
		return out, err
	}
	defer f.Close()
	if err := wire.ParseJSON(f.Op, f.Meta, &out); err != nil {
		return out, err
	}
	if len(out.Leases) != len(leases) {
		return out, fmt.Errorf("%w: %d leases where %d were asked for", wire.ErrProtocol, len(out.Leases), len(leases))
	}
	l.visited = true
	if out.Peer == in.Peer || len(f.Files) != 1 {
		return out, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return out, nil
	}
	if was != nil {
		_ = was.file.Close()
	}
	p := &peerFile{name: out.Peer, file: f.Files[0]}
	if fi, err := p.file.Stat(); err == nil && c.o.listed {
		if _, err = p.file.WriteAt([]byte("\n"), fi.Size()); err == nil {
			p.at = fi.Size() + 1
		}
	}
	for k := range c.leases {
		k.line = 0
		p.list(k)
	}
	c.peer = p
	f.Files = nil
	return out, nil
}

// renew visits the server again on a new connection, before other requests use it.
func (c *Client) renew(ctx context.Context, l *link) error {
	c.mu.Lock()
	leases := slices.Collect(maps.Keys(c.leases))
	visits := c.peer != nil || len(leases) > 0
	c.mu.Unlock()
	if !visits {
		return nil
	}
	out, err := c.visit(ctx, l, leases)
	if err != nil {
		return err
	}
	for i, in := range out.Leases {
		var lost error
		if in.Failure != nil {
			lost = remote(in.Failure)
		}
		if c.renewed(leases[i], l, in.View, lost) || lost != nil {
			continue
		}
		if err := l.closeView(in.View); err != nil {
			return err
		}
	}
	return nil
}

// rejoin connects to the next server when the connection has ended, if the client has a file:
// until then, that server collects nothing. Other connections of this process may need its buckets. It takes no database over.
func (c *Client) rejoin() {
	for pause := time.Millisecond; ; pause = min(2*pause, maxRejoin) {
		c.mu.Lock()
		due := !c.closed && (c.peer != nil || len(c.buckets) > 0) && c.l.over()
		c.mu.Unlock()
		if !due {
			return
		}
		if c.served() {
			_, _ = c.link(context.WithValue(c.open, quiet{}, true)) // if it fails, the next try follows
		}
		select {
		case <-c.open.Done():
			return
		case <-time.After(pause):
		}
	}
}

// served reports whether a process serves the database, as far as this is known.
func (c *Client) served() bool {
	places, err := sockets.Of(c.o.Dir)
	return c.o.Dir == "" || err == nil && slices.ContainsFunc(places, func(socket string) bool {
		conn, err := Connect(c.open, socket)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// maxRejoin is the longest pause between two looks for a server.
const maxRejoin = 500 * time.Millisecond
