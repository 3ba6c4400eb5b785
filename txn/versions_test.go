package txn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/txntest"
)

// choiceOf decides conflicts of plain histories only: where arrays are, a choice
// may take a whole one.
func choiceOf(s step, plain bool) Choice {
	if !plain {
		return Refuse
	}
	return []Choice{Refuse, Refuse, Ours, Theirs}[s.c%4]
}

func always(choice Choice) []PathChoice {
	if choice == Refuse {
		return nil
	}
	return []PathChoice{{Choice: choice}}
}

// isPlain reports whether a history has no arrays so far.
func (r *versionsRun) isPlain() bool { return r.fresh == 0 }

func (r *versionsRun) merge(s step) error {
	name, other := r.branchOf(s.a), r.commitOf(s.b)
	ref, choice := catalog.HeadRef(name), choiceOf(s, r.isPlain())
	head, ok := r.m.refs[ref]
	var merged content
	var want error
	if !ok {
		want = ErrNoRef
	} else if base, err := r.m.base(head, other); err != nil {
		want = ErrManyBases
	} else if r.m.expired[base] {
		ours, theirs := r.m.commits[head].content, r.m.commits[other].content
		merged = ours
		switch {
		case maps.Equal(ours.keys, theirs.keys):
		case choice == Theirs:
			merged = theirs
		case choice == Refuse:
			want = ErrConflict
		}
	} else if merged, ok = mergeContents(r.m.commits[base].content, r.m.commits[head].content, r.m.commits[other].content, mergeRule{choose: choice}); !ok {
		want = ErrConflict
	}
	c, err := r.writer(s).Merge(bg, name, other, CommitOptions{Choices: always(choice)})
	if err := expect(err, want); err != nil || want != nil {
		return err
	}
	return r.committed(ref, c, []CommitID{head, other}, merged)
}

func (r *versionsRun) pick(s step, revert bool) error {
	name, id := r.branchOf(s.a), r.commitOf(s.b)
	ref, choice := catalog.HeadRef(name), choiceOf(s, r.isPlain())
	head, ok := r.m.refs[ref]
	parents := r.m.commits[id].parents
	n := 0
	if len(parents) > 1 {
		n = 1 + s.c%2
	}
	do := r.writer(s).CherryPick
	if revert {
		do = r.writer(s).Revert
	}
	c, err := do(bg, name, id, n, CommitOptions{Choices: always(choice)})
	switch {
	case len(parents) == 0:
		if err == nil {
			return errors.New("the first commit has no parent")
		}
		return nil
	case !ok:
		return expect(err, ErrNoRef)
	case r.m.expired[parents[max(n-1, 0)]]:
		return expect(err, ErrExpired)
	}
	base, theirs := r.m.commits[parents[max(n-1, 0)]].content, r.m.commits[id].content
	if revert {
		base, theirs = theirs, base
	}
	merged, ok := mergeContents(base, r.m.commits[head].content, theirs, mergeRule{choose: choice})
	if !ok {
		return expect(err, ErrConflict)
	}
	if err != nil {
		return err
	}
	return r.committed(ref, c, []CommitID{head}, merged)
}

func (r *versionsRun) rebase(s step) error {
	name, upstream := r.branchOf(s.a), r.commitOf(s.b)
	ref, choice := catalog.HeadRef(name), choiceOf(s, r.isPlain())
	head, ok := r.m.refs[ref]
	c, err := r.writer(s).Rebase(bg, name, upstream, RebaseOptions{Choices: always(choice)})
	if !ok {
		return expect(err, ErrNoRef)
	}
	has := r.m.ancestors(upstream, 0)
	var line []CommitID
	base := head
	for ; !has[base]; base = r.m.commits[base].parents[0] {
		if !r.m.expired[base] {
			line = append(line, base)
		}
	}
	if r.m.expired[base] {
		return expect(err, ErrExpired)
	}
	if base == upstream {
		if err == nil && c.ID != head {
			err = errors.New("a branch that is there already has moved")
		}
		return err
	}
	now, below := r.m.commits[upstream].content, r.m.commits[base].content
	var states []content // after each commit
	for _, id := range slices.Backward(line) {
		next, ok := mergeContents(below, now, r.m.commits[id].content, mergeRule{choose: choice})
		if !ok {
			return expect(err, ErrConflict)
		}
		states, now, below = append(states, next), next, r.m.commits[id].content
	}
	if err != nil {
		return err
	}
	r.m.move(ref, c.ID)
	return r.rebased(c, upstream, states)
}

// rebased takes the new commits into the model. Those without changes may be
// left out.
func (r *versionsRun) rebased(head *Commit, upstream CommitID, states []content) error {
	var made []*Commit
	for c := head; c.ID != upstream; {
		if made = append(made, c); len(made) > len(states) {
			return errors.New("there are more commits than were repeated")
		}
		var err error
		if c, err = r.db.Lookup(bg, c.Parents[0]); err != nil {
			return err
		}
	}
	last := upstream
	for _, c := range slices.Backward(made) {
		got, err := r.read(c.ID)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(states, func(s content) bool { return maps.Equal(s.keys, got) })
		if i < 0 {
			return fmt.Errorf("commit %s is none that was repeated", c.ID.Short())
		}
		if err := r.m.add(c, []CommitID{last}, states[i].clone()); err != nil {
			return err
		}
		states, last = states[i+1:], c.ID
	}
	for _, s := range states {
		if !s.equal(r.m.commits[last].content) {
			return errors.New("a commit with changes was left out")
		}
	}
	return nil
}

func (r *versionsRun) reopen(step) error {
	if err := r.leave(); err != nil {
		return err
	}
	if err := r.db.Close(); err != nil {
		return err
	}
	if r.p != nil {
		return r.takeOver(nil)
	}
	var err error
	if r.db, err = Open("db", r.o); err != nil {
		return err
	}
	r.views = nil
	r.secondPasses()
	r.sessions = slices.DeleteFunc(r.sessions, func(m *modelSession) bool { return m.saved == nil })
	for _, m := range r.sessions {
		if err := r.resume(m); err != nil {
			return err
		}
	}
	return nil
}

func (r *versionsRun) expire(s step) error {
	if len(r.m.refs) == 0 {
		return nil // nothing would stay
	}
	keep, drop := 1+s.a%6, s.b%2 == 0
	if _, err := r.writer(s).Expire(bg, ExpireOptions{Keep: keep, DropBases: drop}); err != nil {
		return err
	}
	for _, m := range r.sessions {
		if gone, err := r.db.Expired(bg, m.base); gone || err != nil {
			return fmt.Errorf("the base of a session: %v, %w", gone, err)
		}
	}
	return r.m.expire(func(id CommitID) (bool, error) { return r.db.Expired(bg, id) }, keep, drop)
}

func (r *versionsRun) gc(s step) error {
	o := GCOptions{DryRun: s.a%5 == 0, Explain: s.a%7 == 0}
	if s.b%2 == 0 { // little memory
		o.deadNames, o.rangeBytes = 1+s.b%20, 1+s.c%200
	}
	if o.DryRun {
		_, err := r.db.GC(bg, o)
		return err
	}
	if s.c%2 == 0 { // versions that are open expire
		if err := r.expire(s); err != nil {
			return err
		}
	}
	err := r.whenAllAreHere(func() error { return second(r.writer(s).GC(bg, o)) })
	for i := 0; err == nil && i < len(r.views); i++ {
		err = r.look(step{a: i})
	}
	return err
}

// whenAllAreHere runs a function, which must fail while a peer lives that has not been
// connected to the present holder.
func (r *versionsRun) whenAllAreHere(run func() error) error {
	for {
		err := run()
		n := slices.IndexFunc(r.peers[:], func(l *link) bool { return l != nil && l.away() })
		switch {
		case n < 0 && !errors.Is(err, ErrPeersAway), n >= 0 && err != nil && !errors.Is(err, ErrPeersAway):
			return err
		case n < 0 || err == nil:
			return fmt.Errorf("with peer %d away: %v", n, err)
		}
		if err := r.peers[n].connect(); err != nil {
			return err
		}
	}
}

func (r *versionsRun) fsck(payloads bool) error {
	report, err := r.db.Check(bg, CheckOptions{Payloads: payloads})
	if err != nil {
		return err
	}
	for _, p := range report.Problems {
		err = errors.Join(err, fmt.Errorf("check: %v", p))
	}
	return err
}

// read lists a version.
func (r *versionsRun) read(id CommitID) (map[string]string, error) {
	s, err := r.db.Snapshot(bg, id)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	got, err := r.valuesOf(s, s.lookup)
	if err != nil {
		return nil, err
	}
	return got, r.peerReads(id, got)
}

// valuesOf reads a version or a session in each way that there is.
func (r *versionsRun) valuesOf(from interface {
	Values(ctx context.Context, prefix string) iter.Seq2[KeyValue, error]
	Value(ctx context.Context, key string) (KeyValue, error)
}, lookup func(ctx context.Context, key string) (tree.Value, error)) (map[string]string, error) {
	got := map[string]string{}
	for one, err := range from.Values(bg, "") {
		if err != nil {
			return nil, err
		}
		if alone, err := from.Value(bg, one.Key); err != nil || alone != one {
			return nil, fmt.Errorf("%q is %+v on its own, %+v among all, %v", one.Key, alone, one, err)
		}
		v, err := lookup(bg, one.Key)
		if err != nil {
			return nil, err
		}
		b, err := r.db.load(bg, v)
		if err != nil {
			return nil, err
		}
		got[one.Key] = string(b)
	}
	return got, nil
}

// link returns the connection of a peer, which has what it read earlier.
func (r *versionsRun) link(n int) *link {
	l := &r.peers[n%len(r.peers)]
	if *l == nil {
		*l = &link{r: r, leases: map[*linkLease]struct{}{}, recalled: func() {}}
		o := *r.o
		if r.p != nil {
			o.FS = presentFS{o.FS, r.p}
		}
		(*l).peer = NewPeer("db", r.db.Identity(), *l, &o)
	}
	return *l
}

// beside returns a peer.
func (r *versionsRun) beside() *DB { return r.link(0).peer }

// writer returns the database, or a peer, for something that a step changes.
func (r *versionsRun) writer(s step) *DB {
	if n := s.a + s.b + s.c; n%2 == 0 {
		return r.link(n / 2).peer
	}
	return r.db
}

// peerReads compares what a peer reads of a version.
func (r *versionsRun) peerReads(id CommitID, want map[string]string) error {
	s, err := r.beside().At(bg, id.String())
	if err != nil {
		return fmt.Errorf("a peer: %w", err)
	}
	defer s.Close()
	if got := contentsIn(s); !maps.Equal(got, want) {
		return fmt.Errorf("a peer reads %v of %v, where %v is", got, id, want)
	}
	return nil
}

// check compares refs, a version and a session with the model.
func (r *versionsRun) check(s step) error {
	if refs := refsOf(r.db); !maps.Equal(refs, r.m.refs) {
		return fmt.Errorf("branches %v, want %v", refs, r.m.refs)
	}
	if m := r.session(s); m != nil {
		got, err := r.valuesOf(m.s, m.s.home.lookup)
		if err != nil {
			return err
		}
		if !maps.Equal(got, m.work.keys) {
			return fmt.Errorf("a session holds %v, want %v", got, m.work.keys)
		}
	}
	some := []CommitID{r.commitOf(s.a), r.commitOf(s.b), r.commitOf(s.c), r.m.order[len(r.m.order)-1]}
	if err := txntest.Same(bg, r.db, r.beside(), []string{r.branchOf(s.b)}, some); err != nil {
		return fmt.Errorf("a peer: %w", err)
	}
	return r.checkCommit(r.commitOf(s.a))
}

func (r *versionsRun) checkCommit(id CommitID) error {
	got, err := r.read(id)
	if err != nil {
		return err
	}
	want := r.m.commits[id].content
	if !maps.Equal(got, want.keys) {
		return fmt.Errorf("commit %s holds %v, want %v", id.Short(), got, want.keys)
	}
	c, err := r.db.Lookup(bg, id)
	if err != nil {
		return err
	}
	arrays := map[[16]byte]int{}
	for path, n := range want.arrays {
		id, ok, err := r.db.space.Identity(bg, c.Root, path)
		if err != nil || !ok || arrays[id] != 0 {
			return fmt.Errorf("commit %s: array %s: %v %v %v", c.ID.Short(), path, id, ok, err)
		}
		arrays[id] = n
	}
	return nil
}

// lease opens a version in the holder or in a peer.
func (r *versionsRun) lease(s step) error {
	if len(r.views) > 8 {
		return r.letGo(s)
	}
	id := r.commitOf(s.b)
	var l *link
	db := r.db
	if r.p != nil && s.c%3 > 0 {
		l = r.link(s.a)
		db = l.peer
	}
	v, err := db.Snapshot(bg, id)
	if err == nil {
		r.views = append(r.views, &heldView{l, v, r.m.commits[id].content.keys})
	}
	return err
}

// look reads a version that is open.
func (r *versionsRun) look(s step) error {
	if len(r.views) == 0 {
		return nil
	}
	h := r.views[s.a%len(r.views)]
	if got := contentsIn(h.v); !maps.Equal(got, h.want) {
		return fmt.Errorf("an open version has %v in commit %v, want %v", got, h.v.Commit().ID, h.want)
	}
	return nil
}

// letGo closes a version that is open.
func (r *versionsRun) letGo(s step) error {
	if len(r.views) == 0 {
		return nil
	}
	i := s.a % len(r.views)
	h := r.views[i]
	r.views = slices.Delete(r.views, i, i+1)
	return h.v.Close()
}

// tag makes a tag, or deletes it.
func (r *versionsRun) tag(s step) error {
	name, id := fmt.Sprint("t", s.a%2), r.commitOf(s.b)
	ref := catalog.TagRef(name)
	if _, ok := r.m.refs[ref]; ok {
		if err := r.writer(s).DeleteTag(bg, name); err != nil {
			return err
		}
		r.m.move(ref, CommitID{})
		return nil
	}
	if err := r.writer(s).CreateTag(bg, name, id); err != nil {
		return err
	}
	r.m.move(ref, id)
	return nil
}

// exchange pushes a branch to another database, where a commit follows, and pulls that commit.
func (r *versionsRun) exchange(s step) error {
	name, to := r.branchOf(s.a), r.branchOf(s.b)
	head, ok := r.m.refs[catalog.HeadRef(name)]
	_, err := r.writer(s).Push(bg, r.other, TransferOptions{Refs: []RefSpec{{From: name, Force: true}}})
	if !ok {
		return expect(err, ErrNoRef)
	}
	if err != nil {
		return err
	}
	there, err := r.other.Begin(bg, name)
	if err != nil {
		return err
	}
	defer there.Close()
	want := r.m.commits[head].content.clone()
	if got := contentsIn(there); !maps.Equal(got, want.keys) {
		return fmt.Errorf("%v was pushed, want %v", got, want.keys)
	}
	if s.c%4 == 0 { // what is gone there comes again with the next push
		if err := expireAndCollect(r.other); err != nil {
			return err
		}
	}
	value := fmt.Sprint("other ", s.c, strings.Repeat("o", s.b%2*700))
	want.keys["other/k"] = value
	if err := there.Set(bg, "other/k", []byte(value)); err != nil {
		return err
	}
	c, err := there.Commit(bg, CommitOptions{Message: "other"})
	if err != nil {
		return err
	}
	if _, err := r.db.Pull(bg, r.other, TransferOptions{Refs: []RefSpec{{From: name, To: to, Force: true}}}); err != nil {
		return err
	}
	if c.ID == head {
		if r.m.refs[catalog.HeadRef(to)] != head {
			r.m.move(catalog.HeadRef(to), head)
		}
		return nil
	}
	r.m.move(catalog.HeadRef(to), c.ID)
	return r.m.add(c, []CommitID{head}, want)
}

// expireAndCollect lets all versions go that can go, and collects.
func expireAndCollect(db *DB) error {
	_, err := db.Expire(bg, ExpireOptions{Keep: 1})
	if err == nil {
		_, err = db.GC(bg, GCOptions{})
	}
	return err
}

// duplicate makes a clone or the next backup, and compares its versions.
func (r *versionsRun) duplicate(s step) error {
	dir, depth := "backup", 0
	var err error
	if s.b%2 == 0 {
		_, err = r.db.Backup(bg, dir, TransferOptions{})
	} else if err = r.o.FS.RemoveAll("clone"); err == nil {
		dir, depth = "clone", s.a%4
		_, err = r.db.Clone(bg, dir, TransferOptions{Depth: depth})
	}
	if err != nil {
		return err
	}
	c, err := Open(dir, testOptions(r.o.FS))
	if err != nil {
		return err
	}
	defer c.Close()
	return r.holds(c, dir, depth)
}

// holds compares the versions of a copy with the model.
func (r *versionsRun) holds(c *DB, dir string, depth int) error {
	if refs := refsOf(c); !maps.Equal(refs, r.m.refs) {
		return fmt.Errorf("the %s has refs %v, want %v", dir, refs, r.m.refs)
	}
	for _, id := range r.m.refs {
		for id := range r.m.ancestors(id, depth) {
			if err := r.keeps(c, id); err != nil && !(r.m.expired[id] && errors.Is(err, ErrExpired)) {
				return fmt.Errorf("%s: %w", dir, err)
			}
		}
	}
	return nil
}

// keeps compares a version in a database with the model.
func (r *versionsRun) keeps(db *DB, id CommitID) error {
	v, err := db.Snapshot(bg, id)
	if err != nil {
		return err
	}
	defer v.Close()
	if got, want := contentsIn(v), r.m.commits[id].content.keys; !maps.Equal(got, want) {
		return fmt.Errorf("commit %s has %d keys, want %d", id.Short(), len(got), len(want))
	}
	return nil
}

// tidy ends everything, and expects that only what is reachable is left.
func (r *versionsRun) tidy() error {
	if r.p != nil {
		for i := range r.peers {
			if err := r.killPeer(step{a: i}); err != nil {
				return err
			}
		}
	}
	for len(r.views) > 0 {
		if err := r.letGo(step{}); err != nil {
			return err
		}
	}
	for _, s := range r.db.openSessions() {
		if err := s.Abort(); err != nil {
			return err
		}
	}
	list, err := r.db.Sessions(bg)
	for _, s := range list {
		err = errors.Join(err, r.db.AbortSession(bg, s.ID))
	}
	if err != nil {
		return err
	}
	r.sessions = nil
	if _, err := r.db.Expire(bg, ExpireOptions{Keep: 1, DropBases: true}); err != nil {
		return err
	}
	if err := r.m.expire(func(id CommitID) (bool, error) { return r.db.Expired(bg, id) }, 1, true); err != nil {
		return err
	}
	if _, err := r.db.GC(bg, GCOptions{}); err != nil {
		return err
	}
	again, err := r.db.GC(bg, GCOptions{})
	if err == nil && (again.DeletedPages > 0 || again.FreedBytes > 0 && again.Removed == 0 || again.HeldBytes > again.LiveBytes/10+int64(1+len(r.db.packs.Infos()))*64<<10) {
		err = fmt.Errorf("a second collection finds something: %+v", again)
	}
	return errors.Join(err, untidy(r.db), r.other.Close())
}

// finish checks everything and closes.
func (r *versionsRun) finish() error {
	for i, id := range r.m.order {
		if err := r.checkCommit(id); err != nil {
			return fmt.Errorf("commit %d: %w", i, err)
		}
	}
	err := r.fsck(true)
	if err == nil {
		err = r.tidy()
	}
	return errors.Join(err, r.db.Close())
}

// runHistory runs a history and says at which step it went wrong.
func runHistory(options int, steps []step) (err error) {
	r, err := newVersionsRun(options, vfs.NewMem())
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.db.Close(), r.other.Close())
		}
	}()
	if err := r.steps(steps); err != nil {
		return err
	}
	return r.finish()
}

func (r *versionsRun) steps(steps []step) error {
	for i, s := range steps {
		k := slices.IndexFunc(versionOps, func(o op) bool { return o.name == s.op })
		if k < 0 {
			return fmt.Errorf("step %d: no operation %q", i, s.op)
		}
		if err := r.step(versionOps[k].run, s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i, s.op, err)
		}
	}
	return nil
}

// randomHistory makes a history of n steps.
func randomHistory(rng *rand.Rand, n int, plain, procs bool) (steps []step) {
	var names []string
	for _, o := range versionOps {
		if (plain && o.plain || !plain && o.array) && (procs || !o.procs) {
			names = append(names, slices.Repeat([]string{o.name}, o.often)...)
		}
	}
	for range n {
		steps = append(steps, step{names[rng.IntN(len(names))], rng.IntN(1000), rng.IntN(1000), rng.IntN(1000)})
	}
	return steps
}

// numbers are the parts of an error that differ from history to history.
var numbers = regexp.MustCompile(`[0-9a-f]{8,}|[0-9]+`)

// shrink leaves out steps as long as the history still goes wrong with such an error.
func shrink(options int, steps []step) []step {
	kind := func(steps []step) string {
		text := numbers.ReplaceAllString(fmt.Sprint(runHistory(options, steps)), "")
		return text[:min(len(text), 60)]
	}
	want := kind(steps)
	for size := len(steps) / 2; size > 0; {
		shorter := false
		for at := 0; at+size <= len(steps); {
			without := slices.Concat(steps[:at], steps[at+size:])
			if kind(without) == want {
				steps, shorter = without, true
			} else {
				at += size
			}
		}
		if size > 1 || !shorter {
			size /= 2
		}
	}
	return steps
}

const historyDir = "testdata/histories"

func historyText(options int, steps []step) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "options %d\n", options)
	for _, s := range steps {
		fmt.Fprintf(&b, "%s %d %d %d\n", s.op, s.a, s.b, s.c)
	}
	return b.Bytes()
}

func parseHistory(text []byte) (options int, steps []step, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var s step
		switch {
		case strings.HasPrefix(lines.Text(), "options "):
			_, err = fmt.Sscanf(lines.Text(), "options %d", &options)
		default:
			_, err = fmt.Sscanf(lines.Text(), "%s %d %d %d", &s.op, &s.a, &s.b, &s.c)
			steps = append(steps, s)
		}
		if err != nil {
			return 0, nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
	}
	return options, steps, lines.Err()
}

// tryHistory runs a random history. One that goes wrong is made short and kept
// as a file, which TestSavedHistories runs from then on.
func tryHistory(t *testing.T, seed uint64, n int, procs bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	options := rng.IntN(numOptions)
	if procs {
		options += numOptions
	}
	steps := randomHistory(rng, n, seed%2 == 0, procs)
	err := runHistory(options, steps)
	if err == nil {
		return
	}
	steps = shrink(options, steps)
	name := filepath.Join(historyDir, fmt.Sprintf("seed-%d.txt", seed))
	saved := errors.Join(os.MkdirAll(historyDir, 0o755), os.WriteFile(name, historyText(options, steps), 0o644))
	t.Fatalf("seed %d: %v\nshortened to %d steps in %s (%v):\n%s\n%v", seed, err, len(steps), name, saved, historyText(options, steps), runHistory(options, steps))
}

// TestVersionsModel runs random histories of sessions, branches, tags, merges, renames, reverts,
// picks, rebases, undone moves, open versions, expiry, collection, transfers, checks and
// reopening against plain maps, under random options. At the end only what is reachable is stored.
func TestVersionsModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	runs := 40
	if testing.Short() {
		runs = 10
	}
	for i := range uint64(runs) {
		tryHistory(t, seed+i, 150, false)
	}
	t.Logf("%d operations", 150*runs)
}

// TestProcesses is TestVersionsModel with peers that are killed or get no answer, holders that
// are killed, power cuts, versions that peers have open, and a second database.
func TestProcesses(t *testing.T) {
	n := 40
	if testing.Short() {
		n = 10
	}
	s := seeds(t)
	for range n {
		tryHistory(t, s.Uint64(), 250, true)
	}
	t.Logf("%d steps", n*250)
}

func TestSavedHistories(t *testing.T) {
	files, err := filepath.Glob(historyDir + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories: %v", err)
	}
	for _, name := range files {
		text := must.Get(os.ReadFile(name))(t)
		options, steps, err := parseHistory(text)
		if err == nil {
			err = runHistory(options, steps)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSoakVersions is TestVersionsModel with more histories.
func TestSoakVersions(t *testing.T) {
	soak(t, func(t *testing.T, seed uint64, _ func() bool) int {
		n := 50 << (seed % 4)
		tryHistory(t, seed, n, false)
		return n
	})
}

// TestSoakProcesses is TestProcesses with more histories.
func TestSoakProcesses(t *testing.T) {
	soak(t, func(t *testing.T, seed uint64, _ func() bool) int {
		n := 50 << (seed % 5)
		tryHistory(t, seed, n, true)
		return n
	})
}

// A history that goes wrong is made as short as it can be.
func TestShrink(t *testing.T) {
	steps := randomHistory(rand.New(rand.NewPCG(1, 1)), 40, true, false)
	steps = slices.Insert(steps, 20, step{op: "nonsense"})
	if short := shrink(0, steps); len(short) != 1 || short[0].op != "nonsense" {
		t.Errorf("shortened to %v", short)
	}
	options, again, err := parseHistory(historyText(5, steps))
	if err != nil || options != 5 || !slices.Equal(again, steps) {
		t.Errorf("read back: %d %v, %v", options, again, err)
	}
}
