package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// ErrResumable marks the error of an import that was stopped and left what it
// copied in a session, where Resume takes it up.
var ErrResumable = errors.New("engine: import can be resumed")

// ImportOptions say where an import goes. The zero value imports to the root of
// the branch main.
type ImportOptions struct {
	// To is the path that the source's node gets.
	To string
	// Branch is the branch to import onto; default main.
	Branch string
	// Message and Author are recorded in the commit.
	Message, Author string
	// Overwrite replaces what is at To; otherwise it must be empty.
	Overwrite bool
	// Resume goes on with an import of the same source to the same place that
	// was stopped. If there is none, it begins.
	Resume bool
	// Session imports into a stored session, which is saved and not committed.
	Session *txn.SessionID
	// Progress, if set, is told from time to time how far the import is. Calls
	// do not overlap.
	Progress func(Progress)
}

// ImportResult is what an import did.
type ImportResult struct {
	// Commit is the new version, nil if the import went into a session.
	Commit *txn.Commit
	// Nodes, Keys and Bytes were copied.
	Nodes, Keys, Bytes int64
}

// Import copies the Zarr hierarchy that src names into the database, keys and
// bytes as they are, as one commit. All metadata is parsed before anything is
// copied, so what cannot be opened is not imported. If ctx ends, the branch is
// as it was, and the error is ErrResumable.
func (db *DB) Import(ctx context.Context, src *Source, o ImportOptions) (*ImportResult, error) {
	o.To = strings.Trim(o.To, "/")
	view, from, err := src.hierarchy(ctx)
	if err != nil {
		return nil, err
	}
	im := &importer{db: db, o: o, view: view, from: dir(from), to: dir(o.To)}
	if err := im.survey(ctx, src, from); err != nil {
		return nil, err
	}
	s, err := im.session(ctx, src)
	if err != nil {
		return nil, err
	}
	return im.run(ctx, s)
}

// importer is one import under way.
type importer struct {
	db        *DB
	o         ImportOptions
	view      kv.ReadLister
	from, to  string // prefixes
	documents []string
	resumed   bool
	nodes     int64
	meter     meter
}

// survey opens every node of the source, which proves that its metadata is
// sound, and notes the documents.
func (im *importer) survey(ctx context.Context, src *Source, from string) error {
	for n, err := range zarr.Walk(ctx, im.view, from, im.db.arrays()) {
		if err != nil {
			return fmt.Errorf("import %s: %w", src.URL(), err)
		}
		im.nodes++
		im.documents = append(im.documents, documentsOf(n)...)
	}
	if im.nodes == 0 {
		return fmt.Errorf("import %s: %w", src.URL(), zarr.ErrNotFound)
	}
	if im.o.Progress == nil {
		return nil
	}
	for _, err := range im.view.List(ctx, kv.ListOptions{Prefix: im.from}) {
		if err != nil {
			return err
		}
		im.meter.total++
	}
	return nil
}

// documentsOf lists the keys that the metadata of a node may have, where they
// tell which other keys are chunks.
func documentsOf(n *zarr.Node) (keys []string) {
	names := map[zarr.Version][]string{
		zarr.V1: {docV1Array, docV1Attrs},
		zarr.V3: {docV3},
		zarr.V2: {docV2Array, docV2Group, docV2Attrs, docV2Metadata},
	}
	for _, name := range names[n.Version()] {
		keys = append(keys, dir(n.Path())+name)
	}
	return keys
}

// session begins or resumes the session that the import writes into.
func (im *importer) session(ctx context.Context, src *Source) (*Session, error) {
	if im.o.Session != nil {
		s, err := im.db.Resume(ctx, *im.o.Session)
		if err != nil {
			return nil, err
		}
		if err := im.clear(ctx, s); err != nil {
			return nil, errors.Join(err, s.Detach(context.WithoutCancel(ctx)))
		}
		return s, nil
	}
	label := fmt.Sprintf("import %s to /%s", src.URL(), im.o.To)
	if im.o.Resume {
		list, err := im.db.Sessions(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			if i.Label == label && !i.Open && (im.o.Branch == "" || im.o.Branch == i.Branch) {
				im.resumed = true
				return im.db.Resume(ctx, i.ID)
			}
		}
	}
	s, err := im.db.Begin(ctx, im.o.Branch)
	if err != nil {
		return nil, err
	}
	s.SetLabel(label)
	if err := im.clear(ctx, s); err != nil {
		return nil, errors.Join(err, s.Abort())
	}
	return s, nil
}

// clear makes sure that nothing is at the destination.
func (im *importer) clear(ctx context.Context, s *Session) error {
	for key, err := range s.List(ctx, kv.ListOptions{Prefix: im.to}) {
		if err != nil {
			return err
		}
		if !im.o.Overwrite {
			return fmt.Errorf("import to /%s: %w (%s is there); choose another path or say overwrite", im.o.To, txn.ErrExists, key)
		}
		return s.DeletePrefix(ctx, im.to)
	}
	return im.ancestors(ctx, s)
}

// ancestors refuses a destination below an array.
func (im *importer) ancestors(ctx context.Context, s *Session) error {
	for p := im.o.To; p != ""; {
		if p = path.Dir(p); p == "." {
			p = ""
		}
		n, err := s.Node(ctx, p)
		if errors.Is(err, zarr.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if _, ok := n.Array(); ok {
			return fmt.Errorf("import to /%s: /%s is an array", im.o.To, p)
		}
		return nil
	}
	return nil
}

// run copies and commits.
func (im *importer) run(ctx context.Context, s *Session) (*ImportResult, error) {
	err := im.copy(ctx, s)
	var c *txn.Commit
	switch {
	case err == nil && im.o.Session != nil:
		err = s.Detach(ctx)
	case err == nil:
		c, err = s.Commit(ctx, txn.CommitOptions{Message: im.o.Message, Author: im.o.Author})
	}
	if err != nil {
		return nil, im.stop(ctx, s, err)
	}
	return &ImportResult{Commit: c, Nodes: im.nodes, Keys: im.meter.keys.Load(), Bytes: im.meter.bytes.Load()}, nil
}

// stop ends a failed import. One that was interrupted is kept for Resume; a
// session of the caller's stays at the savepoint it came with.
func (im *importer) stop(ctx context.Context, s *Session, err error) error {
	if im.o.Session != nil {
		return err
	}
	if ctx.Err() != nil {
		if derr := s.Detach(context.WithoutCancel(ctx)); derr == nil {
			return fmt.Errorf("%w: %w", err, ErrResumable)
		}
	}
	return errors.Join(err, s.Abort())
}

// copy writes documents first: they say which keys are chunks, so that those
// go where they belong at once.
func (im *importer) copy(ctx context.Context, s *Session) error {
	done := make(map[string]struct{}, len(im.documents))
	for _, key := range im.documents {
		if err := im.copyKey(ctx, s, key); err != nil {
			return err
		}
		done[key] = struct{}{}
	}
	return batches(im.view.List(ctx, kv.ListOptions{Prefix: im.from}), func(keys []string) error {
		return im.db.pool.Run(ctx, len(keys), func(ctx context.Context, i int) error {
			if _, ok := done[keys[i]]; ok {
				return nil
			}
			return im.copyKey(ctx, s, keys[i])
		})
	})
}

func (im *importer) copyKey(ctx context.Context, s *Session, key string) error {
	v, err := kv.Locate(ctx, im.view, key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil // an optional document, or deleted since it was listed
	}
	if err != nil {
		return fmt.Errorf("import %s: %w", key, err)
	}
	to := im.to + strings.TrimPrefix(key, im.from)
	if im.resumed {
		if have, err := s.Locate(ctx, to); err == nil && have.Size() == v.Size() {
			im.meter.add(v.Size(), im.o.Progress)
			return nil
		}
	}
	err = v.View(ctx, kv.All(), func(b []byte) error { return s.Set(ctx, to, b) })
	if err != nil {
		return fmt.Errorf("import %s: %w", key, err)
	}
	im.meter.add(v.Size(), im.o.Progress)
	return nil
}

// Progress says how far long work is.
type Progress struct {
	// Keys of TotalKeys are done; the total is 0 where it is not known.
	Keys, TotalKeys int64
	// Bytes were copied.
	Bytes int64
}

// meter counts what is done and reports about every mebibyte or 256 keys.
type meter struct {
	total       int64
	keys, bytes atomic.Int64
	reported    atomic.Int64
	busy        atomic.Bool
}

func (m *meter) add(bytes int64, report func(Progress)) {
	k, b := m.keys.Add(1), m.bytes.Add(bytes)
	if report == nil || !m.due(k, b) || !m.busy.CompareAndSwap(false, true) {
		return
	}
	defer m.busy.Store(false)
	report(Progress{Keys: k, TotalKeys: m.total, Bytes: b})
}

func (m *meter) due(keys, bytes int64) bool {
	at := keys>>8 + bytes>>20
	last := m.reported.Load()
	return at != last && m.reported.CompareAndSwap(last, at)
}
