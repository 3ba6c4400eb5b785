package local

import "github.com/zarrdb/zarrdb/engine"

// session is a session of a peer, with its requests.
type session struct {
	*engine.Session
	requests
}

// requests are about a view on a connection.
type requests struct{ tx *Session }
