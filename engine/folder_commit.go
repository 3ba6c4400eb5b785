package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/checkout"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// status compares the files with the index.
func (w *folderWork) status(ctx context.Context, verify bool) (*FolderStatus, error) {
	out := &FolderStatus{FolderInfo: w.info(), Changes: []FolderChange{}}
	dir, err := dirkv.Open(w.b.Dir, &dirkv.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("%w: \"zarrdb checkout\" makes the folder again", err)
	}
	defer dir.Close()
	nodes := map[string]bool{"": true}
	leave := func(key string) { out.LeftOut = append(out.LeftOut, key) }
	err = w.join(ctx, dir, nil, verify, leave, func(s *checkout.Step, same bool, _ func() (digest.Sum, error)) error {
		if names.IsDocument(s.Key) {
			nodes[names.Parent(s.Key)] = true
		}
		op := "changed"
		switch {
		case same:
			if s.Entry.Mark != s.File.Mark && s.File.Mark.Tag != "" { // its bytes were compared
				s.Entry.Mark = s.File.Mark
				out.fresh = append(out.fresh, *s.Entry)
			}
			return nil
		case !w.scope.Has(s.Key):
			if s.Entry == nil && w.scope.Above(s.Key) {
				return nil // a copy of what is here alone
			}
			return fmt.Errorf("%w: only %s was checked out; check out all, or this too, into another directory", txn.ErrConflict, strings.Join(w.st.Only, ", "))
		case s.Entry == nil:
			op = "added"
		case s.File == nil:
			op = "removed"
		}
		out.Changes = append(out.Changes, FolderChange{Key: s.Key, Op: op})
		return nil
	})
	for i := range out.Changes {
		c := &out.Changes[i]
		for c.Node = names.Parent(c.Key); !nodes[c.Node]; {
			c.Node = names.Parent(c.Node)
		}
	}
	return out, err
}

// CommitFolder commits what changed in a folder, as one commit on the version that it stands at, merged with its branch as any session
// is, and moves the folder to the new commit. Hidden and temporary files are left out. A file that changes while it is read
// is read again, or refused with kv.ErrChanged; so is metadata that cannot be parsed. After a conflict the folder is as it was.
func (db *DB) CommitFolder(ctx context.Context, dir string, o FolderCommitOptions) (*FolderCommit, error) {
	w, err := openFolder(ctx, db, dir)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.fits(CheckoutOptions{}); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	w.o.Progress = o.Progress
	out, err := w.commit(ctx, o)
	if err != nil {
		err = fmt.Errorf("commit %s: %w", dir, err)
	}
	return out, err
}

func (w *folderWork) commit(ctx context.Context, o FolderCommitOptions) (*FolderCommit, error) {
	if err := w.goOn(ctx); err != nil {
		return nil, err
	}
	if w.st.Moving {
		return nil, errors.New("its checkout was interrupted: repeat that first")
	}
	branch := cmp.Or(o.Branch, w.st.Branch)
	if branch == "" {
		return nil, fmt.Errorf("version %.10s was checked out, which is no branch: --branch NAME commits to one", w.st.Commit)
	}
	st, err := w.status(ctx, o.Verify)
	if err != nil {
		return nil, err
	}
	base, err := w.at(ctx)
	if err != nil {
		return nil, w.rebase(err, branch)
	}
	out := &FolderCommit{FolderStatus: st, Base: base}
	if len(st.Changes) == 0 {
		out.Commit, err = w.db.store.Lookup(ctx, base)
		return out, err
	}
	var id SessionID
	_, _ = rand.Read(id[:]) // it does not fail
	s, err := w.db.BeginWith(ctx, txn.BeginOptions{Branch: branch, ID: id, Base: base})
	if err != nil {
		return nil, err
	}
	defer s.Abort() // does nothing after the commit
	s.SetLabel("commit folder " + w.b.Dir)
	if err := w.apply(ctx, s, st); err != nil {
		return nil, err
	}
	if o.DryRun {
		out.Commit, err = s.Commit(ctx, o.CommitOptions)
		return out, err
	}
	index, err := w.nextIndex(st)
	if err != nil {
		return nil, err
	}
	w.st.Pending = &checkout.Pending{Session: id.String(), Branch: branch, Index: index}
	if err := w.save(ctx); err != nil {
		return nil, err
	}
	err = folderStep("commit")
	if err == nil {
		out.Commit, err = s.Commit(ctx, o.CommitOptions)
	}
	if err == nil {
		out.Healed = s.Versions().Healed()
		err = folderStep("committed")
	}
	if err != nil {
		if errors.Is(err, txn.ErrConflict) {
			w.st.Pending = nil
			err = errors.Join(err, w.save(ctx))
		}
		if c := (*txn.ConflictError)(nil); errors.As(err, &c) && c.Rewound() {
			err = w.rebase(err, branch)
		}
		return out, err // else the next command finds out
	}
	c := out.Commit
	made, err := w.db.madeBy(ctx, w.st.Pending) // none if the changes came to nothing
	if err != nil {
		return out, err // the next command finds out
	}
	w.st.Branch, w.st.Commit, w.st.Index, w.st.Pending = branch, c.ID.String(), index, nil
	w.st.Moving = c.ID != base && (w.partial() || made != c.ID || len(c.Parents) != 1 || c.Parents[0] != base)
	if err = w.keep(ctx, c.ID); err == nil {
		err = w.save(ctx)
	}
	switch {
	case err != nil:
	case w.st.Moving:
		err = w.move(ctx, c.ID)
	default:
		err = w.keepOnly(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s is committed, and the folder is not at it yet: %w", c.ID.Short(), err)
	}
	return out, err
}

// rebase names the way on where nothing can be committed on the version that the folder stands at.
func (w *folderWork) rebase(err error, branch string) error {
	return fmt.Errorf("%w: \"zarrdb checkout %s@%s %s\" makes the changes of the folder those of a version that is there", err, w.info().Database, branch, w.b.Dir)
}

// partial reports whether there are groups above what the folder has, with copies of its documents.
func (w *folderWork) partial() bool { return w.st.Path != "" || w.scope != nil }

// apply writes the changes to a session: what goes, then documents, which tell what chunks are, and the rest. It adds the entries
// of the files to st.fresh.
func (w *folderWork) apply(ctx context.Context, s *Session, st *FolderStatus) error {
	dir, err := dirkv.Open(w.b.Dir, &dirkv.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer dir.Close()
	prefix := w.st.Prefix()
	var gone, documents, others []string
	for _, c := range st.Changes {
		switch doc := names.IsDocument(c.Key); {
		case c.Op == "removed":
			gone = append(gone, prefix+c.Key)
		case doc:
			documents = append(documents, c.Key)
		default:
			others = append(others, c.Key)
		}
		if w.partial() && names.IsDocument(c.Key) {
			if err := s.copies.Key(ctx, prefix+c.Key); err != nil {
				return err
			}
		}
	}
	if err := kv.DeleteAll(ctx, s, gone); err != nil {
		return err
	}
	w.meter.Total = int64(len(documents) + len(others))
	entries := make([]checkout.Entry, len(documents)+len(others))
	for i, keys := range [][]string{documents, others} {
		err := w.db.pool.Run(ctx, len(keys), func(ctx context.Context, n int) (err error) {
			entries[i*len(documents)+n], err = w.put(ctx, s, dir, keys[n])
			return err
		})
		if err != nil {
			return err
		}
	}
	st.fresh = append(st.fresh, entries...)
	return nil
}

// put stores the bytes of one file as they are between two looks at it.
func (w *folderWork) put(ctx context.Context, s *Session, dir *dirkv.Store, key string) (e checkout.Entry, err error) {
	for range 5 {
		v, err := dir.Locate(ctx, key)
		if errors.Is(err, kv.ErrNotFound) {
			break // it was there
		}
		e = checkout.Entry{Key: key}
		if err == nil {
			e.Mark = checkout.MarkOf(v)
			err = transfer.ViewWhole(ctx, v, func(b []byte) error {
				e.Sum = digest.Of(b)
				e.Ref = kv.ID(e.Sum)
				if path.Base(key) == names.V3 && w.scope.Above(key) {
					if copies, rest := (policy.Policy{}).Copies(names.V3, b); copies != nil {
						b = rest
					}
					e.Ref = kv.ID{} // copies come into it
				}
				if names.IsDocument(key) {
					if _, err := policy.ParseObject(b); err != nil {
						return fmt.Errorf("%w: %w: it is not committed while a program writes it", zarr.ErrMetadata, err)
					}
				}
				w.meter.Add(int64(len(b)), w.o.Progress)
				return s.Set(ctx, w.st.Prefix()+key, b)
			})
		}
		var now kv.Value
		if err == nil {
			now, err = dir.Locate(ctx, key)
		}
		switch {
		case err == nil && checkout.Sealed(now) == checkout.Sealed(v):
			return e, nil
		case err != nil && !errors.Is(err, kv.ErrChanged) && !errors.Is(err, kv.ErrNotFound):
			return e, fmt.Errorf("%s: %w", key, err)
		}
	}
	return e, fmt.Errorf("%s: %w while it was read: commit again when the program that writes it has ended", key, kv.ErrChanged)
}

// nextIndex writes the index as it is after the commit.
func (w *folderWork) nextIndex(st *FolderStatus) (string, error) {
	slices.SortFunc(st.fresh, func(a, b checkout.Entry) int { return cmp.Compare(a.Key, b.Key) })
	gone := map[string]bool{}
	for _, c := range st.Changes {
		gone[c.Key] = c.Op == "removed"
	}
	entries, _, err := w.b.Index(w.st.Index)
	if err == nil {
		err = folderStep("index")
	}
	if err != nil {
		return "", err
	}
	return w.b.NewIndex(func(add func(checkout.Entry) error) error {
		next := st.fresh
		for e, err := range entries {
			for err == nil && len(next) > 0 && next[0].Key < e.Key {
				err, next = add(next[0]), next[1:]
			}
			switch {
			case err != nil:
				return err
			case len(next) > 0 && next[0].Key == e.Key:
				e, next = next[0], next[1:]
			case gone[e.Key]:
				continue
			}
			if err := add(e); err != nil {
				return err
			}
		}
		for _, e := range next {
			if err := add(e); err != nil {
				return err
			}
		}
		return nil
	})
}
