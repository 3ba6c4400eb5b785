package ocdbt

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// Format returns the format, for the table of the engine.
func Format() formats.Format {
	return formats.Format{
		Scheme:    "ocdbt",
		Directory: true,
		Store:     true,
		Open:      open,
		Detect:    func(e formats.Evidence) bool { return e.Has(manifestName) },
		Files:     []string{manifestName},
	}
}

func open(ctx context.Context, base formats.Base, o formats.Options) (refs.Set, error) {
	set, err := Open(ctx, base.Files, &o)
	if err != nil {
		return nil, err
	}
	return set, nil
}

// Set is one generation of a store. It is safe for concurrent use, and valid as long as
// the files are.
type Set struct {
	s *store
	found
}

var _ formats.Versioned = (*Set)(nil)

// Open opens the generation that o.Version names in the store that files holds: "v" and
// its number, or a time, for the newest generation that is not after it. Only the
// manifest is read, and, for older generations, the nodes of the version tree on the
// way. files must be listable if the manifests are numbered. Errors are as for
// [formats.Format]; o may be nil.
func Open(ctx context.Context, files kv.Reader, o *formats.Options) (*Set, error) {
	if o == nil {
		o = &formats.Options{}
	}
	s, err := openStore(ctx, files, o.Skipped)
	if err != nil {
		return nil, err
	}
	return s.set(ctx, o.Version)
}

func (s *store) set(ctx context.Context, version string) (*Set, error) {
	g, err := s.find(ctx, version)
	if err != nil {
		return nil, err
	}
	return &Set{s, g}, nil
}

// reference returns the reference of an entry of a leaf.
func (s *store) reference(it item) (refs.Reference, error) {
	v := it.value
	if v.inline {
		return refs.Reference{Data: append([]byte{}, it.bytes()...)}, nil
	}
	if v.n == 0 {
		return refs.Reference{Data: []byte{}}, nil
	}
	path, err := v.file.key()
	if err != nil {
		return refs.Reference{}, fmt.Errorf("ocdbt: key %s: %w", quote(it.start), err)
	}
	return refs.Reference{URL: path, Offset: int64(v.off), Length: int64(v.n)}, nil
}

// Lookup implements [refs.Set]. It reads the nodes on the way to the key, as far as
// they are not kept.
func (t *Set) Lookup(ctx context.Context, key string) (refs.Reference, error) {
	if !refs.Storable(key) {
		return refs.Reference{}, kv.ErrNotFound
	}
	it, err := t.s.lookup(ctx, &t.generation, key)
	if err != nil {
		return refs.Reference{}, err
	}
	if it.value == nil {
		return refs.Reference{}, kv.ErrNotFound
	}
	return t.s.reference(it)
}

// scan calls fn for each entry with a key that begins with prefix and comes after after,
// until it returns false. Keys that no store can have are left out.
func (t *Set) scan(ctx context.Context, prefix, after string, fn func(item) bool) error {
	w := newWalker(t.s, &t.generation)
	from := prefix
	if after >= from && after != "" {
		from = after + "\x00"
	}
	if err := w.seek(ctx, from); err != nil {
		return err
	}
	for {
		it, ok := w.item()
		if !ok || it.start > prefix && !strings.HasPrefix(it.start, prefix) {
			return nil
		}
		if it.value == nil {
			if err := w.enter(ctx, it); err != nil {
				return err
			}
			continue
		}
		if err := w.pass(it); err != nil {
			return err
		}
		if it.start < from {
			continue
		}
		if !refs.Storable(it.start) {
			t.s.skipped(it.start)
			continue
		}
		if !fn(it) {
			return nil
		}
	}
}

// List implements [refs.Set]. It reads only the nodes that may have such keys.
func (t *Set) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		err := t.scan(ctx, opts.Prefix, opts.After, func(it item) bool { return yield(it.start, nil) })
		if err != nil {
			yield("", err)
		}
	}
}

// Entries implements [refs.Set]; they come in the order of their keys.
func (t *Set) Entries(ctx context.Context) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		var bad error
		err := t.scan(ctx, "", "", func(it item) bool {
			e := refs.Entry{Key: it.start}
			if e.Reference, bad = t.s.reference(it); bad != nil {
				return false
			}
			return yield(e, nil)
		})
		if bad != nil {
			err = bad
		}
		if err != nil {
			yield(refs.Entry{}, err)
		}
	}
}

// Version implements [formats.Versioned]. The ID is "v" and the number of the
// generation; it is "" for a store without generations.
func (t *Set) Version() formats.Version {
	return version(t.number, t.before, t.time)
}

func version(number, before, time uint64) formats.Version {
	if number == 0 {
		return formats.Version{}
	}
	v := formats.Version{ID: fmt.Sprintf("v%d", number), Time: when(time)}
	if before > 0 {
		v.Parents = []string{fmt.Sprintf("v%d", before)}
	}
	return v
}

// History implements [formats.Versioned]. It reads the whole version tree.
func (t *Set) History(ctx context.Context) iter.Seq2[formats.Version, error] {
	return func(yield func(formats.Version, error) bool) {
		var last *generation // waits for the number of the one before it
		for g, err := range t.s.history(ctx, t.number) {
			if err != nil {
				yield(formats.Version{}, err)
				return
			}
			if last != nil && !yield(version(last.number, g.number, last.time), nil) {
				return
			}
			last = &g
		}
		if last != nil {
			yield(version(last.number, 0, last.time), nil)
		}
	}
}

// Names implements [formats.Versioned]: versions have no names.
func (t *Set) Names(context.Context) ([]formats.Name, error) { return nil, nil }

// At implements [formats.Versioned]; id may be a time too.
func (t *Set) At(ctx context.Context, id string) (formats.Versioned, error) {
	set, err := t.s.set(ctx, id)
	if err != nil {
		return nil, err
	}
	return set, nil
}

// Changes implements [formats.Versioned]. Nodes that both versions share are not read.
// A value that was written again with the same bytes is a change, unless it is short
// enough to lie in a leaf.
func (t *Set) Changes(ctx context.Context, since string) iter.Seq2[formats.Change, error] {
	return func(yield func(formats.Change, error) bool) {
		old := found{generation: generation{root: missingRoot}}
		var err error
		if since != "" {
			old, err = t.s.find(ctx, since)
		}
		if err == nil {
			err = t.s.changes(ctx, &old.generation, &t.generation, func(it item) (bool, error) {
				c := formats.Change{Entry: refs.Entry{Key: it.start}, Deleted: it.value == nil}
				if !refs.Storable(it.start) {
					if !c.Deleted {
						t.s.skipped(it.start)
					}
					return true, nil
				}
				if !c.Deleted {
					if c.Reference, err = t.s.reference(it); err != nil {
						return false, err
					}
				}
				return yield(c, nil), nil
			})
		}
		if err != nil {
			yield(formats.Change{}, err)
		}
	}
}

// changes walks two trees at once, and enters only nodes that are not in both. fn
// is called in the order of keys, with the new entry of each key that was changed, or
// without a value, until it returns false.
func (s *store) changes(ctx context.Context, old, now *generation, fn func(item) (bool, error)) error {
	a, b := newWalker(s, old), newWalker(s, now)
	for {
		x, inOld := a.item()
		y, inNew := b.item()
		more, both := true, inOld && inNew && x.start == y.start
		var err error
		switch {
		case !inOld && !inNew:
			return nil
		case inOld && inNew && x.sameNode(y):
			a.skip()
			b.skip()
		case inOld && x.node != nil && (!inNew || x.start < y.start || both && (y.node == nil || x.height >= y.height)):
			err = a.enter(ctx, x)
		case inNew && y.node != nil && (!inOld || y.start <= x.start):
			err = b.enter(ctx, y)
		case both:
			if err = errors.Join(a.pass(x), b.pass(y)); err == nil && !x.sameValue(y) {
				more, err = fn(y)
			}
		case inOld && (!inNew || x.start < y.start):
			if err = a.pass(x); err == nil {
				more, err = fn(item{start: x.start})
			}
		default:
			if err = b.pass(y); err == nil {
				more, err = fn(y)
			}
		}
		if err != nil || !more {
			return err
		}
	}
}
