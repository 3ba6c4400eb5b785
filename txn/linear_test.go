package txn

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/zarrdb/zarrdb/internal/must"
)

// refOp is an operation on a branch as its caller saw it.
type refOp struct {
	kind   string // "head", "read", "commit" or "reset"
	branch string
	base   CommitID // of a session
	to     CommitID // of a reset
}

// refResult is what it returned.
type refResult struct {
	id       CommitID // that it left or found the branch at
	old      CommitID // where the branch was
	conflict bool
}

// refModel is a branch that every operation sees or moves at one moment between
// its call and its return: a session commits onto what is the head then, and
// has a conflict only if that is not its base.
var refModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byBranch := map[string]int{}
		for _, o := range history {
			branch := o.Input.(refOp).branch
			i, ok := byBranch[branch]
			if !ok {
				i = len(parts)
				byBranch[branch], parts = i, append(parts, nil)
			}
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() any { return CommitID{} }, // not known yet
	Step: func(state, input, output any) (bool, any) {
		head, in, out := state.(CommitID), input.(refOp), output.(refResult)
		if head.IsZero() {
			head = out.old
		}
		switch {
		case out.old != head:
			return false, state
		case out.conflict:
			return head != in.base, head
		case in.kind == "reset":
			return out.id == in.to, out.id
		}
		return true, out.id
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(refOp), output.(refResult)
		return fmt.Sprintf("%s(%s) %s -> %s conflict %v", in.kind, in.branch, out.old.Short(), out.id.Short(), out.conflict)
	},
}

// TestLinearizable runs readers, committers and movers of two branches at once
// and checks that what each saw fits one order of events.
func TestLinearizable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		history := concurrentHistory(t, seed+uint64(round))
		// Time enough on any machine: it takes some milliseconds.
		switch porcupine.CheckOperationsTimeout(refModel, history, 5*time.Minute) {
		case porcupine.Illegal:
			for _, o := range history {
				t.Logf("%d %d-%d %s", o.ClientId, o.Call, o.Return, refModel.DescribeOperation(o.Input, o.Output))
			}
			t.Fatal("no order of events explains this history")
		case porcupine.Unknown:
			t.Fatal("the check did not end")
		}
	}
}

// A history that no order explains is found out.
func TestLinearizableModel(t *testing.T) {
	a, b := CommitID{1}, CommitID{2}
	head := func(client int, id CommitID, call, back int64) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: refOp{kind: "head"}, Output: refResult{id: id, old: id}, Call: call, Return: back}
	}
	commit := porcupine.Operation{Input: refOp{kind: "commit", base: a}, Output: refResult{id: b, old: a}, Call: 1, Return: 4}
	if !porcupine.CheckOperations(refModel, []porcupine.Operation{head(1, a, 0, 0), commit, head(1, a, 2, 2), head(1, b, 3, 3)}) {
		t.Error("a read before and one after a commit")
	}
	if porcupine.CheckOperations(refModel, []porcupine.Operation{head(1, a, 0, 0), commit, head(1, b, 2, 2), head(1, a, 3, 3)}) {
		t.Error("a read that goes back")
	}
	lost := porcupine.Operation{ClientId: 2, Input: refOp{kind: "commit", base: a}, Output: refResult{id: CommitID{3}, old: a}, Call: 5, Return: 6}
	if porcupine.CheckOperations(refModel, []porcupine.Operation{commit, lost}) {
		t.Error("a commit that is lost")
	}
}

func concurrentHistory(t *testing.T, seed uint64) []porcupine.Operation {
	db := openTest(t, nil)
	first, _ := db.Head(bg, "")
	must.Do(t, db.CreateBranch(bg, "side", first))
	var clock atomic.Int64
	var mu sync.Mutex
	known := []CommitID{first}
	const clients, each = 6, 30
	histories := make([][]porcupine.Operation, clients)
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for c := range clients {
		rng := rand.New(rand.NewPCG(seed, uint64(c)))
		wg.Go(func() {
			for i := range each {
				mu.Lock()
				to := known[rng.IntN(len(known))]
				mu.Unlock()
				o, err := oneOp(db, rng, &clock, to, fmt.Sprint(c, i))
				if err != nil {
					errs[c] = err
					return
				}
				o.ClientId = c
				histories[c] = append(histories[c], o)
				if out := o.Output.(refResult); !out.conflict {
					mu.Lock()
					known = append(known, out.id)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	must.Do(t, errors.Join(errs...))
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h...)
	}
	return all
}

// oneOp does something random. Sessions write a key that all write and one of
// their own, so that some conflict and some merge.
func oneOp(db *DB, rng *rand.Rand, clock *atomic.Int64, to CommitID, name string) (porcupine.Operation, error) {
	in := refOp{branch: []string{MainBranch, "side"}[rng.IntN(2)]}
	var out refResult
	var s *Session
	pick := rng.IntN(10)
	if pick < 6 {
		var err error
		if s, err = db.Begin(bg, in.branch); err != nil {
			return porcupine.Operation{}, err
		}
		defer s.Abort()
		in.kind, in.base = "commit", s.Base()
		key := "own/" + name
		if rng.IntN(2) == 0 {
			key = "shared"
		}
		if err := s.Set(bg, key, []byte(name)); err != nil {
			return porcupine.Operation{}, err
		}
	}
	var err error
	call := clock.Add(1)
	switch {
	case s != nil:
		var c *Commit
		var conflict *ConflictError
		if c, err = s.Commit(bg, CommitOptions{AllowEmpty: true}); errors.As(err, &conflict) {
			out, err = refResult{conflict.Head, conflict.Head, true}, nil
		} else if err == nil {
			out = refResult{c.ID, c.Parents[0], false}
		}
	case pick == 6:
		in.kind, in.to = "reset", to
		var m RefMove
		m, err = db.Reset(bg, in.branch, to)
		out = refResult{id: m.New, old: m.Old}
	case pick == 7:
		in.kind = "read"
		var v *Snapshot
		if v, err = db.At(bg, in.branch); err == nil {
			out = refResult{id: v.Commit().ID, old: v.Commit().ID}
			err = v.Close()
		}
	default:
		in.kind = "head"
		out.id, err = db.Head(bg, in.branch)
		out.old = out.id
	}
	return porcupine.Operation{Input: in, Output: out, Call: call, Return: clock.Add(1)}, err
}
