package engine

import (
	"context"

	"github.com/zarrdb/zarrdb/kv"
)

var _ kv.Gatherer = (*Snapshot)(nil)

// Gathers implements [kv.Gatherer]: arrays with virtual chunks are read so.
func (s *Snapshot) Gathers(ctx context.Context, key string) bool {
	ok, err := s.at.VirtualBeside(ctx, key)
	return ok && err == nil // an error comes again when the key is located
}

// Gather implements [kv.Gatherer].
func (s *Snapshot) Gather(ctx context.Context, wants []kv.Want, g kv.Gathering) error {
	return s.db.files.Gather(ctx, s.at, wants, g)
}

var (
	_ kv.Gatherer = tracked{}
	_ kv.Gatherer = (*Session)(nil)
)

// Gathers implements [kv.Gatherer].
func (s *Session) Gathers(ctx context.Context, key string) bool {
	return kv.Gathers(ctx, s.nodes.view, key)
}

// Gather implements [kv.Gatherer].
func (s *Session) Gather(ctx context.Context, wants []kv.Want, g kv.Gathering) error {
	return kv.Gather(ctx, s.nodes.view, wants, g)
}

func (t tracked) Gathers(ctx context.Context, key string) bool {
	ok, err := t.VirtualBeside(ctx, key)
	return ok && err == nil
}

func (t tracked) Gather(ctx context.Context, wants []kv.Want, g kv.Gathering) error {
	return t.files.Gather(ctx, t.Session, wants, g)
}
