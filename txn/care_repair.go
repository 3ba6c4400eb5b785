package txn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// RepairBranches is the prefix of branches that [DB.Repair] makes for branches
// that cannot be opened.
const RepairBranches = "repair/"

// RepairReport says what [DB.Repair] found and did.
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

// Repair makes a damaged database as usable as it can be and takes nothing away:
//
//   - Pages and commits that are damaged or gone are restored from checkpoints
//     of the index. Their names are hashes, so they are the right ones.
//   - Payloads that are damaged or gone are written again if this database or one of
//     from has the same bytes, under whatever key. All payloads are read if from is given.
//     Payloads that stay damaged are known holes: every check and transfer looks at them.
//   - A branch that cannot be opened is not moved. Its newest version that can
//     be is put on the branch "repair/NAME".
//   - Where entries of a reflog are missing, an entry "expired" says where the branch
//     was before and after. Earlier versions of this program let such entries expire
//     if the clock of the machine had gone back.
//
// Pages come from the databases of from too. Payloads that nothing has stay damaged and
// reading them stays an error; history is never rewritten. What is damaged, and in which
// arrays, chunks and versions, is written to a file in the quarantine. The error is about
// the repair, [ErrCollecting] beside a collection or a transfer into the database; damage
// that is left is in the report: [Salvage] goes back to a sound checkpoint.
func (db *DB) Repair(ctx context.Context, o CheckOptions, from ...*DB) (*RepairReport, error) {
	return db.home.repair(ctx, o, from)
}

func (h holder) repair(ctx context.Context, o CheckOptions, from []*DB) (*RepairReport, error) {
	db := h.DB
	if err := db.writable(); err != nil {
		return nil, err
	}
	for _, other := range from {
		if err := other.check(); err != nil {
			return nil, err
		}
	}
	if !db.collecting.TryLock() {
		return nil, ErrCollecting
	}
	defer db.collecting.Unlock()
	// What is in the index counts, before and after.
	db.forgetCommits()
	defer db.forgetCommits()
	p := repairer{db: db, from: from, o: o, r: &RepairReport{}, lost: map[indexKey]string{}, bad: map[pack.Address]digest.Sum{}}
	p.o.Payloads, p.o.Found = o.Payloads || len(from) > 0, p.note
	if err := p.run(ctx); err != nil {
		return p.r, fmt.Errorf("repair: %w", err)
	}
	if o.Found != nil {
		for _, problem := range p.r.After.Problems {
			o.Found(problem)
		}
	}
	return p.r, nil
}

type repairer struct {
	db   *DB
	from []*DB
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
	if err := p.check(ctx); err != nil {
		return err
	}
	if p.r.Before.Found > 0 {
		err := care.InTurn(ctx, p.healIndex, p.healPayloads, p.branches, p.reflogs)
		if err == nil && len(p.r.Done) > p.checked {
			err = p.check(ctx)
		}
		if err == nil {
			err = p.record()
		}
		if err != nil {
			return err
		}
	}
	return p.db.parts().PutHoles(p.bad)
}

func (p *repairer) check(ctx context.Context) (err error) {
	p.checked = len(p.r.Done)
	clear(p.lost)
	clear(p.bad)
	p.r.After, err = p.db.Check(ctx, p.o)
	p.r.Before = cmp.Or(p.r.Before, p.r.After)
	return err
}

// note takes each problem of a check, also of those that its report has no room
// for, and keeps the damaged pages, commits and payloads.
func (p *repairer) note(problem Problem) {
	switch {
	case problem.Kind == ProblemPayload:
		p.bad[problem.Address] = care.SumOf(problem)
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
	list, err := listCheckpoints(p.db.opts.FS, p.db.dir)
	for err == nil && len(p.lost) > 0 {
		for i := len(list) - 1; i >= 0 && len(p.lost) > 0; i-- {
			if err := p.healFromCheckpoint(ctx, list[i].Name); err != nil {
				return err
			}
		}
		for _, src := range p.from {
			get := func(s index.Space, name []byte) ([]byte, error) { return src.stored(ctx, s, name) }
			if err := p.restore(ctx, src.dir, get); err != nil {
				return err
			}
		}
		if len(p.r.Done) == p.checked {
			return nil
		}
		err = p.check(ctx)
	}
	return err
}

// healPayloads takes payloads from this database, where the same bytes may be stored
// twice, and from others.
func (p *repairer) healPayloads(ctx context.Context) error {
	for _, src := range slices.Insert(slices.Clone(p.from), 0, p.db) {
		if len(p.bad) == 0 {
			return nil
		}
		list, err := src.payloadsOf(ctx, slices.Collect(maps.Values(p.bad)))
		if err != nil {
			return err
		}
		found := map[digest.Sum]pack.Address{}
		for _, h := range list {
			found[h.Sum] = h.Address
		}
		n, err := p.db.parts().Heal(ctx, src.rightPayload, p.bad, func(h catalog.Hole) (pack.Address, bool) {
			a, ok := found[h.Sum]
			return a, ok
		})
		if err != nil {
			return err
		}
		if n > 0 {
			p.done("damaged payloads: %d restored from %s", n, src.dir)
		}
	}
	return nil
}

// payloadsOf finds sound payloads with the hashes in sums.
func (db *DB) payloadsOf(ctx context.Context, sums []digest.Sum) ([]catalog.Hole, error) {
	return asked(ctx, db, "payloads", sums, db.findPayloads)
}

func (db *DB) findPayloads(ctx context.Context, sums []digest.Sum) (found []catalog.Hole, err error) {
	var mu sync.Mutex // guards wanted and found
	wanted := map[digest.Sum]bool{}
	for _, sum := range sums {
		wanted[sum] = true
	}
	err = db.lookAtAll(ctx, &care.Checker{Look: func(ctx context.Context, v tree.Value) error {
		mu.Lock()
		want := wanted[v.Sum]
		mu.Unlock()
		if !want {
			return nil
		}
		if _, err := db.rightPayload(ctx, catalog.AddressOf(v), v.Sum); err == nil {
			mu.Lock()
			defer mu.Unlock()
			delete(wanted, v.Sum)
			found = append(found, catalog.Hole{Address: catalog.AddressOf(v), Sum: v.Sum})
		}
		return nil
	}})
	return found, err
}

// stored reads a page or a record as it is stored.
func (db *DB) stored(ctx context.Context, s index.Space, name []byte) ([]byte, error) {
	if s != index.SpacePage || len(name) != digest.Size {
		return db.home.records(ctx).Get(s, name)
	}
	return onePage(db.Source().Pages(ctx, PageQuery{Names: []PageName{PageName(name)}}))
}

// healFromCheckpoint heals with the payloads of one checkpoint. A checkpoint that cannot
// be opened heals nothing.
func (p *repairer) healFromCheckpoint(ctx context.Context, checkpoint string) (err error) {
	fs := p.db.opts.FS
	path := fs.PathJoin(p.db.dir, checkpointDir, checkpoint)
	idx, err := index.Open(path, &index.Options{FS: fs, ReadOnly: true, CacheBytes: 1 << 20})
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
		batch := p.db.idx.NewBatch()
		for _, at := range keys {
			if b, err := p.db.idx.Get(at.space, at.name[:]); err == nil && digest.Of(b) == at.name {
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
	db := p.db
	for _, ref := range db.heads.list(catalog.HeadPrefix) {
		if db.opens(ctx, ref.Commit) {
			continue
		}
		id, err := p.newestSound(ctx, ref.Name)
		if err != nil {
			return err
		}
		if id.IsZero() {
			p.done("branch %s cannot be opened, and no earlier version of it can", ref.Name)
			continue
		}
		name := RepairBranches + ref.Name
		_, err = db.moveRef(catalog.HeadRef(name), "repair", func(CommitID) (CommitID, error) { return id, nil })
		if err != nil {
			return err
		}
		p.done("branch %s cannot be opened and stays as it is; branch %s is its newest version that can be, %s", ref.Name, name, id.Short())
	}
	return nil
}

// reflogs joins the ends of a reflog where entries between are missing. Entries that
// follow one another without a gap in their numbers are left as they are.
func (p *repairer) reflogs(ctx context.Context) error {
	db := p.db
	db.commit.lock()
	defer db.commit.unlock()
	if err := db.writePending(ctx); err != nil {
		return err
	}
	batch := db.idx.NewBatch()
	defer batch.Close()
	var last RefMove
	for m, err := range catalog.Moves.All(db.idx) {
		if err != nil {
			break // damage, which the check reports
		}
		if m.Ref == last.Ref && m.Old != last.New && m.Seq > last.Seq+1 {
			catalog.Moves.Put(batch, RefMove{Ref: m.Ref, Seq: m.Seq - 1, Old: last.New, New: m.Old, Time: m.Time, Author: db.opts.Author, Op: "expired"})
			p.done("reflog of %s: moves %d to %d are missing, and one entry stands for them", m.Ref, last.Seq+1, m.Seq-1)
		}
		last = m
	}
	if batch.Len() == 0 {
		return nil
	}
	return batch.Commit(true)
}

// opens reports whether a version can be looked into.
func (db *DB) opens(ctx context.Context, id CommitID) bool {
	c, err := db.Lookup(ctx, id)
	if err == nil {
		err = opens(ctx, db.pages(), c.Root)
	}
	return err == nil || errors.Is(err, ErrAway)
}

// opens returns why the first pages of a version cannot be read.
func opens(ctx context.Context, pages tree.Pages, root tree.Root) error {
	for _, err := range tree.New(pages, reach.Uncached).Scan(ctx, root, tree.Span{}) {
		return err
	}
	return nil
}

// newestSound goes through the reflog of a branch and through the ancestors of
// what it finds there, zero if there is nothing that can be opened.
func (p *repairer) newestSound(ctx context.Context, branch string) (CommitID, error) {
	seen := map[CommitID]bool{}
	for m, err := range p.db.Reflog(ctx, branch) {
		if err != nil {
			return CommitID{}, err
		}
		for id := m.New; !id.IsZero() && !seen[id]; {
			seen[id] = true
			if p.db.opens(ctx, id) {
				return id, nil
			}
			c, err := p.db.Lookup(ctx, id)
			if err != nil || len(c.Parents) == 0 {
				break
			}
			id = c.Parents[0]
		}
	}
	return CommitID{}, nil
}

// record writes down what was found and done, a line for each.
func (p *repairer) record() error {
	now := p.db.opts.Now().UTC()
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
	fs := p.db.opts.FS
	path, err := care.Quarantined(fs, p.db.dir, "repair", now)
	if err == nil {
		err = index.ReplaceSmall(fs, fs.PathDir(path), fs.PathBase(path), b)
	}
	if err == nil {
		p.r.Record = path
	}
	return err
}
