package txn

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/history"
)

// exchangeModel is a few databases that carry versions to each other, and what each
// version holds.
type exchangeModel struct {
	t      *testing.T
	rng    *rand.Rand
	fs     vfs.FS
	dbs    []*DB
	states map[CommitID]map[string]string
	copies int
}

// TestTransferModel commits, pushes, clones, backs up, expires, collects and
// reopens at random; every version reads the same wherever it is.
func TestTransferModel(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := &exchangeModel{t: t, rng: rand.New(rand.NewPCG(seed, 0)), fs: vfs.NewMem(), states: map[CommitID]map[string]string{}}
			x.dbs = append(x.dbs, openTest(t, testOptions(x.fs)))
			x.states[mustHead(t, x.dbs[0])] = map[string]string{}
			defer func() {
				for _, db := range x.dbs {
					closeChecked(t, db)
				}
			}()
			for range 60 {
				x.step()
			}
			for _, db := range x.dbs {
				x.check(db)
			}
		})
	}
}

func (x *exchangeModel) any() *DB { return x.dbs[x.rng.IntN(len(x.dbs))] }

func (x *exchangeModel) step() {
	t, db := x.t, x.any()
	switch n := x.rng.IntN(20); {
	case n < 9:
		x.commit(db)
	case n < 12:
		if to := x.any(); to != db {
			x.exchange(db, to)
		}
	case n < 14 && len(x.dbs) < 4:
		x.copies++
		dir := fmt.Sprint("clone", x.copies)
		must.Get(db.Clone(bg, dir, TransferOptions{Depth: x.rng.IntN(4)}))(t)
		x.dbs = append(x.dbs, openPlain(t, x.fs, dir))
	case n < 16:
		dir := "backup of " + db.Dir()
		must.Get(db.Backup(bg, dir, TransferOptions{}))(t)
		b := openPlain(t, x.fs, dir)
		sameVersions(t, db, b)
		x.check(b)
		closeChecked(t, b)
	case n < 18:
		mustExpire(t, db, ExpireOptions{Keep: 1 + x.rng.IntN(3)})
		if x.rng.IntN(2) == 0 {
			mustGC(t, db)
		}
	case n < 19:
		head := mustHead(t, db)
		c := must.Get(db.Lookup(bg, head))(t)
		if len(c.Parents) > 0 {
			if _, err := db.Reset(bg, "main", c.Parents[0]); err != nil && !errors.Is(err, ErrExpired) {
				t.Fatal(err)
			}
		}
	default:
		must.Do(t, db.Close())
		for i := range x.dbs {
			if x.dbs[i] == db {
				x.dbs[i] = openPlain(t, x.fs, db.Dir())
			}
		}
	}
}

// exchange carries some refs. Without force no version is dropped.
func (x *exchangeModel) exchange(db, to *DB) {
	t := x.t
	o := TransferOptions{
		Force: x.rng.IntN(2) == 0, Depth: x.rng.IntN(3),
		AllBranches: x.rng.IntN(3) == 0, AllTags: x.rng.IntN(3) == 0,
	}
	refs := slices.Concat(branchesOf(db), tagsOf(db))
	for range x.rng.IntN(3) {
		o.Refs = append(o.Refs, RefSpec{From: refs[x.rng.IntN(len(refs))].Name, Force: x.rng.IntN(5) == 0})
	}
	before := refsOf(to)
	forced := func(name string) bool {
		_, short, _ := strings.Cut(name, "/")
		return o.Force || slices.ContainsFunc(o.Refs, func(s RefSpec) bool { return s.Force && s.From == short })
	}
	var r *TransferReport
	var err error
	switch x.rng.IntN(3) {
	case 0:
		r, err = to.Pull(bg, db, o)
	case 1:
		r, err = to.Fetch(bg, db, o)
	default:
		r, err = db.Push(bg, to, o)
	}
	if err != nil && !errors.Is(err, ErrDiverged) {
		t.Fatal(err)
	}
	after := refsOf(to)
	moved := maps.Clone(before)
	for _, m := range r.Moves {
		moved[m.Ref] = m.New
	}
	if !maps.Equal(after, moved) || err != nil && !maps.Equal(after, before) {
		t.Fatalf("refs were %v, are %v after %v, %v", before, after, r.Moves, err)
	}
	for name, old := range before {
		ok, err := history.IsAncestor(bg, to.Lookup, old, after[name])
		if err != nil || !ok && !forced(name) {
			t.Fatalf("%s went from %v to %v, %v", name, old, after[name], err)
		}
	}
	x.check(to)
}

func (x *exchangeModel) commit(db *DB) {
	branches := branchesOf(db)
	branch := branches[x.rng.IntN(len(branches))]
	if n := x.rng.IntN(10); n < 2 {
		create := db.CreateBranch
		if n == 0 {
			create = db.CreateTag
		}
		if err := create(bg, fmt.Sprint("r", x.rng.IntN(4)), branch.Commit); err != nil && !errors.Is(err, ErrRefExists) {
			x.t.Fatal(err)
		}
	}
	s, err := db.Begin(bg, branch.Name)
	if err != nil {
		x.t.Fatal(err)
	}
	state := maps.Clone(x.states[branch.Commit])
	change := map[string]string{}
	for range 1 + x.rng.IntN(6) {
		key := fmt.Sprintf("d%d/k%d", x.rng.IntN(3), x.rng.IntN(12))
		change[key] = big(fmt.Sprint(x.rng.Uint64()), []int{5, 3000, 9000, 80_000}[x.rng.IntN(4)])
		if x.rng.IntN(6) == 0 {
			change[key] = ""
		}
	}
	set(x.t, s, change)
	for k, v := range change {
		if state[k] = v; v == "" {
			delete(state, k)
		}
	}
	c, err := s.Commit(bg, CommitOptions{Message: fmt.Sprint(x.rng.Uint64()), AllowEmpty: true})
	if err != nil {
		x.t.Fatal(err)
	}
	x.states[c.ID] = state
}

// check compares all versions that have not expired.
func (x *exchangeModel) check(db *DB) {
	x.t.Helper()
	for rec, err := range db.idx.Scan(index.SpaceCommit, nil, nil, false) {
		if err != nil {
			x.t.Fatal(err)
		}
		id := CommitID(rec.Key)
		if gone, err := db.Expired(bg, id); err != nil || gone {
			continue
		}
		s, err := db.Snapshot(bg, id)
		if err != nil {
			x.t.Fatal(err)
		}
		if got := contents(x.t, s); !maps.Equal(got, x.states[id]) {
			x.t.Fatalf("%s: commit %v has %d keys, not the %d that it had", db.Dir(), id, len(got), len(x.states[id]))
		}
		_ = s.Close()
	}
}
