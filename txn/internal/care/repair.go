package care

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// RepairBranches is the prefix of branches that [Parts.Repair] makes for branches
// that cannot be opened.
const RepairBranches = "repair/"

// RepairReport lists the damage that a repair found, and what was restored.
type RepairReport struct {
	// Before and After are the checks around the repair; they are the same if
	// there was nothing to repair.
	Before, After *CheckReport
	// Done says in a line each what was changed.
	Done []string
	// Record is the file in the quarantine that says all this, "" if nothing
	// was found.
	Record string
}

// Donor is a database that a repair takes pages, commits and payloads from.
type Donor interface {
	Dir() string
	// Stored reads a page or a record as it is stored.
	Stored(ctx context.Context, s index.Space, name []byte) ([]byte, error)
	// Payloads finds sound payloads with the hashes in sums.
	Payloads(ctx context.Context, sums []digest.Sum) ([]catalog.Hole, error)
	RightPayload(ctx context.Context, a pack.Address, sum digest.Sum) ([]byte, error)
}

// Repair makes a damaged database as usable as it can be and takes nothing away. It takes what is
// damaged from checkpoints, from the database itself, which is here, and from others. The
// database is not collected meanwhile.
func (p *Parts) Repair(ctx context.Context, o CheckOptions, here Donor, from []Donor) (*RepairReport, error) {
	r := repairer{Parts: p, here: here, from: from, o: o, r: &RepairReport{}, lost: map[indexKey]string{}, bad: map[pack.Address]digest.Sum{}}
	r.o.Payloads, r.o.Found = o.Payloads || len(from) > 0, r.note
	if err := r.run(ctx); err != nil {
		return r.r, fmt.Errorf("repair: %w", err)
	}
	if o.Found != nil {
		for _, problem := range r.r.After.Problems {
			o.Found(problem)
		}
	}
	return r.r, nil
}

type repairer struct {
	*Parts
	here Donor
	from []Donor
	o    CheckOptions
	r    *RepairReport

	checked int                         // the length of r.Done at the last check
	lost    map[indexKey]string         // the kinds of damaged pages and commits
	bad     map[pack.Address]digest.Sum // damaged payloads
}

// indexKey is the place of a page or commit in the index.
type indexKey struct {
	space index.Space
	name  digest.Sum
}

func (p *repairer) run(ctx context.Context) error {
	if err := p.look(ctx); err != nil {
		return err
	}
	if p.r.Before.Found > 0 {
		err := InTurn(ctx, p.healIndex, p.healPayloads, p.branches, p.reflogs)
		if err == nil && len(p.r.Done) > p.checked {
			err = p.look(ctx)
		}
		if err == nil {
			err = p.record()
		}
		if err != nil {
			return err
		}
	}
	return p.PutHoles(p.bad)
}

func (p *repairer) look(ctx context.Context) (err error) {
	p.checked = len(p.r.Done)
	clear(p.lost)
	clear(p.bad)
	p.r.After, err = p.Check(ctx, p.o)
	p.r.Before = cmp.Or(p.r.Before, p.r.After)
	return err
}

// note takes each problem of a check, also of those that its report has no room
// for, and keeps the damaged pages, commits and payloads.
func (p *repairer) note(problem Problem) {
	switch {
	case problem.Kind == ProblemPayload:
		p.bad[problem.Address] = SumOf(problem)
	case problem.Page != "":
		var name digest.Sum
		_, _ = hex.Decode(name[:], []byte(problem.Page))
		p.lost[indexKey{index.SpacePage, name}] = problem.Kind
	case problem.Kind == ProblemCommit && len(problem.Commits) == 1:
		p.lost[indexKey{index.SpaceCommit, digest.Sum(problem.Commits[0])}] = problem.Kind
	}
}

func (p *repairer) done(format string, args ...any) {
	p.r.Done = append(p.r.Done, fmt.Sprintf(format, args...))
}

// healIndex restores pages and commits from checkpoints and other databases. What a page
// hides is seen only when the page is there again, so it goes on while it gets somewhere.
func (p *repairer) healIndex(ctx context.Context) error {
	list, err := ListCheckpoints(p.FS, p.Dir)
	for err == nil && len(p.lost) > 0 {
		for i := len(list) - 1; i >= 0 && len(p.lost) > 0; i-- {
			if err := p.healFromCheckpoint(ctx, list[i].Name); err != nil {
				return err
			}
		}
		for _, src := range p.from {
			get := func(s index.Space, name []byte) ([]byte, error) { return src.Stored(ctx, s, name) }
			if err := p.restore(ctx, src.Dir(), get); err != nil {
				return err
			}
		}
		if len(p.r.Done) == p.checked {
			return nil
		}
		err = p.look(ctx)
	}
	return err
}

// healPayloads takes payloads from this database, where the same bytes may be stored
// twice, and from others.
func (p *repairer) healPayloads(ctx context.Context) error {
	for _, src := range slices.Insert(slices.Clone(p.from), 0, p.here) {
		if len(p.bad) == 0 {
			return nil
		}
		list, err := src.Payloads(ctx, slices.Collect(maps.Values(p.bad)))
		if err != nil {
			return err
		}
		found := map[digest.Sum]pack.Address{}
		for _, h := range list {
			found[h.Sum] = h.Address
		}
		n, err := p.Heal(ctx, src.RightPayload, p.bad, func(h catalog.Hole) (pack.Address, bool) {
			a, ok := found[h.Sum]
			return a, ok
		})
		if err != nil {
			return err
		}
		if n > 0 {
			p.done("damaged payloads: %d restored from %s", n, src.Dir())
		}
	}
	return nil
}

// FindPayloads finds sound payloads with the hashes in sums; right is that of a [Donor].
func (p *Parts) FindPayloads(ctx context.Context, sums []digest.Sum, right func(ctx context.Context, a pack.Address, sum digest.Sum) ([]byte, error)) (found []catalog.Hole, err error) {
	var mu sync.Mutex // guards wanted and found
	wanted := map[digest.Sum]bool{}
	for _, sum := range sums {
		wanted[sum] = true
	}
	c := &Checker{Parts: p, Look: func(ctx context.Context, v tree.Value) error {
		mu.Lock()
		want := wanted[v.Sum]
		mu.Unlock()
		if !want {
			return nil
		}
		if _, err := right(ctx, catalog.AddressOf(v), v.Sum); err == nil {
			mu.Lock()
			defer mu.Unlock()
			delete(wanted, v.Sum)
			found = append(found, catalog.Hole{Address: catalog.AddressOf(v), Sum: v.Sum})
		}
		return nil
	}}
	return found, c.RunAll(ctx)
}

// FindDamage finds the keys and versions of payloads that are damaged.
func (p *Parts) FindDamage(ctx context.Context, d Damages) ([]Problem, error) {
	bad := map[pack.Address]error{}
	for _, p := range d.Payloads {
		bad[p.Address] = p.Damage.Err
	}
	c := &Checker{Parts: p, Look: func(_ context.Context, v tree.Value) error {
		if p := d.Packs[catalog.AddressOf(v).Pack]; p != nil {
			return p.Err
		}
		return bad[catalog.AddressOf(v)]
	}}
	if err := c.Run(ctx); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(c.Report.Problems, func(p Problem) bool { return p.Kind != ProblemPayload }), nil
}

// healFromCheckpoint heals with the payloads of one checkpoint. A checkpoint that cannot
// be opened heals nothing.
func (p *repairer) healFromCheckpoint(ctx context.Context, checkpoint string) (err error) {
	path := p.FS.PathJoin(p.Dir, CheckpointDir, checkpoint)
	idx, err := index.Open(path, &index.Options{FS: p.FS, ReadOnly: true, CacheBytes: 1 << 20})
	if err != nil {
		return nil
	}
	defer func() { err = errors.Join(err, idx.Close()) }()
	return p.restore(ctx, "checkpoint "+checkpoint, idx.Get)
}

// restoreBatch is how many pages and commits are restored at once.
const restoreBatch = 128

// restore takes pages and commits from another index.
func (p *repairer) restore(ctx context.Context, name string, get func(s index.Space, name []byte) ([]byte, error)) error {
	order := func(a, b indexKey) int {
		return cmp.Or(cmp.Compare(a.space, b.space), bytes.Compare(a.name[:], b.name[:]))
	}
	for keys := range slices.Chunk(slices.SortedFunc(maps.Keys(p.lost), order), restoreBatch) {
		batch := p.Index.NewBatch()
		for _, at := range keys {
			if b, err := p.Index.Get(at.space, at.name[:]); err == nil && digest.Of(b) == at.name {
				continue // sound, and wrong in another way
			}
			if b, err := get(at.space, at.name[:]); err == nil && digest.Of(b) == at.name {
				batch.Set(at.space, at.name[:], b)
				p.done("%s %v restored from %s", p.lost[at], at.name, name)
				delete(p.lost, at)
			}
		}
		err := ctx.Err()
		if err == nil && batch.Len() > 0 {
			err = batch.Commit(true)
		}
		batch.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// branches puts the newest sound version of a branch that cannot be opened on
// another one.
func (p *repairer) branches(ctx context.Context) error {
	for _, ref := range p.DB.Heads() {
		branch, ok := strings.CutPrefix(ref.Name, catalog.HeadPrefix)
		if !ok || p.opens(ctx, ref.Commit) {
			continue
		}
		id, err := p.newestSound(ctx, ref.Name)
		if err != nil {
			return err
		}
		if id.IsZero() {
			p.done("branch %s cannot be opened, and no earlier version of it can", branch)
			continue
		}
		name := RepairBranches + branch
		if err := p.DB.Move(catalog.HeadRef(name), "repair", id); err != nil {
			return err
		}
		p.done("branch %s cannot be opened and stays as it is; branch %s is its newest version that can be, %s", branch, name, id.Short())
	}
	return nil
}

// reflogs joins the ends of a reflog where entries between are missing. Entries that
// follow one another without a gap in their numbers are left as they are.
func (p *repairer) reflogs(ctx context.Context) error {
	return p.DB.Publish(ctx, func() error {
		batch := p.Index.NewBatch()
		defer batch.Close()
		var last catalog.RefMove
		for m, err := range catalog.Moves.All(p.Index) {
			if err != nil {
				break // damage, which the check reports
			}
			if m.Ref == last.Ref && m.Old != last.New && m.Seq > last.Seq+1 {
				catalog.Moves.Put(batch, catalog.RefMove{Ref: m.Ref, Seq: m.Seq - 1, Old: last.New, New: m.Old, Time: m.Time, Author: p.Author, Op: "expired"})
				p.done("reflog of %s: moves %d to %d are missing, and one entry stands for them", m.Ref, last.Seq+1, m.Seq-1)
			}
			last = m
		}
		if batch.Len() == 0 {
			return nil
		}
		return batch.Commit(true)
	})
}

// opens reports whether a version can be looked into.
func (p *repairer) opens(ctx context.Context, id catalog.CommitID) bool {
	c, err := p.DB.Lookup(ctx, id)
	last := &lastPage{Pages: p.Pages}
	if err == nil {
		err = opens(ctx, last, c.Root)
	}
	if p.Away != nil && errors.Is(err, tree.ErrMissing) {
		err = p.Away(ctx, last.name)
		return !errors.Is(err, tree.ErrMissing) || errors.Is(err, ErrUndecided)
	}
	return err == nil
}

// lastPage notes which page was read last.
type lastPage struct {
	tree.Pages
	name tree.Name
}

func (p *lastPage) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	p.name = name
	return p.Pages.GetPage(ctx, name)
}

// newestSound goes through the reflog of a branch and through the ancestors of
// what it finds there, zero if there is nothing that can be opened.
func (p *repairer) newestSound(ctx context.Context, ref string) (catalog.CommitID, error) {
	seen := map[catalog.CommitID]bool{}
	for m, err := range catalog.MovesOf(p.Index, ref, 0, true) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return catalog.CommitID{}, err
		}
		for id := m.New; !id.IsZero() && !seen[id]; {
			seen[id] = true
			if p.opens(ctx, id) {
				return id, nil
			}
			c, err := p.DB.Lookup(ctx, id)
			if err != nil || len(c.Parents) == 0 {
				break
			}
			id = c.Parents[0]
		}
	}
	return catalog.CommitID{}, nil
}

// record writes down what was found and done, a line for each.
func (p *repairer) record() error {
	now := p.Now().UTC()
	b := fmt.Appendf(nil, "repair of %s\n\nfound:\n", now.Format(time.RFC3339))
	for _, problem := range p.r.Before.Problems {
		b = fmt.Appendln(b, problem)
	}
	b = fmt.Append(b, "\ndone:\n")
	for _, what := range p.r.Done {
		b = fmt.Appendln(b, what)
	}
	b = fmt.Append(b, "\nleft:\n")
	for _, problem := range p.r.After.Problems {
		b = fmt.Appendln(b, problem)
	}
	path, err := Quarantined(p.FS, p.Dir, "repair", now)
	if err == nil {
		err = index.ReplaceSmall(p.FS, p.FS.PathDir(path), p.FS.PathBase(path), b)
	}
	if err == nil {
		p.r.Record = path
	}
	return err
}
