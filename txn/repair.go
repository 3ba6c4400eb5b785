package txn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
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

// Repair makes a damaged database as usable as it can be without losing
// anything that may still be of use:
//
//   - Pages and commits that are damaged or gone are restored from checkpoints
//     of the index. Their names are hashes, so they are the right ones.
//   - A ref that is gone is restored from its reflog. One that points elsewhere
//     than its last move stays where it is, and the reflog says so.
//   - Records of sessions and reflogs that cannot be read are copied to the
//     quarantine and taken out.
//   - A branch that cannot be opened is not moved. Its newest version that can
//     be is put on the branch "repair/NAME".
//
// Damaged payloads stay where they are and reading them stays an error; history
// is never rewritten. What is damaged, and in which arrays, chunks and versions,
// is written to a file in the quarantine. The error is about the repair; damage
// that is left is in the report.
func (db *DB) Repair(ctx context.Context, o CheckOptions) (*RepairReport, error) {
	if err := db.writable(); err != nil {
		return nil, err
	}
	// What is in the index counts, before and after.
	db.commits.Forget()
	defer db.commits.Forget()
	found := o.Found
	r := &RepairReport{}
	p := repairer{db: db, r: r, lost: map[indexKey]struct{}{}}
	o.Found = p.note
	var err error
	if r.Before, err = db.Check(ctx, o); err != nil {
		return r, err
	}
	r.After, o.Found = r.Before, nil
	if r.Before.Found > 0 {
		if err := p.run(ctx); err != nil {
			return r, fmt.Errorf("repair: %w", err)
		}
		if len(r.Done) > 0 {
			if r.After, err = db.Check(ctx, o); err != nil {
				return r, err
			}
		}
		if err := p.record(); err != nil {
			return r, fmt.Errorf("repair: %w", err)
		}
	}
	if found != nil {
		for _, problem := range r.After.Problems {
			found(problem)
		}
	}
	return r, nil
}

type repairer struct {
	db   *DB
	r    *RepairReport
	kept []keptRecord
	time time.Time // of the record, once there is one
	lost map[indexKey]struct{}
}

// indexKey is the place of a page or commit in the index.
type indexKey struct {
	space index.Space
	name  digest.Sum
}

// note takes each problem of a check, also of those that its report has no room
// for, and keeps the damaged pages and commits.
func (p *repairer) note(problem Problem) {
	switch {
	case problem.Kind == ProblemPage && len(problem.Page) == 2*digest.Size:
		var name digest.Sum
		if _, err := hex.Decode(name[:], []byte(problem.Page)); err == nil {
			p.lost[indexKey{index.SpacePage, name}] = struct{}{}
		}
	case problem.Kind == ProblemCommit && len(problem.Commits) == 1:
		p.lost[indexKey{index.SpaceCommit, digest.Sum(problem.Commits[0])}] = struct{}{}
	}
}

// keptRecord is a record of the index that was taken out.
type keptRecord struct {
	Space string `json:"space"`
	Key   string `json:"key"`   // hexadecimal
	Value string `json:"value"` // hexadecimal
}

func (p *repairer) done(format string, args ...any) {
	p.r.Done = append(p.r.Done, fmt.Sprintf(format, args...))
}

func (p *repairer) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{p.heal, p.sessions, p.refs, p.branches} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// heal restores pages and commits. What a page hides is seen only when the page
// is there again, so it goes on while it gets somewhere.
func (p *repairer) heal(ctx context.Context) error {
	list, err := listCheckpoints(fsOf(p.db.opts.FS), p.db.dir)
	if err != nil {
		return err
	}
	for len(p.lost) > 0 {
		lost := len(p.lost)
		for i := len(list) - 1; i >= 0 && len(p.lost) > 0; i-- {
			if err := p.healFrom(ctx, list[i].Name); err != nil {
				return err
			}
		}
		if len(p.lost) == lost {
			return nil
		}
		clear(p.lost)
		if _, err = p.db.Check(ctx, CheckOptions{Found: p.note}); err != nil {
			return err
		}
	}
	return nil
}

// healFrom takes what it can from one checkpoint. One that cannot be opened
// heals nothing.
func (p *repairer) healFrom(ctx context.Context, checkpoint string) (err error) {
	fs := fsOf(p.db.opts.FS)
	path := fs.PathJoin(p.db.dir, checkpointDir, checkpoint)
	idx, err := index.Open(path, &index.Options{FS: fs, ReadOnly: true, CacheBytes: 1 << 20})
	if err != nil {
		return nil
	}
	defer func() { err = errors.Join(err, idx.Close()) }()
	batch := p.db.idx.NewBatch()
	defer func() { batch.Close() }()
	kinds := map[index.Space]string{index.SpacePage: ProblemPage, index.SpaceCommit: ProblemCommit}
	order := func(a, b indexKey) int {
		return cmp.Or(cmp.Compare(a.space, b.space), bytes.Compare(a.name[:], b.name[:]))
	}
	for _, at := range slices.SortedFunc(maps.Keys(p.lost), order) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b, err := p.db.idx.Get(at.space, at.name[:]); err == nil && digest.Of(b) == at.name {
			continue // sound, and wrong in another way
		}
		b, err := idx.Get(at.space, at.name[:])
		if err != nil || digest.Of(b) != at.name {
			continue
		}
		batch.Set(at.space, at.name[:], b)
		p.done("%s %v restored from checkpoint %s", kinds[at.space], at.name, checkpoint)
		delete(p.lost, at)
		if batch.Len() >= healBatch {
			if err := batch.Commit(true); err != nil {
				return err
			}
			batch.Close()
			batch = p.db.idx.NewBatch()
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	return batch.Commit(true)
}

// healBatch is how many bytes are restored at once.
const healBatch = 4 << 20

// sessions takes out session records that nobody can resume.
func (p *repairer) sessions(context.Context) error {
	batch := p.db.idx.NewBatch()
	defer batch.Close()
	n := 0
	for rec, err := range p.db.idx.Scan(index.SpaceSession, nil, nil, false) {
		if err != nil {
			return err
		}
		if _, err := catalog.Sessions.Decode(rec.Key, rec.Value); err == nil {
			continue
		}
		p.keep("session", rec)
		batch.Delete(index.SpaceSession, rec.Key)
		p.done("session %x, which cannot be read, taken out", rec.Key)
		n++
	}
	if n == 0 {
		return nil
	}
	if err := p.secure(); err != nil {
		return err
	}
	return batch.Commit(true)
}

func (p *repairer) keep(space string, rec index.Record) {
	p.kept = append(p.kept, keptRecord{space, hex.EncodeToString(rec.Key), hex.EncodeToString(rec.Value)})
}

// refs makes reflogs and refs fit each other again.
func (p *repairer) refs(context.Context) error {
	db := p.db
	db.commit.lock()
	defer db.commit.unlock()
	batch := db.idx.NewBatch()
	defer batch.Close()
	ends, n, err := p.reflogs(batch)
	if err != nil {
		return err
	}
	var restored, moves []RefMove
	for ref, end := range ends {
		now, ok := db.heads.get(ref)
		switch {
		case ok && now != end:
			moves = append(moves, RefMove{Ref: ref, Old: end, New: now, Time: db.opts.Now().UTC(), Author: db.opts.Author, Op: "repair"})
			p.done("reflog of %s notes that it is at %v", ref, now)
		case !ok && !end.IsZero():
			catalog.Refs.Put(batch, Ref{Name: ref, Commit: end})
			restored = append(restored, RefMove{Ref: ref, New: end})
			p.done("%s restored at %v from its reflog", ref, end)
		}
	}
	if n+len(restored)+len(moves) == 0 {
		return nil
	}
	if err := p.secure(); err != nil {
		return err
	}
	if err := db.commitRefs(batch, nil, moves); err != nil {
		return err
	}
	db.heads.publish(restored)
	return nil
}

// reflogs replaces entries that cannot be read by ones that lead from the move
// before to the one after, and returns where each reflog ends.
func (p *repairer) reflogs(batch *index.Batch) (ends map[string]CommitID, n int, err error) {
	ends = map[string]CommitID{}
	var gaps []catalog.MoveKey // since the last entry that could be read
	fill := func(to func(ref string) CommitID) {
		for _, g := range gaps {
			m := RefMove{Ref: g.Ref, Seq: g.Seq, Old: ends[g.Ref], New: to(g.Ref), Time: p.db.opts.Now().UTC(), Author: p.db.opts.Author, Op: "repair"}
			ends[g.Ref] = m.New
			catalog.Moves.Put(batch, m)
			p.done("reflog of %s, move %d, which cannot be read, replaced", g.Ref, g.Seq)
			n++
		}
		gaps = nil
	}
	present := func(ref string) CommitID {
		id, _ := p.db.heads.get(ref)
		return id
	}
	for rec, err := range p.db.idx.Scan(index.SpaceReflog, nil, nil, false) {
		if err != nil {
			return nil, 0, err
		}
		m, err := catalog.Moves.Decode(rec.Key, rec.Value)
		if err == nil {
			fill(func(ref string) CommitID {
				if ref == m.Ref {
					return m.Old
				}
				return present(ref)
			})
			ends[m.Ref] = m.New
			continue
		}
		p.keep("reflog", rec)
		k, ok := catalog.ParseMoveKey(rec.Key)
		if !ok {
			batch.Delete(index.SpaceReflog, rec.Key)
			p.done("reflog entry %q, which cannot be read, taken out", rec.Key)
			n++
			continue
		}
		gaps = append(gaps, k)
	}
	fill(present)
	return ends, n, nil
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
		_, err = db.moveRef(catalog.HeadRef(name), "", "repair", func(CommitID) (CommitID, error) { return id, nil })
		if err != nil {
			return err
		}
		p.done("branch %s cannot be opened and stays as it is; branch %s is its newest version that can be, %s", ref.Name, name, id.Short())
	}
	return nil
}

// opens reports whether a version can be looked into.
func (db *DB) opens(ctx context.Context, id CommitID) bool {
	c, err := db.Lookup(ctx, id)
	if err != nil {
		return false
	}
	t := tree.New(db.committed(), uncached)
	for _, err := range t.Scan(ctx, c.Root, tree.Span{}) {
		return err == nil
	}
	return true
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

// secure stores the records that are about to be taken out, before they are:
// until the repair is over, the record says what it is going to do.
func (p *repairer) secure() error {
	if len(p.kept) == 0 {
		return nil
	}
	return p.record()
}

// record writes down what was found and done, over what secure wrote.
func (p *repairer) record() error {
	type problem struct {
		Kind     string   `json:"kind"`
		Problem  string   `json:"problem"`
		Key      string   `json:"key,omitempty"`
		Array    string   `json:"array,omitempty"`
		Chunk    []int64  `json:"chunk,omitempty"`
		Versions int64    `json:"versions,omitempty"`
		Commits  []string `json:"commits,omitempty"`
		Refs     []string `json:"refs,omitempty"`
	}
	list := func(r *CheckReport) []problem {
		out := []problem{}
		for _, q := range r.Problems {
			one := problem{Kind: q.Kind, Problem: q.Error(), Key: q.Key, Array: q.Array, Chunk: q.Chunk, Versions: q.Versions, Refs: q.Refs}
			for _, c := range q.Commits {
				one.Commits = append(one.Commits, c.String())
			}
			out = append(out, one)
		}
		return out
	}
	fs := fsOf(p.db.opts.FS)
	if p.r.Record == "" {
		p.time = p.db.opts.Now().UTC()
		path, err := quarantined(fs, p.db.dir, "repair", p.time)
		if err != nil {
			return err
		}
		p.r.Record = path
	}
	b, err := json.MarshalIndent(struct {
		Time   time.Time    `json:"time"`
		Found  []problem    `json:"found"`
		Done   []string     `json:"done"`
		Left   []problem    `json:"left"`
		Record []keptRecord `json:"records_taken_out,omitempty"`
	}{p.time, list(p.r.Before), p.r.Done, list(p.r.After), p.kept}, "", "  ")
	if err != nil {
		return err
	}
	return writeQuarantine(fs, p.r.Record, append(b, '\n'))
}
