package serve

import (
	"container/list"
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// View is a version, a session or a target that a client reads. Safe for
// concurrent use; Release when done, after which it must not be used.
type View struct {
	kv.ReadLister
	// Commit is the version; nil for a session or a target.
	Commit *txn.Commit
	// Session is the session; nil for a version or a target.
	Session *Session

	node     func(ctx context.Context, path string) (*zarr.Node, error)
	document func(ctx context.Context, key string, stored []byte) ([]byte, error)
	release  func()
	written  func(ctx context.Context, key string) (time.Time, bool, error) // nil unless Commit is set

	documents *documents
	converted func(format zarr.Version) (*engine.Converted, error)
}

// In returns the same version, session or target in another format. It is released with
// v.
func (v *View) In(format zarr.Version) (*View, error) {
	converted, err := v.converted(format)
	if err != nil {
		return nil, err
	}
	out := *v
	out.ReadLister, out.document = converted, nil
	return &out, nil
}

// Written returns since when a key has its value: for a version [txn.Snapshot.Written], for a
// session [txn.Session.Modified], for a target the time of the file; zero if the time is not known.
// A missing key is kv.ErrNotFound. Consolidated metadata that was rebuilt has the time of the
// version's commit. exact says that no earlier value has this time in seconds.
func (v *View) Written(ctx context.Context, key string) (at time.Time, exact bool, err error) {
	switch {
	case v.Session != nil:
		return v.Session.s.Modified(ctx, key)
	case v.written == nil:
		val, err := kv.Locate(ctx, v.ReadLister, key)
		if err != nil {
			return at, false, err
		}
		return kv.StampOf(val).Modified, false, nil
	}
	if CarriesCopies(key) {
		stored, err := kv.Locate(ctx, v.ReadLister, key)
		if err != nil {
			return at, false, err
		}
		if served, err := v.Value(ctx, key); err != nil || served.ID() != stored.ID() {
			return v.Commit.Time, false, err
		}
	}
	return v.written(ctx, key)
}

// Release gives the view back.
func (v *View) Release() { v.release() }

// Locate implements [kv.Locator] as the view behind does.
func (v *View) Locate(ctx context.Context, key string) (kv.Value, error) {
	return kv.Locate(ctx, v.ReadLister, key)
}

// ListDir implements [kv.DirLister] as the view behind does.
func (v *View) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return kv.ListDir(ctx, v.ReadLister, prefix)
}

// Node opens the array or group at a path; "" is the root.
func (v *View) Node(ctx context.Context, path string) (*zarr.Node, error) { return v.node(ctx, path) }

// TrueDocument is [engine.Snapshot.TrueDocument] for a version or a session.
// Documents of a target are returned unchanged.
func (v *View) TrueDocument(ctx context.Context, key string, stored []byte) ([]byte, error) {
	if v.document == nil {
		return stored, nil
	}
	return v.document(ctx, key, stored)
}

// SessionPrefix begins a revision that names an open session: "~" and its id.
const SessionPrefix = "~"

// View opens a revision: a branch, a tag, a commit or any other revision of the
// command line, or [SessionPrefix] and a session. "" is the branch main. A
// version is kept open for the next request.
func (t *Table) View(ctx context.Context, who *Principal, name, rev string) (*View, error) {
	s, err := t.find(ctx, name, false)
	if err != nil {
		return nil, err
	}
	if s.src != nil {
		return s.target(ctx, rev)
	}
	if id, ok := strings.CutPrefix(rev, SessionPrefix); ok {
		c, err := t.Session(ctx, who, name, id)
		if err != nil {
			return nil, err
		}
		return c.View(), nil
	}
	var v *View
	err = s.db.OpenAt(ctx, rev, func(id txn.CommitID) (err error) {
		v, err = s.views.get(id, func() (*engine.Snapshot, error) { return s.db.Snapshot(ctx, id) })
		return err
	})
	return v, err
}

// Renew opens a version that a peer of a database leases anew in a visit, or without one if
// visit is nil.
func (t *Table) Renew(ctx context.Context, name string, visit *txn.Visit, id txn.CommitID) (*View, error) {
	s, err := t.find(ctx, name, false)
	if err != nil {
		return nil, err
	}
	return s.views.get(id, func() (*engine.Snapshot, error) { return s.db.Renew(ctx, visit, id) })
}

// View is the session for reading. With the release of its view a session ends that is
// blank; see [txn.Session.Blank].
func (c *Session) View() *View {
	converted := func(format zarr.Version) (*engine.Converted, error) { return c.s.Converted(format), nil }
	return &View{ReadLister: c.s, Session: c, node: c.s.Node, document: c.s.TrueDocument, release: c.left, converted: converted}
}

// target is the view of a served target, which has one version only.
func (s *served) target(ctx context.Context, rev string) (*View, error) {
	if err := s.noVersion(rev); err != nil {
		return nil, err
	}
	store, err := s.src.Hierarchy(ctx)
	if err != nil {
		return nil, err
	}
	return &View{ReadLister: store, node: s.src.NodeAt, release: func() {}, converted: func(format zarr.Version) (*engine.Converted, error) {
		return s.src.Converted(ctx, format)
	}}, nil
}

// noVersion returns the error for a revision of a target other than main, which
// means its current contents.
func (s *served) noVersion(rev string) error {
	if rev == "" || rev == txn.MainBranch {
		return nil
	}
	return fmt.Errorf("%s@%s: %w: it is not a database and has no versions", s.name, rev, txn.ErrNoRef)
}

// views are open versions: versions in use, and the last ones that were.
type views struct {
	limit     int
	documents *documents

	mu   sync.Mutex
	open map[txn.CommitID]*list.Element // of *kept
	last list.List                      // the one used last is in front
}

type kept struct {
	id   txn.CommitID
	snap *engine.Snapshot
	uses int

	mu    sync.Mutex
	forms map[zarr.Version]*engine.Converted
}

// in is the version in another format; parsed nodes stay cached.
func (k *kept) in(format zarr.Version) (*engine.Converted, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.forms == nil {
		k.forms = map[zarr.Version]*engine.Converted{}
	}
	if k.forms[format] == nil {
		k.forms[format] = k.snap.Converted(format)
	}
	return k.forms[format], nil
}

// get returns the version with that id, and keeps it open when it is released. It does not hold the lock
// while it opens the version, because another process may delay that.
func (v *views) get(id txn.CommitID, open func() (*engine.Snapshot, error)) (*View, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e, ok := v.open[id]
	if !ok {
		v.mu.Unlock()
		snap, err := open()
		v.mu.Lock()
		if err != nil {
			return nil, err
		}
		if e, ok = v.open[id]; ok { // another request was faster
			_ = snap.Close() // it only releases memory
		} else {
			if v.open == nil {
				v.open = map[txn.CommitID]*list.Element{}
			}
			e = v.last.PushFront(&kept{id: id, snap: snap})
			v.open[id] = e
		}
	}
	v.last.MoveToFront(e)
	k := e.Value.(*kept)
	k.uses++
	v.shrink()
	release := sync.OnceFunc(func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		k.uses--
		v.shrink()
	})
	return &View{ReadLister: k.snap, Commit: k.snap.Commit(), node: k.snap.Node, document: k.snap.TrueDocument, release: release, written: k.snap.Written, documents: v.documents, converted: k.in}, nil
}

// shrink closes versions that are not in use, the least recently used first,
// until there are few enough. v.mu is held.
func (v *views) shrink() {
	for e := v.last.Back(); e != nil && v.last.Len() > v.limit; {
		next := e.Prev()
		if k := e.Value.(*kept); k.uses == 0 {
			v.last.Remove(e)
			delete(v.open, k.id)
			_ = k.snap.Close() // it only releases memory
		}
		e = next
	}
}

// letGo closes versions that are not in use.
func (v *views) letGo() {
	v.mu.Lock()
	defer v.mu.Unlock()
	limit := v.limit
	v.limit = 0
	v.shrink()
	v.limit = limit
}

// close closes versions that are not in use, and used ones when they are released.
func (v *views) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.limit = 0
	v.shrink()
}
