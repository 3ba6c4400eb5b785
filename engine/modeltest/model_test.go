package modeltest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/leaktest"
	"github.com/zarrdb/zarrdb/internal/soaktest"
	"github.com/zarrdb/zarrdb/txn"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// memories counts memory: stores, which all runs of a process share.
var memories atomic.Int64

// steps are all that may happen, with weights.
var steps = []step{
	{"edit", 10, stepEdit},
	{"update", 12, stepUpdate},
	{"commit", 12, stepCommit},
	{"group", 5, stepGroup},
	{"race", 5, stepRace},
	{"axes", 5, stepAxes},
	{"guard", 2, stepGuard},
	{"refresh", 4, stepRefresh},
	{"save", 4, stepSave},
	{"bulk", 3, stepBulk},
	{"consolidate", 2, stepConsolidate},
	{"localize", 2, stepLocalize},
	{"read", 10, stepRead},
	{"read session", 3, stepReadSession},
	{"release", 3, stepRelease},
	{"compare", 2, stepCompare},
	{"find", 2, stepFind},
	{"log", 1, stepLog},
	{"diff", 3, stepDiff},
	{"blame", 3, stepBlame},
	{"branch", 3, stepBranch},
	{"delete branch", 1, stepDeleteBranch},
	{"tag", 2, stepTag},
	{"reset", 2, stepReset},
	{"undo", 2, stepUndo},
	{"merge", 5, stepMerge},
	{"pick", 3, stepPick},
	{"rebase", 3, stepRebase},
	{"clone", 2, stepClone},
	{"backup", 3, stepBackup},
	{"push", 4, stepPush},
	{"drop", 1, stepDrop},
	{"export", 3, stepExport},
	{"import", 4, stepImport},
	{"append", 4, stepAppend},
	{"expire", 2, stepExpire},
	{"gc", 4, stepGC},
	{"checkpoint", 1, stepCheckpoint},
	{"check", 1, stepCheck},
	{"reopen", 4, stepReopen},
	{"kill", 4, stepKill},
}

// begin makes the first database.
func (r *run) begin() {
	dir := r.file("origin.zdb")
	db, err := engine.Create(bg, dir, r.options())
	r.must(err, "create")
	id, err := db.Head(bg, txn.MainBranch)
	r.must(err, "head")
	first, err := db.Versions().Lookup(bg, id)
	r.must(err, "commit")
	r.must(db.Close(), "close")
	v := &version{id: first.ID, name: "v0", tree: tree{}}
	r.versions[v.id], r.order = v, []*version{v}
	d := r.adopt(dir, map[string]txn.CommitID{txn.MainBranch: id}, map[string]txn.CommitID{})
	s := r.startSession(d, txn.MainBranch)
	r.create(s, kinds[r.rng.IntN(5)], "a0")
	r.create(s, kinds[5], "g0/a1")
	r.commit(d, s, false)
}

// finish compares everything.
func (r *run) finish() {
	for _, d := range r.dbs {
		r.compareAll(d)
	}
	for _, s := range r.stores {
		r.compareStore(s)
	}
	for len(r.dbs) > 0 {
		r.tidy(r.dbs[0])
		r.drop(r.dbs[0])
	}
}

// TestModel runs a few histories that are always the same.
func TestModel(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}
	if testing.Short() {
		seeds = seeds[:2]
	}
	for _, seed := range seeds {
		history(t, seed, 50)
	}
}

// TestSoakModel runs histories for as long as ZARRDB_SOAK says. ZARRDB_SEED is the
// seed of the first of them.
func TestSoakModel(t *testing.T) {
	d, seed := soaktest.Time(t), soaktest.Seed(t)
	n, done := 0, 0
	for end := time.Now().Add(d); time.Now().Before(end); seed++ {
		t.Logf("seed %d", seed)
		length := 50 << (seed % 4)
		history(t, seed, length)
		n, done = n+1, done+length
	}
	t.Logf("%d steps in %d histories", done, n)
}
