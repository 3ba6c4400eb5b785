package txn

import (
	"context"

	"github.com/zarrdb/zarrdb/kv"
)

// LocateWith is Locate with virtual values located by r.
func (s *Snapshot) LocateWith(ctx context.Context, key string, r Resolver) (kv.Value, error) {
	v, err := s.lookup(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.db.locate(ctx, v, readBy{key, s.commit.ID, s}, r)
}

// LocateWith is Locate with virtual values located by r.
func (s *Session) LocateWith(ctx context.Context, key string, r Resolver) (kv.Value, error) {
	v, err := s.home.lookup(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.db.locate(ctx, v, readBy{key: key, version: s.Base()}, r)
}

// VirtualBeside reports whether there may be virtual values beside key: among
// the chunks of its array, or, if it is no chunk, anywhere below its directory.
// It costs what finding the key does.
func (s *Snapshot) VirtualBeside(ctx context.Context, key string) (bool, error) {
	if err := s.check(); err != nil {
		return false, err
	}
	return s.db.space.VirtualBeside(ctx, s.commit.Root, key)
}

// VirtualBeside is [Snapshot.VirtualBeside]. What was written since the last
// time that the session sorted its writes in is left out; in a session of a peer also
// references that other processes put since this one asked for the roots.
func (s *Session) VirtualBeside(ctx context.Context, key string) (bool, error) {
	if s.Ended() {
		return false, s.errClosed()
	}
	return s.home.virtualBeside(ctx, key)
}

func (s own) virtualBeside(ctx context.Context, key string) (bool, error) {
	s.mu.RLock()
	root := s.work
	s.mu.RUnlock()
	return s.space.VirtualBeside(ctx, root, key)
}
