package txn

import (
	"context"
	"errors"
	"strings"
	"sync"
)

// names are the branches and tags that a peer has asked for. While no ref has moved since, as [Source].Watch counts, the
// peer opens them without a request.
type names struct {
	mu    sync.Mutex
	asked int // requests before moves are counted
	never bool
	watch Watch
	moves uint64 // what the counter shows while ids are right
	ids   map[string]CommitID
}

const (
	// A process that opens a name or two does not have moves counted.
	minAsked = 2
	maxNames = 1024
)

// named returns the commit that a branch or tag points at, if the peer knows. If not, learn takes the answer of a request
// that is sent now.
func (p *peer) named(ctx context.Context, rev string) (id CommitID, known bool, learn func(CommitID)) {
	nothing := func(CommitID) {}
	if !isName(rev) {
		return id, false, nothing
	}
	n := &p.names
	n.mu.Lock()
	n.asked++
	w, never := n.watch, n.never || n.asked <= minAsked
	n.mu.Unlock()
	if never {
		return id, false, nothing
	}
	if w.Live == nil || !w.Live() {
		var err error
		if w, err = p.Watch(ctx); err != nil {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.never = errors.Is(err, errors.ErrUnsupported)
			return id, false, nothing
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	moves := w.Writes.Load()
	if n.watch.Writes != w.Writes || n.moves != moves || len(n.ids) > maxNames {
		n.watch, n.moves, n.ids = w, moves, map[string]CommitID{}
	}
	if id, known = n.ids[rev]; known {
		return id, w.Live(), nothing
	}
	return id, false, func(id CommitID) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.watch.Writes == w.Writes && n.moves == moves {
			n.ids[rev] = id
		}
	}
}

// isName reports whether only moves of refs change what a revision means. Not so with the beginning of an id, or with a
// place in a reflog.
func isName(rev string) bool {
	return !strings.ContainsAny(rev, "@~^") && (strings.Trim(rev, "0123456789abcdefABCDEF") != "" || rev == "")
}
