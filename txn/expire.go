package txn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
)

// Expiry lets old versions go. It only marks commits, in one synced batch; the
// collector (gc.go) removes what then is reachable from no version. Records of
// commits stay, so that the log and the chain of hashes hold.

// ErrExpired means that a version was let go. It is ErrNoRef too.
var ErrExpired = fmt.Errorf("%w: it has expired", ErrNoRef)

// ExpireOptions say which versions may go. At least one of Before and Keep must
// be set.
type ExpireOptions struct {
	// Before is the age limit: versions made since then stay, and so does what
	// a branch or tag pointed at since then, as the reflog tells. Zero is none.
	Before time.Time
	// Keep is how many of the newest versions of each branch stay, and how many
	// entries of each reflog.
	Keep int
	// Branches limits what may go to the versions of these branches; what other
	// refs reach stays. nil is everything, also what no ref reaches.
	Branches []string
	// DryRun only counts.
	DryRun bool
}

// ExpireReport says what expiry did, or would do.
type ExpireReport struct {
	// Expired is how many commits were marked, Kept how many stay, Earlier how
	// many had been marked before.
	Expired, Kept, Earlier int64
	// Reflog is how many entries of reflogs were dropped.
	Reflog int64
	// Holders are what keeps the versions that stay, each counted for the first
	// of its reasons: branches and tags, reflogs, pins, sessions, the age limit.
	Holders []Holder
}

// Expire marks the versions that the options let go. Heads, tags, pins, bases
// of sessions and what their reflogs still name always stay; a snapshot that is
// open reads on. With both limits, what either keeps stays.
func (db *DB) Expire(ctx context.Context, o ExpireOptions) (*ExpireReport, error) {
	if err := db.writable(); err != nil {
		return nil, err
	}
	if o.Before.IsZero() && o.Keep <= 0 {
		return nil, errors.New("expire: neither an age nor a number is given")
	}
	// Refs stand still, so that nothing comes to point at what is marked.
	db.commit.lock()
	defer db.commit.unlock()
	if err := db.writePending(ctx); err != nil {
		return nil, fmt.Errorf("expire: %w", err)
	}
	e := &expiry{db: db, o: o, keep: map[CommitID]holderID{}, r: &ExpireReport{}}
	if err := e.run(ctx); err != nil {
		return nil, fmt.Errorf("expire: %w", err)
	}
	return e.r, nil
}

type expiry struct {
	db   *DB
	o    ExpireOptions
	r    *ExpireReport
	keep map[CommitID]holderID // and the first reason
	held map[holderID]int64
	// only are the commits that may go; nil is all.
	only map[CommitID]struct{}
	drop [][]byte // keys of the reflog
	mark []CommitID
}

func (e *expiry) run(ctx context.Context) error {
	e.held = map[holderID]int64{}
	for _, step := range []func(context.Context) error{e.refs, e.reflogs, e.pinsAndSessions, e.commits} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	e.r.Expired, e.r.Reflog = int64(len(e.mark)), int64(len(e.drop))
	for by, n := range e.held {
		e.r.Holders = append(e.r.Holders, Holder{Kind: by.kind, Name: by.name, Versions: n})
	}
	slices.SortFunc(e.r.Holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Versions, a.Versions), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	if e.o.DryRun || len(e.mark)+len(e.drop) == 0 {
		return nil
	}
	batch := e.db.idx.NewBatch()
	defer batch.Close()
	batch.MakesRoom()
	value := binary.AppendVarint([]byte{recordVersion}, e.db.opts.Now().UnixNano())
	for _, id := range e.mark {
		batch.Set(index.SpaceExpired, id[:], value)
	}
	for _, key := range e.drop {
		batch.Delete(index.SpaceReflog, key)
	}
	// Whoever opens a version looks at its mark and registers under this lock.
	e.db.keeping.Lock()
	defer e.db.keeping.Unlock()
	return batch.Commit(true)
}

// selected reports whether versions of a ref may go.
func (e *expiry) selected(ref string) bool {
	return e.o.Branches == nil || slices.ContainsFunc(e.o.Branches, func(b string) bool { return headRef(orMain(b)) == ref })
}

func (e *expiry) refs(ctx context.Context) error {
	if e.o.Branches != nil {
		e.only = map[CommitID]struct{}{}
	}
	for _, b := range e.o.Branches {
		if _, ok := e.db.heads.get(headRef(orMain(b))); !ok {
			return fmt.Errorf("branch %q: %w", orMain(b), ErrNoRef)
		}
	}
	for _, ref := range e.db.heads.list("") {
		by := holderOf(ref.Name)
		e.hold(ref.Commit, by)
		selected := e.selected(ref.Name)
		if selected && e.only == nil && (e.o.Keep <= 1 || !isHead(ref.Name)) {
			continue // nothing to look for
		}
		n := 0
		for c, err := range e.db.Log(ctx, ref.Commit) {
			if err != nil {
				return err
			}
			if !selected || isHead(ref.Name) && n < e.o.Keep {
				e.hold(c.ID, by)
			} else if e.only == nil {
				break
			}
			if selected && e.only != nil {
				e.only[c.ID] = struct{}{}
			}
			n++
		}
	}
	return nil
}

func isHead(ref string) bool {
	return len(ref) > len(headPrefix) && ref[:len(headPrefix)] == headPrefix
}

// reflogs decides about the entries of all reflogs, newest first.
func (e *expiry) reflogs(ctx context.Context) error {
	last, n := "", 0
	for rec, err := range e.db.idx.Scan(index.SpaceReflog, nil, nil, true) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		m, err := decodeRefMove(rec.Key, rec.Value)
		if err != nil {
			return err
		}
		if m.Ref != last {
			last, n = m.Ref, 0
		}
		_, exists := e.db.heads.get(m.Ref)
		selected := e.selected(m.Ref)
		by := holderID{HolderReflog, holderOf(m.Ref).name}
		switch {
		case !selected || !e.o.Before.IsZero() && !m.Time.Before(e.o.Before):
			e.hold(m.Old, by)
			e.hold(m.New, by)
		case n == 0 && exists || n < e.o.Keep:
			e.hold(m.New, by)
		default:
			e.drop = append(e.drop, bytes.Clone(rec.Key))
		}
		if selected && e.only != nil {
			e.only[m.Old], e.only[m.New] = struct{}{}, struct{}{}
		}
		n++
	}
	return nil
}

func (e *expiry) pinsAndSessions(ctx context.Context) error {
	pins, err := e.db.Pins(ctx)
	if err != nil {
		return err
	}
	for _, p := range pins {
		e.hold(p.Commit, holderID{HolderPin, p.Name})
	}
	sessions, err := e.db.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		e.hold(s.Base, holderID{HolderSession, s.ID.String()})
	}
	return nil
}

func (e *expiry) commits(ctx context.Context) error {
	for rec, err := range commitRecords(ctx, e.db.idx, nil) {
		if err != nil {
			return err
		}
		marked, _, err := e.db.expired(rec.id)
		if err != nil {
			return err
		}
		if marked {
			e.r.Earlier++
			continue
		}
		if stays, err := e.stays(rec.id, rec.value); err != nil {
			return err
		} else if stays {
			e.r.Kept++
			continue
		}
		e.mark = append(e.mark, rec.id)
	}
	return nil
}

func (e *expiry) stays(id CommitID, rec []byte) (bool, error) {
	if by, ok := e.keep[id]; ok {
		e.held[by]++
		return true, nil
	}
	if e.only != nil {
		if _, ok := e.only[id]; !ok {
			e.held[holderID{HolderHistory, ""}]++
			return true, nil
		}
	}
	if e.o.Before.IsZero() {
		return false, nil
	}
	c, err := decodeCommit(id, rec)
	if err != nil {
		return true, err
	}
	if c.Time.Before(e.o.Before) {
		return false, nil
	}
	e.held[holderID{HolderAge, ""}]++
	return true, nil
}

// hold notes that a commit stays, and why, unless something else keeps it.
func (e *expiry) hold(id CommitID, by holderID) {
	if _, ok := e.keep[id]; !ok {
		e.keep[id] = by
	}
}

// expired reports whether a commit was let go, and when.
func (db *DB) expired(id CommitID) (bool, time.Time, error) {
	if db.pending.commit(id) != nil {
		return false, time.Time{}, nil // it was made again
	}
	b, err := db.idx.Get(index.SpaceExpired, id[:])
	if errors.Is(err, index.ErrNotFound) {
		return false, time.Time{}, nil
	}
	if err != nil {
		return false, time.Time{}, err
	}
	r := reader{b: b}
	r.version()
	at := time.Unix(0, r.varint()).UTC()
	if err := r.end(); err != nil {
		return true, at, corrupt("expiry of %v: %v", id, err)
	}
	return true, at, nil
}

// version reads a commit whose content is wanted: one that has expired is an
// ErrExpired.
func (db *DB) version(ctx context.Context, id CommitID) (*Commit, error) {
	c, err := db.Commit(ctx, id)
	if err != nil {
		return nil, err
	}
	gone, at, err := db.expired(id)
	if err == nil && gone {
		err = fmt.Errorf("commit %s: %w on %s", id.Short(), ErrExpired, at.Format(time.DateOnly))
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Expired reports whether a version was let go by [DB.Expire]: its record is
// there, its content is not.
func (db *DB) Expired(_ context.Context, id CommitID) (bool, error) {
	if err := db.check(); err != nil {
		return false, err
	}
	gone, _, err := db.expired(id)
	return gone, err
}
