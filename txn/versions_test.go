package txn

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
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
	has := r.m.ancestors(upstream)
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
	return r.whenAllAreHere(func() error {
		_, err := r.writer(s).GC(bg, o)
		return err
	})
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
	got := map[string]string{}
	for one, err := range s.Values(bg, "") {
		if err != nil {
			return nil, err
		}
		if alone, err := s.Value(bg, one.Key); err != nil || alone != one {
			return nil, fmt.Errorf("%q is %+v on its own, %+v among all, %v", one.Key, alone, one, err)
		}
		v, err := s.lookup(bg, one.Key)
		if err != nil {
			return nil, err
		}
		b, err := r.db.load(bg, v)
		if err != nil {
			return nil, err
		}
		got[one.Key] = string(b)
	}
	return got, r.peerReads(id, got)
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
	got := map[string]string{}
	for key, err := range s.List(bg, kv.ListOptions{}) {
		var b []byte
		if err == nil {
			b, err = s.Get(bg, key, kv.All())
		}
		if err != nil {
			return fmt.Errorf("a peer: %w", err)
		}
		got[key] = string(b)
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("a peer reads %v of %v, where %v is", got, id, want)
	}
	return nil
}

// refs returns the branches and tags.
func (r *versionsRun) refs() map[string]CommitID {
	refs := map[string]CommitID{}
	for _, b := range branchesOf(r.db) {
		refs[catalog.HeadRef(b.Name)] = b.Commit
	}
	for _, t := range tagsOf(r.db) {
		refs[catalog.TagRef(t.Name)] = t.Commit
	}
	return refs
}

// check compares refs, a version and a session with the model.
func (r *versionsRun) check(s step) error {
	if refs := r.refs(); !maps.Equal(refs, r.m.refs) {
		return fmt.Errorf("branches %v, want %v", refs, r.m.refs)
	}
	if m := r.session(s); m != nil {
		got := map[string]string{}
		for one, err := range m.s.Values(bg, "") {
			if err != nil {
				return err
			}
			if alone, err := m.s.Value(bg, one.Key); err != nil || alone != one {
				return fmt.Errorf("%q is %+v on its own, %+v among all, %v", one.Key, alone, one, err)
			}
			v, err := m.s.lookup(bg, one.Key)
			if err != nil {
				return err
			}
			b, err := r.db.load(bg, v)
			if err != nil {
				return err
			}
			got[one.Key] = string(b)
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

// finish checks everything and closes.
func (r *versionsRun) finish() error {
	for i, id := range r.m.order {
		if err := r.checkCommit(id); err != nil {
			return fmt.Errorf("commit %d: %w", i, err)
		}
	}
	err := r.fsck(true)
	if r.p != nil && err == nil {
		err = r.tidy()
	}
	return errors.Join(err, r.db.Close())
}

// runHistory runs a history and says at which step it went wrong.
func runHistory(options int, steps []step) (err error) {
	r, err := newVersionsRun(options)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.db.Close())
			if r.p != nil {
				err = errors.Join(err, r.p.other.Close())
			}
		}
	}()
	for i, s := range steps {
		k := slices.IndexFunc(versionOps, func(o op) bool { return o.name == s.op })
		if k < 0 {
			return fmt.Errorf("step %d: no operation %q", i, s.op)
		}
		if err := r.step(versionOps[k].run, s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i, s.op, err)
		}
	}
	return r.finish()
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

// TestVersionsModel runs random histories of sessions, branches, merges,
// renames, reverts, picks, rebases, undone moves, expiry, collection, checks and
// reopening against plain maps, under random options.
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
