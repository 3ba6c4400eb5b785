package txn

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// step is one operation of a history. Its numbers are taken modulo what there
// is at the time, so that a history stays one when steps are left out.
type step struct {
	op      string
	a, b, c int
}

// versionsRun runs a history on a database and on the plain model.
type versionsRun struct {
	o        *Options
	db       *DB
	peers    [3]*link
	p        *processes // nil if there is one holder, which is never killed
	m        model
	sessions []*modelSession
	views    []*heldView
	other    *DB // another database, for transfers
	fresh    int
}

// heldView is a version that the holder or a peer has open.
type heldView struct {
	l    *link // nil for the holder
	v    *Snapshot
	want map[string]string
}

type modelSession struct {
	s           *Session
	branch      string
	base        CommitID
	start, work content
	saved       *content
	unread      bool // values may have changed since a peer has read them

	// Of a history with processes: the states since the last savepoint, whether that is
	// this step's, and whether the session was ended in the step before the power failed.
	states  []pastState
	settled bool
	left    bool
}

// numOptions is how many options newVersionsRun knows. So many more are those of histories
// with processes.
const numOptions = 3 * 2 * 2 * 3 * 2

// newVersionsRun opens an empty database with the options of that number. Histories with
// processes have a file system of their own.
func newVersionsRun(options int, fs vfs.FS) (*versionsRun, error) {
	o := testOptions(fs)
	o.Now, o.aheadPages = newClock().now, someAhead(uint64(options/5))
	choose := func(n int) int {
		i := options % n
		options /= n
		return i
	}
	o.SessionBytes = []int64{0, 4 << 10, 64 << 10}[choose(3)]
	o.PageCacheBytes = []int64{4 << 20, -1}[choose(2)] // without a cache, a deleted page is missed at once
	o.PackBytes = []uint64{0, 16 << 10}[choose(2)]
	o.Durability = []Durability{DurabilitySync, DurabilityAsync, DurabilityNone}[choose(3)]
	o.CheckpointCommits = []int{-1, 3}[choose(2)]
	var p *processes
	if options > 0 {
		p = newProcesses(o)
	}
	db, err := Create("db", o)
	if err != nil {
		return nil, err
	}
	first, err := db.Head(bg, "")
	if err != nil {
		return nil, err
	}
	r := &versionsRun{o: o, db: db, p: p, m: model{
		commits: map[CommitID]modelCommit{}, refs: map[string]CommitID{}, moves: map[string][][2]CommitID{}, moved: map[string]int{},
		expired: map[CommitID]bool{},
	}}
	r.m.commits[first] = modelCommit{nil, content{map[string]string{}, map[string]int{}}}
	r.m.order = []CommitID{first}
	r.m.move(catalog.HeadRef(MainBranch), first)
	r.other, err = Create("other", o)
	return r, err
}

var branchNames = []string{"main", "b1", "b2", "b3"}

// op is an operation of a history. Those of plain histories know keys only, so
// that merges are those of plain maps and may be decided; those of the others
// know arrays.
type op struct {
	name  string
	often int
	plain bool
	array bool
	procs bool // for histories with processes only
	run   func(r *versionsRun, s step) error
}

var versionOps = []op{
	{"begin", 4, true, true, false, (*versionsRun).begin},
	{"commit", 6, true, true, false, (*versionsRun).commit},
	{"abort", 1, true, true, false, (*versionsRun).abort},
	{"detach", 1, true, true, false, (*versionsRun).detach},
	{"refresh", 1, true, true, false, (*versionsRun).refresh},
	{"put", 12, true, true, false, func(r *versionsRun, s step) error { return r.put(s, fmt.Sprintf("d%d/k%d", s.a%3, s.b%6)) }},
	{"both", 4, true, true, false, (*versionsRun).both},
	{"drop", 3, true, true, false, func(r *versionsRun, s step) error { return r.drop(s, fmt.Sprintf("d%d/k%d", s.a%3, s.b%6)) }},
	{"move", 2, true, false, false, (*versionsRun).move},
	{"remove", 1, true, false, false, (*versionsRun).remove},
	{"copy", 2, true, false, false, (*versionsRun).copy},
	{"create", 4, false, true, false, (*versionsRun).create},
	{"rename", 3, false, true, false, (*versionsRun).rename},
	{"erase", 1, false, true, false, (*versionsRun).erase},
	{"chunk", 12, false, true, false, func(r *versionsRun, s step) error { return r.chunk(s, r.put) }},
	{"unchunk", 3, false, true, false, func(r *versionsRun, s step) error { return r.chunk(s, r.drop) }},
	{"branch", 2, true, true, false, (*versionsRun).branch},
	{"delete", 1, true, true, false, (*versionsRun).deleteBranch},
	{"reset", 1, true, true, false, (*versionsRun).reset},
	{"undo", 1, true, true, false, (*versionsRun).undo},
	{"merge", 3, true, true, false, (*versionsRun).merge},
	{"revert", 2, true, true, false, func(r *versionsRun, s step) error { return r.pick(s, true) }},
	{"pick", 2, true, true, false, func(r *versionsRun, s step) error { return r.pick(s, false) }},
	{"rebase", 2, true, true, false, (*versionsRun).rebase},
	{"reopen", 1, true, true, false, (*versionsRun).reopen},
	{"expire", 1, true, true, false, (*versionsRun).expire},
	{"gc", 3, true, true, false, (*versionsRun).gc},
	{"fsck", 1, true, true, false, func(r *versionsRun, s step) error { return r.fsck(s.a%2 == 0) }},
	{"check", 2, true, true, false, (*versionsRun).check},
	{"lease", 4, true, true, false, (*versionsRun).lease},
	{"look", 4, true, true, false, (*versionsRun).look},
	{"close", 1, true, true, false, (*versionsRun).letGo},
	{"tag", 1, true, true, false, (*versionsRun).tag},
	{"exchange", 1, true, true, false, (*versionsRun).exchange},
	{"duplicate", 1, true, true, false, (*versionsRun).duplicate},
	{"kill", 2, true, true, true, (*versionsRun).kill},
	{"power", 2, true, true, true, (*versionsRun).powerCut},
	{"peer", 1, true, true, true, (*versionsRun).killPeer},
	{"lose", 2, true, true, true, (*versionsRun).lose},
	{"cut", 6, true, true, true, (*versionsRun).cut},
	{"bulk", 3, true, false, true, (*versionsRun).bulk},
	{"carry", 2, true, true, true, (*versionsRun).carry},
}

func (r *versionsRun) branchOf(n int) string   { return branchNames[n%len(branchNames)] }
func (r *versionsRun) commitOf(n int) CommitID { return r.m.order[n%len(r.m.order)] }

// session picks an open session, nil if there is none.
func (r *versionsRun) session(s step) *modelSession {
	if len(r.sessions) == 0 {
		return nil
	}
	return r.sessions[s.c%len(r.sessions)]
}

// expect compares an error with the one that is due, nil for none.
func expect(err, want error) error {
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		return fmt.Errorf("error %w, want %v", err, want)
	}
	return nil
}

func (r *versionsRun) begin(s step) error {
	if len(r.sessions) > 5 {
		return nil
	}
	branch := r.branchOf(s.a)
	head, ok := r.m.refs[catalog.HeadRef(branch)]
	sess, err := r.writer(s).Begin(bg, branch)
	if !ok {
		return expect(err, ErrNoRef)
	}
	if err != nil {
		return err
	}
	c := r.m.commits[head].content
	r.sessions = append(r.sessions, &modelSession{s: sess, branch: branch, base: head, start: c, work: c.clone()})
	return nil
}

func (r *versionsRun) end(m *modelSession) {
	r.sessions = slices.DeleteFunc(r.sessions, func(x *modelSession) bool { return x == m })
}

func (r *versionsRun) commit(s step) error {
	m := r.session(s)
	if m == nil {
		return nil
	}
	ref := catalog.HeadRef(m.branch)
	head, ok := r.m.refs[ref]
	merged, want := m.work, error(nil)
	switch {
	case !ok:
		want = ErrNoRef
	case head == m.base:
	case !r.m.ancestors(head, 0)[m.base]:
		want = ErrConflict
	default:
		if merged, ok = mergeContents(m.start, r.m.commits[head].content, m.work, mergeRule{session: true}); !ok {
			want = ErrConflict
		}
	}
	c, err := m.s.Commit(bg, CommitOptions{Message: "commit", DryRun: s.b%9 == 0})
	if err := expect(err, want); err != nil || want != nil || s.b%9 == 0 {
		return err
	}
	r.end(m)
	return r.committed(ref, c, []CommitID{head}, merged)
}

// committed takes a commit into the model. One that changed nothing is the head.
func (r *versionsRun) committed(ref string, c *Commit, parents []CommitID, merged content) error {
	head := parents[0]
	if c.ID == head {
		if !merged.equal(r.m.commits[head].content) {
			return errors.New("no commit was made of changes")
		}
		return nil
	}
	r.m.move(ref, c.ID)
	return r.m.add(c, parents, merged.clone())
}

func (r *versionsRun) abort(s step) error {
	m := r.session(s)
	if m == nil {
		return nil
	}
	r.end(m)
	return m.s.Abort()
}

func (r *versionsRun) detach(s step) error {
	m := r.session(s)
	if m == nil {
		return nil
	}
	if err := m.s.Detach(bg); err != nil {
		return err
	}
	saved := m.work.clone()
	m.saved, m.settled = &saved, true
	if s.b%3 == 0 { // while it is stored alone
		if err := r.whenAllAreHere(func() error { return second(r.db.GC(bg, GCOptions{})) }); err != nil {
			return err
		}
	}
	return r.resume(m)
}

// isAway reports whether the changes of a session are in another process.
func isAway(s *Session) bool {
	_, ok := s.home.(*away)
	return ok
}

func (r *versionsRun) resume(m *modelSession) (err error) {
	m.work = m.saved.clone()
	if isAway(m.s) {
		m.s, err = r.beside().Resume(bg, m.s.ID())
	} else {
		m.s, err = r.db.Resume(bg, m.s.ID())
	}
	return err
}

func (r *versionsRun) refresh(s step) error {
	m := r.session(s)
	if m == nil {
		return nil
	}
	head, ok := r.m.refs[catalog.HeadRef(m.branch)]
	merged, want := m.work, error(nil)
	switch {
	case !ok:
		want = ErrNoRef
	case head != m.base:
		if merged, ok = mergeContents(m.start, r.m.commits[head].content, m.work, mergeRule{session: true}); !ok {
			want = ErrConflict
		}
	}
	if err := expect(m.s.Refresh(bg, nil), want); err != nil || want != nil {
		return err
	}
	m.base, m.start, m.work, m.unread = head, r.m.commits[head].content, merged.clone(), true
	// What is stored has the old base until the next savepoint.
	if m.saved != nil {
		saved := m.work.clone()
		m.saved, m.settled = &saved, true
		return m.s.Savepoint(bg)
	}
	return nil
}

func (r *versionsRun) put(s step, key string) error {
	m := r.session(s)
	if m == nil {
		return nil
	}
	value := fmt.Sprint(s.a % 5)
	if s.b%4 == 0 {
		value = strings.Repeat(value, []int{600, 5000, 30_000, 70_000}[s.b/4%4]) // in a pack
	}
	m.work.keys[key] = value
	return m.write(key, func() error { return m.s.Set(bg, key, []byte(value)) })
}

// write writes a key. A refresh, or a request that was not answered, may have changed a value
// that a peer has read: then the peer reads the value again.
func (m *modelSession) write(key string, do func() error) error {
	err := do()
	if changed := (*ChangedError)(nil); m.unread && errors.As(err, &changed) {
		_, _ = m.s.Get(bg, key, kv.All())
		err = do()
	}
	return err
}

// both writes the same bytes to one key in all sessions of a branch. A chunk is
// written where its array is: elsewhere its key would be one beside arrays.
func (r *versionsRun) both(s step) error {
	m := r.session(s)
	if m == nil {
		return nil
	}
	key := fmt.Sprintf("d%d/k%d", s.a%3, s.b%6)
	path := m.array(s.a)
	if path != "" {
		key = fmt.Sprintf("%s/c/%d", path, s.b%8)
	}
	for i, other := range r.sessions {
		_, has := other.work.arrays[path]
		if other.branch == m.branch && (path == "" || has) {
			if err := r.put(step{"put", s.a, s.b, i}, key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *versionsRun) drop(s step, key string) error {
	m := r.session(s)
	if m == nil {
		return nil
	}
	delete(m.work.keys, key)
	return m.write(key, func() error { return m.s.Delete(bg, key) })
}

func (r *versionsRun) move(s step) error {
	m := r.session(s)
	if m == nil {
		return nil
	}
	from, to := fmt.Sprint("d", s.a%3), fmt.Sprint("d", s.b%3)
	var want error
	switch {
	case from == to:
		return nil
	case len(m.work.below(from)) == 0:
		want = errAny
	case len(m.work.below(to)) > 0:
		want = ErrExists
	}
	err := m.s.Move(bg, from, to)
	if want == errAny && err != nil && !errors.Is(err, errCut) {
		return nil
	}
	if err := expect(err, want); err != nil || want != nil {
		return err
	}
	m.work.move(from, to)
	return nil
}

// errAny stands for some error.
var errAny = errors.New("some error")

func (r *versionsRun) remove(s step) error {
	m := r.session(s)
	if m == nil {
		return nil
	}
	prefix := []string{"d0/", "d1/", "d2/k", "d"}[s.a%4]
	m.work.remove(prefix)
	return m.s.DeletePrefix(bg, prefix)
}

// copy takes a directory of an open version, which may have expired, into a session.
func (r *versionsRun) copy(s step) error {
	m := r.session(s)
	if m == nil || len(r.views) == 0 {
		return nil
	}
	h := r.views[s.a%len(r.views)]
	if h.v.db != m.s.db {
		return nil
	}
	from, to := fmt.Sprint("d", s.b%3), fmt.Sprint("o", s.b%4)
	was := content{keys: h.want}.below(from)
	var want error
	switch {
	case len(was) == 0:
		want = kv.ErrNotFound
	case len(m.work.below(to)) > 0:
		want = ErrExists
	}
	if err := expect(m.s.Copy(bg, h.v, from, to), want); err != nil || want != nil {
		return err
	}
	for k, v := range was {
		m.work.keys[to+"/"+k] = v
	}
	return nil
}

// array picks an array of a session, "" if there is none.
func (m *modelSession) array(n int) string {
	if m == nil || len(m.work.arrays) == 0 {
		return ""
	}
	return slices.Sorted(maps.Keys(m.work.arrays))[n%len(m.work.arrays)]
}

// path is one that was never used.
func (r *versionsRun) path() string {
	r.fresh++
	return fmt.Sprintf("g%d/a%d", r.fresh%3, r.fresh)
}

func (r *versionsRun) create(s step) error {
	m := r.session(s)
	if m == nil {
		return nil
	}
	path := r.path()
	m.work.arrays[path] = r.fresh
	m.work.keys[path+"/zarr.json"] = toyArray
	return m.s.Set(bg, path+"/zarr.json", []byte(toyArray))
}

func (r *versionsRun) rename(s step) error {
	m := r.session(s)
	from := m.array(s.a)
	if from == "" {
		return nil
	}
	to := r.path()
	m.work.move(from, to)
	return m.s.Move(bg, from, to)
}

func (r *versionsRun) erase(s step) error {
	m := r.session(s)
	path := m.array(s.a)
	if path == "" {
		return nil
	}
	m.work.remove(path + "/")
	return m.s.DeletePrefix(bg, path+"/")
}

func (r *versionsRun) chunk(s step, do func(step, string) error) error {
	path := r.session(s).array(s.a)
	if path == "" {
		return nil
	}
	return do(s, fmt.Sprintf("%s/c/%d", path, s.b%8))
}

func (r *versionsRun) branch(s step) error {
	name, at := r.branchOf(s.a), r.commitOf(s.b)
	var want error
	if _, ok := r.m.refs[catalog.HeadRef(name)]; ok {
		want = ErrRefExists
	}
	if err := expect(r.writer(s).CreateBranch(bg, name, at), want); err != nil || want != nil {
		return err
	}
	r.m.move(catalog.HeadRef(name), at)
	return nil
}

func (r *versionsRun) deleteBranch(s step) error {
	name := r.branchOf(s.a)
	var want error
	if _, ok := r.m.refs[catalog.HeadRef(name)]; !ok {
		want = ErrNoRef
	}
	if err := expect(r.db.DeleteBranch(bg, name), want); err != nil || want != nil {
		return err
	}
	r.m.move(catalog.HeadRef(name), CommitID{})
	return nil
}

func (r *versionsRun) reset(s step) error {
	name, at := r.branchOf(s.a), r.commitOf(s.b)
	var want error
	if _, ok := r.m.refs[catalog.HeadRef(name)]; !ok {
		want = ErrNoRef
	}
	if _, err := r.writer(s).Reset(bg, name, at); expect(err, want) != nil || want != nil {
		return expect(err, want)
	}
	r.m.move(catalog.HeadRef(name), at)
	return nil
}

func (r *versionsRun) undo(s step) error {
	name := r.branchOf(s.a)
	moves := r.m.moves[catalog.HeadRef(name)]
	var want error
	switch {
	case len(moves) == 0, name == MainBranch && r.m.moved[catalog.HeadRef(name)] == 1: // it came with the database
		want = ErrNoRef
	case r.m.expired[moves[len(moves)-1][0]]:
		want = ErrExpired
	}
	if _, err := r.db.UndoBranch(bg, name); expect(err, want) != nil || want != nil {
		return expect(err, want)
	}
	r.m.move(catalog.HeadRef(name), moves[len(moves)-1][0])
	return nil
}
