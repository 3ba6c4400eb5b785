package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// maxGuardedChunks is how many chunks a guard names. A larger selection guards
// its array.
const maxGuardedChunks = 1 << 12

// GuardRead guards the chunks that sel reads of an array that was opened from
// the session: Commit then fails with a conflict if the metadata of the array
// or one of the chunks that sel touches changed on the branch since the
// session's base, even if the session wrote elsewhere. Keys that the session
// writes need no guard. A selection of more than 4096 chunks guards the whole
// array. It reads nothing and may be called before or after the read; see
// [txn.Session.Guard]. Errors are zarr.ErrSelection and txn.ErrSessionClosed.
func (s *Session) GuardRead(ctx context.Context, a *zarr.Array, sel zarr.Selection) error {
	documents, chunks := guardedPaths(a)
	keys := slices.Clone(documents)
	for c, err := range a.Chunks(ctx, sel) {
		if err != nil {
			return err
		}
		if len(keys) >= maxGuardedChunks {
			keys = slices.Concat(documents, chunks)
			break
		}
		keys = append(keys, c.Key)
	}
	return s.Guard(ctx, keys...)
}

// guardedPaths returns the keys of an array's metadata and the paths that all of
// its chunks are below.
func guardedPaths(a *zarr.Array) (documents, chunks []string) {
	path, d := a.Path(), names.Dir(a.Path())
	switch a.Meta().Version {
	case zarr.V1:
		return []string{d + names.V1Array, d + names.V1Attrs}, []string{path}
	case zarr.V2:
		return []string{d + names.V2Array, d + names.V2Attrs}, []string{path}
	case zarr.Draft3: // the other layout has nothing at its keys
		for _, l := range []meta.DraftLayout{meta.DraftSuffix, meta.DraftRoot} {
			documents = append(documents, l.ArrayKey(path))
			chunks = append(chunks, strings.TrimSuffix(l.ChunkPrefix(path), "/"))
		}
		return documents, chunks
	}
	return []string{d + names.V3}, []string{path}
}

var errNoSession = errors.New("only what is read in a session can be guarded")

// GuardRead is [Session.GuardRead] for a source that is a stored session, and
// stores the guard with it.
func (s *Source) GuardRead(ctx context.Context, a *zarr.Array, sel zarr.Selection) error {
	session, ok := s.at.View.(*Session)
	if !ok {
		return fmt.Errorf("guard /%s: %w", a.Path(), errNoSession)
	}
	if err := session.GuardRead(ctx, a, sel); err != nil {
		return err
	}
	return session.Savepoint(ctx)
}
