package txn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/overlay"
)

// EraseOptions configure [DB.Erase].
type EraseOptions struct {
	// Force erases also what a branch or tag of a bucket has, as far as the last push or pull told, and in a shallow copy.
	Force bool
	// DryRun only finds out what would move.
	DryRun bool
}

// EraseReport says what [DB.Erase] did, or would do.
type EraseReport struct {
	// Moves are the branches and tags that moved. A dry run does not know where to.
	Moves []RefMove
	// Rewritten is how many commits were made again, and Dropped how many versions expired that had the path, and
	// that no branch or tag reaches.
	Rewritten, Dropped int64
	// Expired is how many commits had expired before: what they had is not known, so that a copy of the database that
	// has it still gets other ids.
	Expired int64
	// Elsewhere are other paths at which versions have an array or group that was at the path, or below.
	Elsewhere []string
	// Remotes are the branches and tags of buckets that have the path still, for people.
	Remotes []string
}

// Erase takes a key, or a node with all below it, out of every version that a branch or tag reaches, and makes the
// commits that follow again: author, time, message and properties stay, ids change. All branches and tags move
// at once, durably, or none does. The versions that had the path expire, so that a collection removes what only they had; the next one
// leaves no byte of it in the files of the database, unless something has such a version open or a file has a second link.
//
// Errors: kv.ErrNotFound if no version has the path; [ErrProtected] if a branch or tag that has it is
// protected; [ErrErase] for a session that has it or is based on such a version, for a version that is kept by name, and
// without Force for what a bucket has, and in a shallow copy.
func (db *DB) Erase(ctx context.Context, path string, o EraseOptions) (*EraseReport, error) {
	defer db.letGo() // also after a lost answer
	return asked(ctx, db, "erase", eraseRequest{path, o}, db.erase)
}

// ErrErase means that something has to happen before a path is erased. It is [ErrConflict].
var ErrErase = fmt.Errorf("%w: it cannot be erased now", ErrConflict)

type eraseRequest struct {
	Path string
	EraseOptions
}

func (db *DB) erase(ctx context.Context, r eraseRequest) (_ *EraseReport, err error) {
	defer wrap(&err, "erase %q", r.Path)
	if err := db.changes(r.DryRun); err != nil {
		return nil, err
	}
	if err := namespace.CheckKey(r.Path); err != nil {
		return nil, err
	}
	e := &eraser{
		db: db, o: r.EraseOptions, path: r.Path, space: db.space, to: map[CommitID]CommitID{}, dropped: map[CommitID]unreached{},
		gone: map[CommitID]struct{}{}, change: newChange(db.packFailures.Load()), r: &EraseReport{},
	}
	if !r.DryRun {
		branches, _, err := db.Refs(ctx)
		if err != nil || len(branches) == 0 {
			return nil, errors.Join(err, fmt.Errorf("a database without branches: %w", ErrNoRef))
		}
		if e.s, err = db.Begin(ctx, branches[0].Name); err != nil {
			return nil, err
		}
		defer e.s.Abort()
		e.space = e.s.space
	}
	e.eraser = namespace.NewEraser(e.space, r.Path)
	if err := e.look(ctx); err != nil {
		return nil, err
	}
	if e.s != nil { // pages go ahead, so that commits do not wait for them
		if err := e.s.pages.Spill(ctx); err != nil {
			return nil, err
		}
	}
	defer db.care.Checkpoints.MakeIfDue()
	db.commit.lock()
	defer db.commit.unlock()
	return e.r, e.publish(ctx)
}

// eraser makes commits again without a path:
//
//	refs, buckets ─▶ commits, oldest first ─▶ roots without the path, new commits     commits go on
//	what came since, sessions, kept versions ─▶ one batch                             locked
type eraser struct {
	db     *DB
	o      EraseOptions
	path   string
	s      *Session // holds new pages; nil in a dry run
	space  *namespace.Space
	eraser *namespace.Eraser
	change *change
	r      *EraseReport

	refs    []Ref
	pushed  []pushedRef
	to      map[CommitID]CommitID // all commits that were looked at, also those that stay
	shallow bool                  // some of them were not copied
	dropped map[CommitID]unreached
	gone    map[CommitID]struct{} // new commits in the place of expired ones
	expiry  []catalog.Expiry      // of those
}

// unreached says what becomes of a version that no ref reaches.
type unreached uint8

const (
	stays unreached = iota
	goes            // it had the path, or follows a version that goes or was made again
	went            // it would go, and has expired before
)

// unknown stands for the id of a commit that a dry run does not make.
var unknown = CommitID{1}

// look makes the commits again that refs reach, as far as that was not done.
func (e *eraser) look(ctx context.Context) error {
	db := e.db
	if err := db.writePending(ctx); err != nil {
		return err
	}
	e.refs, e.pushed = db.heads.list(""), nil
	var from []CommitID
	for _, r := range e.refs {
		from = append(from, r.Commit)
	}
	for _, p := range pushedRefs(db) {
		if _, err := db.Lookup(ctx, p.Commit); err == nil {
			from = append(from, p.Commit)
		} else if errors.Is(err, ErrNoRef) {
			if !p.Commit.IsZero() {
				p.name += ", which has versions that are not known here,"
			}
			p.Commit = CommitID{}
		} else {
			return err
		}
		e.pushed = append(e.pushed, p)
	}
	var line []*Commit
	for c, err := range history.Ancestors(ctx, db.Lookup, from, func(c *Commit) bool { return !e.has(c.ID) }) {
		if err != nil {
			return err
		}
		if !e.has(c.ID) {
			line = append(line, c)
		}
	}
	for _, c := range slices.Backward(line) {
		if err := e.commit(ctx, c); err != nil {
			return fmt.Errorf("commit %s %q: %w", c.ID.Short(), firstLine(c.Message), err)
		}
	}
	return e.lookUnreached(ctx)
}

// lookUnreached looks at versions that were undone, amended or on branches that are gone: they are kept until they expire.
func (e *eraser) lookUnreached(ctx context.Context) error {
	db := e.db
	var list []*Commit
	for rec, err := range catalog.StoredCommits(ctx, db.idx, nil) {
		if err != nil {
			return err
		}
		if _, known := e.dropped[rec.ID]; known || e.has(rec.ID) {
			continue
		}
		c, err := catalog.DecodeCommit(rec.ID, rec.Value)
		if err != nil {
			return err
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *Commit) int { return cmp.Compare(a.Generation, b.Generation) })
	for _, c := range list {
		gone, _, err := db.home.expired(ctx, c.ID)
		if err != nil {
			return err
		}
		found := slices.ContainsFunc(c.Parents, e.moved)
		if !gone {
			if err := e.follow(ctx, c); err != nil {
				return err
			}
			if !found {
				if found, err = e.eraser.Finds(ctx, c.Root); err != nil {
					return err
				}
			}
		}
		switch {
		case !found:
			e.dropped[c.ID] = stays
		case gone:
			e.dropped[c.ID] = went
		default:
			e.dropped[c.ID] = goes
		}
	}
	return nil
}

func (e *eraser) has(id CommitID) bool { _, ok := e.to[id]; return ok }

// moved reports whether a commit was made again, or expires.
func (e *eraser) moved(id CommitID) bool {
	return e.dropped[id] != stays || e.has(id) && e.to[id] != id
}

// commit makes a commit again if it or one before it had the path.
func (e *eraser) commit(ctx context.Context, c *Commit) error {
	again := *c
	again.Parents = slices.Clone(c.Parents)
	changed := false
	for i, p := range c.Parents {
		again.Parents[i] = e.to[p]
		changed = changed || e.to[p] != p
	}
	gone, at, err := e.db.home.expired(ctx, c.ID)
	if err != nil {
		return err
	}
	found := false
	if gone {
		e.r.Expired++
		e.shallow = e.shallow || at.Equal(catalog.NotCopied)
	} else { // else its contents may be gone, and nothing keeps them
		if err := e.follow(ctx, c); err != nil {
			return err
		}
		if found, err = e.eraser.Finds(ctx, c.Root); err != nil {
			return err
		}
	}
	switch {
	case found && len(c.Parents) == 0:
		return errors.New("the first commit stays as it is: copies of the database know one another by it; export what stays, and import it into a new database")
	case !found && !changed:
		e.to[c.ID] = c.ID
		return nil
	case e.o.DryRun:
		e.to[c.ID] = unknown
		e.r.Rewritten++
		return nil
	case found:
		if again.Root, err = e.eraser.Erase(ctx, c.Root); err != nil {
			return err
		}
		e.s.hold(again.Root)
	}
	record := catalog.SealCommit(&again)
	e.to[c.ID], e.change.commits[again.ID] = again.ID, record
	if gone {
		e.gone[again.ID] = struct{}{}
		e.expiry = append(e.expiry, catalog.Expiry{Commit: again.ID, Time: at})
	} else if !found {
		e.s.hold(again.Root)
	}
	e.r.Rewritten++
	return nil
}

// follow notes where what is at the path was before a commit that renamed it, or went to.
func (e *eraser) follow(ctx context.Context, c *Commit) error {
	for _, id := range c.Parents {
		p, err := e.db.version(ctx, id)
		if errors.Is(err, ErrExpired) {
			continue
		} else if err != nil {
			return err
		}
		for _, pair := range [][2]tree.Root{{p.Root, c.Root}, {c.Root, p.Root}} {
			paths, err := e.eraser.Elsewhere(ctx, pair[0], pair[1])
			if err != nil {
				return err
			}
			for _, path := range paths {
				if !strings.HasPrefix(path, namespace.DirPath(e.path)) && !slices.Contains(e.r.Elsewhere, path) {
					e.r.Elsewhere = append(e.r.Elsewhere, path)
				}
			}
		}
	}
	return nil
}

// publish moves the refs. Commits are locked.
func (e *eraser) publish(ctx context.Context) error {
	db, now := e.db, e.db.opts.Now().UTC()
	if err := e.look(ctx); err != nil { // what came since
		return err
	}
	if err := db.keeping.Lock(ctx); err != nil { // no session begins
		return err
	}
	defer db.keeping.Unlock()
	old := []CommitID{}
	for id := range e.to {
		if e.moved(id) {
			old = append(old, id)
		}
	}
	for id, what := range e.dropped {
		if what == goes && !e.has(id) {
			old = append(old, id)
			e.r.Dropped++
		}
	}
	if len(old) == 0 {
		return fmt.Errorf("no version has it: %w; \"zarrdb gc DB --erase\" removes what expired versions had", kv.ErrNotFound)
	}
	for _, r := range e.refs {
		m := RefMove{Ref: r.Name, Old: r.Commit, New: e.to[r.Commit], Time: now, Author: db.opts.Author, Op: "erase"}
		if m.Old == m.New {
			continue
		}
		if err := db.heads.protection(r.Name).Allow(m, func() (bool, error) { return false, nil }); err != nil {
			return err
		}
		if m.New == unknown {
			m.New = CommitID{}
		}
		e.r.Moves = append(e.r.Moves, m)
	}
	if err := e.refused(ctx); err != nil || e.o.DryRun {
		return err
	}
	batch := db.idx.NewBatch()
	defer batch.Close()
	for _, id := range old {
		catalog.Expired.Put(batch, catalog.Expiry{Commit: id, Time: now})
	}
	written := map[tree.Name]struct{}{}
	for id, record := range e.change.commits {
		c, err := catalog.DecodeCommit(id, record)
		if err != nil {
			return err
		}
		if _, gone := e.gone[id]; gone {
			continue
		}
		if err := (overlay.Group{e.s.pages}).Private(ctx, e.space.Tree, c.Root, written, e.change.putPage); err != nil {
			return err
		}
	}
	for _, x := range e.expiry { // not as commits of the change, which have not expired
		catalog.PutCommit(batch, x.Commit, e.change.commits[x.Commit])
		delete(e.change.commits, x.Commit)
		catalog.Expired.Put(batch, x)
	}
	catalog.PutErased(batch)
	catalog.PutLastCare(batch, catalog.LastErase, now)
	e.change.extra, e.change.moves = batch, slices.Clone(e.r.Moves)
	defer db.current.clear() // the batch may be stored although it fails
	return db.publish(ctx, e.change)
}

// refused returns why nothing is erased now.
func (e *eraser) refused(ctx context.Context) error {
	if err := e.sessions(ctx); err != nil {
		return err
	}
	for p, err := range catalog.Pins.All(e.db.idx) {
		if err != nil {
			return err
		}
		if e.moved(p.Commit) {
			return fmt.Errorf("version %s, which has it, is kept as %q: %w: \"zarrdb keep DB --end %s\" ends that", p.Commit.Short(), p.Name, ErrErase, p.Name)
		}
	}
	for _, p := range e.pushed {
		if p.Commit.IsZero() || e.moved(p.Commit) {
			e.r.Remotes = append(e.r.Remotes, p.name)
		}
	}
	if e.shallow && !e.o.Force {
		return fmt.Errorf("the copy is shallow, and would get other ids than a full one: %w: pull --unshallow first, or erase it in the full copy and clone again; --force erases it here alone", ErrErase)
	}
	if len(e.r.Remotes) > 0 && !e.o.Force {
		return fmt.Errorf("%s has it, or may have it, as far as the last push or pull told: %w: with --force it is erased here, and others may have it still", strings.Join(e.r.Remotes, ", "), ErrErase)
	}
	return nil
}

// sessions refuses for a session that has the path, or is based on a version that has it: its commit would bring it back.
func (e *eraser) sessions(ctx context.Context) error {
	refuse := func(i SessionInfo, how string) error {
		return fmt.Errorf("session %v of %v %s: %w: commit or abort it first", i.ID, i.By, how, ErrErase)
	}
	sessions, err := e.db.listSessions(ctx, none{})
	if err != nil {
		return err
	}
	for _, i := range sessions {
		if e.moved(i.Base) && (e.s == nil || i.ID != e.s.id) {
			return refuse(i, "is based on a version that has it")
		}
	}
	for r, err := range catalog.Sessions.All(e.db.idx) {
		if err != nil {
			return err
		}
		if has, err := e.eraser.Finds(ctx, r.Work); err != nil {
			return err
		} else if has {
			return refuse(SessionInfo{ID: r.ID, By: r.By}, "has it")
		}
	}
	for _, s := range e.db.openSessions() {
		if s == e.s {
			continue
		}
		if has, err := s.finds(ctx, e.path); s.live.Load() == nil {
			continue // it has ended
		} else if err != nil {
			return err
		} else if has {
			return refuse(s.Info(), "has it")
		}
	}
	return nil
}

// finds reports whether the session has anything of a path now.
func (s *Session) finds(ctx context.Context, path string) (bool, error) {
	s.mu.RLock()
	root, has := s.work, false
	for key, edit := range s.buf {
		has = has || !edit.Delete && (key == path || strings.HasPrefix(key, namespace.DirPath(path)))
	}
	s.mu.RUnlock()
	if has {
		return true, nil
	}
	return namespace.NewEraser(s.space, path).Finds(ctx, root)
}

// pushedRef is a branch or tag of a bucket as of the last transfer.
type pushedRef struct {
	Ref
	name string // for people
}

// pushedRefs returns what is known of the branches and tags of buckets.
func pushedRefs(db *DB) (list []pushedRef) {
	for _, s := range bucket.States(db.fs, db.dir) {
		if len(s.Refs) == 0 && (s.Cloned || s.Known != nil) { // earlier programs did not note them
			list = append(list, pushedRef{name: s.URL + ", whose branches are not known here,"})
		}
		for _, ref := range slices.Sorted(maps.Keys(s.Refs)) {
			kind, short := "branch", strings.TrimPrefix(ref, catalog.HeadPrefix)
			if tag, ok := strings.CutPrefix(ref, catalog.TagPrefix); ok {
				kind, short = "tag", tag
			}
			list = append(list, pushedRef{Ref{Name: ref, Commit: CommitID(s.Refs[ref])}, fmt.Sprintf("%s %q of %s", kind, short, s.URL)})
		}
	}
	return list
}
