package local

import (
	"context"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Requests of other clients, such as the one in Python: the Go client does without them.

// session is a session of a peer, with the requests of other clients.
type session struct {
	*engine.Session
	requests
}

// requests are about a view on a connection.
type requests struct{ tx *Session }

// Sessions lists the sessions that can be resumed or are open, oldest first.
func (c *Client) Sessions(ctx context.Context, db string) ([]txn.SessionInfo, error) {
	out, err := query[wire.Sessions](ctx, c, wire.OpSessions, wire.Database{Database: db})
	list := make([]txn.SessionInfo, len(out.Sessions))
	for i := range out.Sessions {
		list[i] = sessionIn(&out.Sessions[i])
	}
	return list, err
}

// Databases returns the served names.
func (c *Client) Databases(ctx context.Context) ([]string, error) {
	out, err := query[wire.Names](ctx, c, wire.OpDatabases, none{})
	return out.Names, err
}
