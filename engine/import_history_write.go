package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// historyBatch is a part of the changes of one version.
type historyBatch struct {
	id      string
	at      formats.Versioned
	changes []formats.Change
	last    bool
}

// chain imports versions that follow each other, the oldest first. One goroutine reads
// while another commits.
func (h *historian) chain(ctx context.Context, branch string, ids []string) error {
	fresh := func() *historyBatch { return &historyBatch{changes: make([]formats.Change, 0, batchEntries)} }
	fill := func(ctx context.Context, pass func(*historyBatch) (*historyBatch, error)) error {
		b := fresh()
		for _, id := range ids {
			at, err := h.versions.At(ctx, id)
			if err != nil {
				return err
			}
			send := func(last bool) (err error) {
				b.id, b.at, b.last = id, at, last
				b, err = pass(b)
				return err
			}
			for c, err := range at.Changes(ctx, h.parent(id)) {
				if err != nil {
					return fmt.Errorf("version %s: %w", id, err)
				}
				if b.changes = append(b.changes, c); len(b.changes) == batchEntries {
					if err := send(false); err != nil {
						return err
					}
				}
			}
			if err := send(true); err != nil {
				return err
			}
		}
		return nil
	}
	w := &historyWriter{historian: h, branch: branch}
	err := transfer.Relay(ctx, fresh, fill, func(b *historyBatch) error {
		err := w.write(ctx, b)
		clear(b.changes)
		b.changes = b.changes[:0]
		return err
	})
	if w.s != nil {
		err = errors.Join(err, w.s.Abort())
	}
	return err
}

// historyWriter makes commits of batches.
type historyWriter struct {
	*historian
	branch string
	s      *Session // of the version under way, else nil
	gone   []string // documents that go when their chunks are gone
}

func (w *historyWriter) write(ctx context.Context, b *historyBatch) (err error) {
	if w.s == nil {
		if w.s, err = w.db.Begin(ctx, w.branch); err != nil {
			return err
		}
		w.s.SetLabel("import history of " + w.source)
	}
	if err := w.apply(ctx, b); err != nil {
		return fmt.Errorf("version %s: %w", b.id, err)
	}
	if b.last {
		if err := w.commit(ctx, b.id); err != nil {
			return fmt.Errorf("version %s: %w", b.id, err)
		}
	}
	if w.o.Progress != nil {
		w.o.Progress(Progress{Keys: w.res.Versions, TotalKeys: w.total, Bytes: w.res.Bytes})
	}
	return nil
}

func (w *historyWriter) commit(ctx context.Context, id string) error {
	slices.Reverse(w.gone) // groups after their members
	for _, key := range w.gone {
		if err := w.s.Delete(ctx, key); err != nil {
			return err
		}
	}
	w.gone = w.gone[:0]
	v := w.known[id]
	author := v.Author
	if author == "" {
		author = w.o.Author
	}
	c, err := w.s.Commit(ctx, txn.CommitOptions{
		Message: messageOf(v), Author: author, Time: v.Time, AllowEmpty: true,
		Properties: map[string]string{propSource: w.source, propVersion: id},
	})
	if err != nil {
		return err
	}
	w.s, w.commits[id] = nil, c.ID
	w.res.Versions++
	return nil
}

// apply writes a part of the changes of a version: documents first, as they come, since
// they say which keys are chunks.
func (w *historyWriter) apply(ctx context.Context, b *historyBatch) error {
	if w.o.Link {
		err := w.linker.files.ask(ctx, len(b.changes), func(i int) string { return b.changes[i].URL }, func(i int) string { return b.changes[i].Key })
		if err != nil {
			return err
		}
	}
	var far []string // keys whose bytes are to be read
	for i := range b.changes {
		c := &b.changes[i]
		key, ok := strings.CutPrefix(c.Key, w.prefix)
		if !ok {
			continue
		}
		w.res.Keys++
		var err error
		switch {
		case c.Deleted && isMetadata(key):
			w.gone = append(w.gone, key)
		case c.Deleted:
			err = w.s.Delete(ctx, key)
		case c.Inline():
			if err = w.sound(key, c.Data); err == nil {
				err = w.s.Set(ctx, key, c.Data)
				w.res.Bytes += int64(len(c.Data))
			}
		case !w.o.Link || isMetadata(key):
			far = append(far, c.Key)
		default:
			err = w.link(ctx, key, c)
		}
		if err != nil {
			return keyFailed(c.Key, err)
		}
	}
	if len(far) == 0 {
		return nil
	}
	view := w.set.At(b.at)
	var m transfer.Meter
	err := transfer.EachValue(ctx, w.db.pool, view, far, func(ctx context.Context, key string, value []byte) error {
		m.Add(int64(len(value)), nil)
		key = strings.TrimPrefix(key, w.prefix)
		if err := w.sound(key, value); err != nil {
			return err
		}
		return w.s.Set(ctx, key, value)
	})
	w.res.Bytes += m.Bytes.Load()
	if err == nil && m.Keys.Load() < int64(len(far)) {
		err = fmt.Errorf("%w: %d of %d values are missing", ErrUnreachable, int64(len(far))-m.Keys.Load(), len(far))
	}
	return err
}

// link writes a virtual value.
func (w *historyWriter) link(ctx context.Context, key string, c *formats.Change) error {
	src, offset, length, err := w.linker.files.virtual(&c.Reference)
	if err != nil {
		return err
	}
	return w.s.SetVirtual(ctx, key, src, offset, length)
}

// sound refuses metadata that no reader can open, but for codecs that are unknown.
func (w *historyWriter) sound(key string, value []byte) error {
	if !isMetadata(key) || !strings.HasSuffix(key, names.V3) {
		return nil
	}
	_, err := meta.ParseV3(value, w.src.open.Registry)
	if errors.Is(err, codecs.ErrUnknown) {
		return nil
	}
	return err
}
