package icechunk

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/refs"
)

// Changes implements [formats.Versioned]. Arrays that name the same manifests are not
// looked into. Since its parent, a snapshot's transaction log says which chunks changed;
// otherwise manifests are compared that are not in both.
func (s *Set) Changes(ctx context.Context, since string) iter.Seq2[formats.Change, error] {
	return func(yield func(formats.Change, error) bool) {
		err := s.changes(ctx, since, func(c formats.Change) error {
			if !yield(c, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(formats.Change{}, err)
		}
	}
}

// comparison is two snapshots under comparison.
type comparison struct {
	old, now *Set
	log      changeLog // nil if it is not known
	emit     func(formats.Change) error
}

func (s *Set) changes(ctx context.Context, since string, emit func(formats.Change) error) error {
	if since == "" {
		for e, err := range s.Entries(ctx) {
			if err == nil {
				err = emit(formats.Change{Entry: e})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	before, err := s.At(ctx, since)
	if err != nil {
		return err
	}
	c := &comparison{old: before.(*Set), now: s, emit: emit}
	if len(s.version.Parents) == 1 && s.version.Parents[0] == c.old.version.ID {
		if c.log, err = s.repo.readLogs(ctx, s.snap.id, c.old.snap.id); err != nil {
			return err
		}
	}
	return c.run(ctx)
}

// run goes through the nodes of both snapshots in the order of their paths.
func (c *comparison) run(ctx context.Context) error {
	a, b := c.old.snap.nodes, c.now.snap.nodes
	for len(a) > 0 || len(b) > 0 {
		var old, now *node
		if len(b) == 0 || len(a) > 0 && a[0].path <= b[0].path {
			old = &a[0]
		}
		if len(a) == 0 || len(b) > 0 && b[0].path <= a[0].path {
			now = &b[0]
		}
		if old != nil {
			a = a[1:]
		}
		if now != nil {
			b = b[1:]
		}
		if err := c.node(ctx, old, now); err != nil {
			return err
		}
	}
	return nil
}

// node compares a node, of which one version may be nil.
func (c *comparison) node(ctx context.Context, old, now *node) error {
	var err error
	switch {
	case now == nil:
		err = c.deleted(old.dir() + document)
	case old == nil || !bytes.Equal(old.document, now.document):
		err = c.emit(formats.Change{Entry: refs.Entry{Key: now.dir() + document, Reference: refs.Reference{Data: slices.Clone(now.document)}}})
	}
	if err != nil {
		return err
	}
	if old != nil && !old.array {
		old = nil
	}
	if now != nil && !now.array {
		now = nil
	}
	switch {
	case old == nil && now == nil:
		return nil
	case old != nil && now != nil && old.keys == now.keys:
		return c.array(ctx, old, now)
	}
	// All chunks have other keys now.
	if old != nil {
		err = c.old.eachChunk(ctx, old, nil, func(coords []uint32, _ *manifest, _ table) error { return c.deleted(old.key(coords)) })
	}
	if err == nil && now != nil {
		err = c.now.eachChunk(ctx, now, nil, func(coords []uint32, m *manifest, t table) error { return c.changed(now, coords, m, t) })
	}
	return err
}

// key is the key of a chunk of an array.
func (n *node) key(coords []uint32) string { return string(n.keys.append([]byte(n.dir()), coords)) }

func (c *comparison) deleted(key string) error {
	return c.emit(formats.Change{Entry: refs.Entry{Key: key}, Deleted: true})
}

func (c *comparison) changed(n *node, coords []uint32, m *manifest, t table) error {
	r, err := m.reference(t, c.now.repo.containers)
	if err != nil {
		return err
	}
	return c.emit(formats.Change{Entry: refs.Entry{Key: n.key(coords), Reference: r}})
}

// array compares the chunks of an array.
func (c *comparison) array(ctx context.Context, old, now *node) error {
	if old.id == now.id && slices.EqualFunc(old.covers, now.covers, coverage.same) {
		return nil
	}
	if c.log != nil && old.id == now.id {
		return c.logged(ctx, old, now)
	}
	shared := func(list []coverage) func(coverage) bool {
		if old.id != now.id {
			return nil
		}
		known := make(map[objectID][]coverage, len(list))
		for _, x := range list {
			known[x.manifest] = append(known[x.manifest], x)
		}
		return func(x coverage) bool { return !slices.ContainsFunc(known[x.manifest], x.same) }
	}
	// A chunk in a manifest of both versions is unchanged. Chunks that moved
	// from one manifest to another are compared by their references.
	err := c.now.eachChunk(ctx, now, shared(old.covers), func(coords []uint32, m *manifest, t table) error {
		before, ok, err := c.old.place(ctx, old, coords)
		if err != nil {
			return err
		}
		r, err := m.reference(t, c.now.repo.containers)
		if err != nil || ok && same(before, r) {
			return err
		}
		return c.emit(formats.Change{Entry: refs.Entry{Key: now.key(coords), Reference: r}})
	})
	if err != nil {
		return err
	}
	return c.old.eachChunk(ctx, old, shared(now.covers), func(coords []uint32, _ *manifest, _ table) error {
		_, ok, err := c.now.place(ctx, now, coords)
		if ok || err != nil {
			return err
		}
		return c.deleted(old.key(coords))
	})
}

// logged yields the chunks of an array that the log names.
func (c *comparison) logged(ctx context.Context, old, now *node) error {
	chunks := c.log[now.id]
	slices.SortFunc(chunks, slices.Compare)
	chunks = slices.CompactFunc(chunks, slices.Equal)
	for i, coords := range chunks {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r, ok, err := c.now.place(ctx, now, coords)
		if err != nil {
			return err
		}
		if !ok {
			if err := c.deleted(old.key(coords)); err != nil {
				return err
			}
			continue
		}
		if err := c.emit(formats.Change{Entry: refs.Entry{Key: now.key(coords), Reference: r}}); err != nil {
			return err
		}
	}
	return nil
}

// place finds the reference of a chunk in the manifests of an array.
func (s *Set) place(ctx context.Context, n *node, coords []uint32) (refs.Reference, bool, error) {
	for _, c := range n.covers {
		if !c.contains(coords) {
			continue
		}
		m, err := s.repo.manifest(ctx, c.manifest)
		if err != nil {
			return refs.Reference{}, false, err
		}
		r, ok, err := m.find(n.id, coords, s.repo.containers)
		if err != nil {
			err = badManifest(c.manifest, err)
		}
		if ok || err != nil {
			return r, ok, err
		}
	}
	return refs.Reference{}, false, nil
}

// same reports whether two references are of the same bytes.
func same(a, b refs.Reference) bool {
	return a.URL == b.URL && a.Condition == b.Condition && a.Offset == b.Offset && a.Length == b.Length && bytes.Equal(a.Data, b.Data)
}
