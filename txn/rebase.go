package txn

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/overlay"
)

// RebaseOptions configure [DB.Rebase]. The zero value works.
type RebaseOptions struct {
	// Onto is where the commits go; zero is upstream itself.
	Onto CommitID
	// Choices decide conflicts as in [CommitOptions]: Ours is what was rebuilt
	// so far, Theirs the commit that is repeated.
	Choices []PathChoice
	// Decided, if not nil, is called for conflicts that Choices decided.
	Decided func(Conflict, Choice) `json:"-"`
	// Squash makes one commit of all, of the author and time of the last. Its message is Message or, without one,
	// all of theirs, oldest first.
	Squash  bool
	Message string
	// DryRun repeats everything but leaves the branch where it is.
	DryRun bool

	choose func(Conflict) Choice // in place of Choices, in tests
}

// chooser returns the function that decides conflicts, nil to refuse them all.
func (o *RebaseOptions) chooser() func(Conflict) Choice {
	if o.choose != nil {
		return o.choose
	}
	return chooser(o.Choices, o.Decided)
}

// Rebase takes the commits of a branch that upstream has not, repeats them one
// by one on top of upstream, or Onto, and moves the branch to the last. Message,
// author, time and properties stay. What changes nothing any more is left out,
// and a merge becomes one commit of all that it brought in. A commit whose version has
// expired is not repeated by itself: the next one brings its changes. All of it happens,
// durably, or nothing: a conflict is a *[ConflictError] that names its commit,
// as is a branch that moved meanwhile. The head is returned.
//
//	before  o──u──u  upstream       after  o──u──u──a'──b'  branch
//	         \
//	          a──b   branch
func (db *DB) Rebase(ctx context.Context, branch string, upstream CommitID, o RebaseOptions) (*Commit, error) {
	r := combineRequest{Do: "rebase", Branch: branch, Version: upstream, Rebase: o}
	if o.Squash {
		r.Do = "rebase squash" // an earlier program that has the database open refuses it
	}
	return db.home.combine(ctx, r)
}

func (db *DB) rebase(ctx context.Context, branch string, upstream CommitID, o RebaseOptions) (*Commit, error) {
	s, err := db.Begin(ctx, branch)
	if err != nil {
		return nil, err
	}
	defer s.Abort()
	c, err := s.rebase(ctx, upstream, o)
	if err != nil {
		return nil, fmt.Errorf("rebase: %w", err)
	}
	return c, nil
}

func (s *Session) rebase(ctx context.Context, upstream CommitID, o RebaseOptions) (*Commit, error) {
	db := s.db
	if o.Onto.IsZero() {
		o.Onto = upstream
	}
	failures := db.packFailures.Load()
	onto, err := db.Snapshot(ctx, o.Onto)
	if err != nil {
		return nil, err
	}
	defer onto.Close()
	// What is repeated takes pages of these versions by name, and branches need
	// not keep them.
	if err := db.keeping.RLock(ctx); err != nil {
		return nil, err
	}
	commits, n, base, err := db.since(ctx, s.base, upstream)
	if err == nil {
		s.hold(base.Root)
		for _, c := range commits {
			s.hold(c.Root)
		}
	}
	db.keeping.RUnlock()
	if err != nil {
		return nil, err
	}
	if o.Squash && len(commits) > 0 && (o.Message != "" || n > 1) {
		commits = []*Commit{squashed(commits, o.Message)}
	} else if base.ID == o.Onto {
		return db.Lookup(ctx, s.base) // it is there already
	}
	made, err := s.repeat(ctx, onto.commit, base, commits, o.chooser())
	if err != nil {
		return nil, err
	}
	head := onto.commit
	if len(made) > 0 {
		head = made[len(made)-1]
	}
	return head, s.moveTo(ctx, made, head, failures, "rebase", o.DryRun)
}

// squashed is one commit in the place of several.
func squashed(commits []*Commit, message string) *Commit {
	one := *commits[len(commits)-1]
	one.Properties = map[string]string{}
	var messages []string
	for _, c := range commits {
		messages = append(messages, c.Message)
		maps.Copy(one.Properties, c.Properties)
	}
	if one.Message = message; message == "" {
		one.Message = strings.Join(messages, "\n\n")
	}
	return &one
}

// Amend makes the head of a branch again with another message, author, time or properties: those that the
// options have. Its contents stay. A tag or branch that names the old commit still does.
func (db *DB) Amend(ctx context.Context, branch string, o CommitOptions) (*Commit, error) {
	return db.home.combine(ctx, combineRequest{Do: "amend", Branch: branch, Commit: o})
}

func (db *DB) amend(ctx context.Context, branch string, o CommitOptions) (*Commit, error) {
	if err := catalog.CheckTime(o.Time); !o.Time.IsZero() && err != nil {
		return nil, fmt.Errorf("amend: %w", err)
	}
	s, err := db.Begin(ctx, branch)
	if err != nil {
		return nil, err
	}
	defer s.Abort()
	failures := db.packFailures.Load()
	head, err := db.Lookup(ctx, s.base)
	if err != nil {
		return nil, err
	}
	if len(head.Parents) == 0 {
		return nil, fmt.Errorf("amend %s: the first commit stays as it is: copies of the database know one another by it", head.ID.Short())
	}
	again := *head
	again.Message, again.Author = cmp.Or(o.Message, head.Message), cmp.Or(o.Author, head.Author)
	if !o.Time.IsZero() {
		again.Time = o.Time.UTC()
	}
	if o.Properties != nil {
		again.Properties = maps.Clone(o.Properties)
	}
	catalog.SealCommit(&again)
	if err := s.moveTo(ctx, []*Commit{&again}, &again, failures, "amend", o.DryRun); err != nil {
		return nil, fmt.Errorf("amend: %w", err)
	}
	return &again, nil
}

// since returns the line of first parents from head down to what upstream has, oldest first and
// without those that have expired, how many they are with those, and the commit below them.
func (db *DB) since(ctx context.Context, head, upstream CommitID) (line []*Commit, n int, base *Commit, err error) {
	next, stop := iter.Pull2(history.Ancestors(ctx, db.Lookup, []CommitID{upstream}, history.All))
	defer stop()
	has := map[CommitID]struct{}{}
	oldest := uint64(math.MaxUint64) // generation that has is complete above
	c, err := db.Lookup(ctx, head)
	for err == nil {
		for oldest >= c.Generation {
			u, err, ok := next()
			if !ok {
				break
			}
			if err != nil {
				return nil, 0, nil, err
			}
			has[u.ID], oldest = struct{}{}, u.Generation
		}
		if _, ok := has[c.ID]; ok {
			slices.Reverse(line)
			if base, err = db.version(ctx, c.ID); err != nil {
				err = fmt.Errorf("the version that both sides come from is not there, but they can be merged: %w", err)
			}
			return line, n, base, err
		}
		if len(c.Parents) == 0 {
			return nil, 0, nil, fmt.Errorf("%s and %s can only be merged: %w", head.Short(), upstream.Short(), history.ErrNoBase)
		}
		n++
		if gone, _, err := db.home.expired(ctx, c.ID); err != nil {
			return nil, 0, nil, err
		} else if !gone {
			line = append(line, c)
		}
		c, err = db.Lookup(ctx, c.Parents[0])
	}
	return nil, 0, nil, err
}

// repeat makes new commits of old ones on top of another. Nothing names them
// yet, so the roots are held until the session ends.
func (s *Session) repeat(ctx context.Context, onto, parent *Commit, commits []*Commit, choose func(Conflict) Choice) (made []*Commit, err error) {
	for _, c := range commits {
		root, conflicts, err := s.space.Merge(ctx, parent.Root, onto.Root, c.Root, namespace.MergeOptions{Choose: choose})
		if err == nil && len(conflicts) > 0 {
			err = &ConflictError{Branch: s.branch, Base: parent.ID, Head: onto.ID, Conflicts: conflicts}
		}
		if err != nil {
			return nil, fmt.Errorf("commit %s %q: %w", c.ID.Short(), firstLine(c.Message), err)
		}
		if parent = c; root == onto.Root {
			continue
		}
		again := &Commit{
			Parents: []CommitID{onto.ID}, Generation: onto.Generation + 1,
			Author: c.Author, Time: c.Time, Message: c.Message, Properties: c.Properties, Root: root,
		}
		catalog.SealCommit(again)
		s.hold(root)
		made, onto = append(made, again), again
	}
	return made, nil
}

// hold keeps roots as open snapshots do, until release is called or the session
// ends.
func (s *Session) hold(roots ...tree.Root) (release func()) {
	releases := make([]func(), len(roots))
	for i, root := range roots {
		releases[i] = s.db.hold(root)
	}
	release = func() {
		for _, release := range releases {
			release()
		}
	}
	s.holds(release)
	return release
}

// holds has release called when the session ends: at once if it has ended.
func (s *Session) holds(release func()) {
	s.mu.Lock()
	ended := s.state == sessionClosed
	if !ended {
		s.held = append(s.held, release)
	}
	s.mu.Unlock()
	if ended {
		release()
	}
}

// moveTo writes new commits and moves the session's branch from its base to
// head, at once. failures is the count under which documents that
// were merged have been stored. dry only says whether the move is refused.
func (s *Session) moveTo(ctx context.Context, made []*Commit, head *Commit, failures uint64, op string, dry bool) error {
	if head.ID == s.base {
		return nil
	}
	db := s.db
	ref := catalog.HeadRef(s.branch)
	change := newChange(failures)
	for _, c := range made {
		change.commits[c.ID] = catalog.SealCommit(c)
	}
	if dry {
		return db.mayMove(ctx, RefMove{Ref: ref, Old: s.base, New: head.ID}, change.commits)
	}
	written := map[tree.Name]struct{}{}
	for _, c := range made {
		if err := (overlay.Group{s.pages}).Private(ctx, s.space.Tree, c.Root, written, change.putPage); err != nil {
			return err
		}
	}
	defer db.care.Checkpoints.MakeIfDue()
	db.commit.lock()
	defer db.commit.unlock()
	switch is, ok := db.heads.get(ref); {
	case !ok:
		return fmt.Errorf("branch %q: %w", s.branch, ErrNoRef)
	case is != s.base:
		return &ConflictError{Branch: s.branch, Base: s.base, Head: is, Conflicts: []Conflict{{Kind: conflictBranchRewound}}}
	}
	change.moves = []RefMove{{Ref: ref, Old: s.base, New: head.ID, Time: db.opts.Now().UTC(), Author: db.opts.Author, Op: op}}
	return db.publish(ctx, change)
}
