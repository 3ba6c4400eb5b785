package txn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/away"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// A database in a bucket is written and read by the process that is asked to, a peer too, with its own
// credentials; package depot has the format.
//
//	push          walk here ─▶ segments, a bundle, the manifest
//	clone         bundles and segments ─▶ a new database
//	pull, fetch   what is missing here ─▶ a database in DB/remotes/…/incoming ─▶ pull from that
//	push of a lazy clone to another bucket: what is away ─▶ a database in DB/remotes/…/outgoing ─▶ push of that
//
// So no request is sent while a lock of the database is held, and the process that has the database open
// needs neither the network nor credentials.

var (
	// ErrOtherBytes means that a bucket has other bytes at the place of a payload: two copies of one
	// directory were written to, and both are pushed.
	ErrOtherBytes = transfer.ErrOtherBytes
	// ErrBucketChanged means that a bucket is not what this database knows of it: it went back, is another one, or
	// lost a push. BucketOptions.Accept goes on with what is there.
	ErrBucketChanged = errors.New("txn: the remote is not the one that is known")
	// ErrRefMoved means that somebody deleted a branch or tag in the bucket while it was pushed.
	ErrRefMoved = fmt.Errorf("%w: it was deleted meanwhile", ErrConflict)
)

// BucketOptions say which bucket is opened.
type BucketOptions struct {
	// Store has the database alone, at its beginning. Name is a URL for people, without secrets.
	Store kv.Store
	Name  string
	// Write opens a bucket to be pushed to: it is made if nothing is there, and the store is tried once.
	Write bool
	// Accept goes on with what is in a bucket that went back, or is another one. With Write, that is known from then on.
	Accept bool
	// DryRun opens a bucket for a push that is planned alone: nothing is written, there and here.
	DryRun bool

	// Tests do not sleep, and have smaller segments.
	sleep   func(ctx context.Context, d time.Duration) error
	segment int64
}

// Bucket is a database in a bucket, as a database of this machine uses it. Safe for concurrent use; one transfer runs
// at a time. It needs no Close. One that is kept open knows the manifest.
type Bucket struct {
	name  string
	store *bucket.Counted
	d     *depot.Depot
	state *bucket.State
	note  string // for the report
	write bool
	// back says that the state stays what was known before the bucket went back: a push is refused.
	back bool

	segment int64

	one    ctxlock.Lock
	fresh  bool          // the manifest was read for this call, or when the bucket was opened
	opened bool          // it was read when the bucket was opened, which may be long ago
	told   bucket.Counts // in earlier reports
}

// Bucket opens a bucket for transfers with this database. Errors: ErrNotFound if nothing is there and Write is not set,
// [ErrBucketChanged], depot.ErrUnfit if the store is not to be written to.
func (db *DB) Bucket(ctx context.Context, o BucketOptions) (*Bucket, error) {
	if err := db.check(); err != nil {
		return nil, err
	}
	return openBucket(ctx, db.fs, db.dir, o)
}

func openBucket(ctx context.Context, fs index.FS, dir string, o BucketOptions) (_ *Bucket, err error) {
	defer wrap(&err, "%s", o.Name)
	b := &Bucket{name: o.Name, store: &bucket.Counted{Store: o.Store}, fresh: true, opened: true, segment: o.segment, write: o.Write && !o.DryRun}
	if b.state, err = bucket.Load(fs, dir, o.Name, o.DryRun); err != nil {
		return nil, err
	}
	opts := depot.Options{Known: b.state.Known, Cache: b.state.Cache(), Sleep: o.sleep}
	b.d, err = depot.Open(ctx, b.store, &opts)
	back := (*depot.BackError)(nil)
	changed := errors.As(err, &back) || errors.Is(err, depot.ErrLost) || errors.Is(err, depot.ErrOther)
	switch {
	case changed && (o.Accept || !o.Write && !errors.Is(err, depot.ErrOther)):
		if !o.Accept {
			b.note = err.Error()
		}
		b.back = !o.Accept || !b.write
		opts.Known = nil
		b.d, err = depot.Open(ctx, b.store, &opts)
	case o.DryRun && (errors.Is(err, depot.ErrGone) && o.Accept || errors.Is(err, depot.ErrNone)):
		b.d, err = depot.Create(ctx, kv.NewMem(), &opts) // what would be made
	case b.write && (errors.Is(err, depot.ErrGone) && o.Accept || errors.Is(err, depot.ErrNone)):
		if b.d, err = depot.Create(ctx, b.store, &opts); errors.Is(err, depot.ErrExists) {
			b.d, err = depot.Open(ctx, b.store, &opts)
		} else if err == nil {
			b.state.Probed = true
		}
	}
	switch {
	case errors.Is(err, depot.ErrGone):
		return nil, fmt.Errorf("%w: %w (put the manifest back, or push to another URL; where nothing else is left, \"zarrdb push --accept\" begins anew)", ErrBucketChanged, err)
	case changed && err != nil:
		return nil, fmt.Errorf("%w: %w (\"zarrdb push --accept\" goes on with what is there)", ErrBucketChanged, err)
	case err != nil:
		return nil, err
	}
	if b.write && !b.state.Probed {
		if err := depot.Probe(ctx, b.store, nil); err != nil {
			return nil, err
		}
		b.state.Probed = true
	}
	b.save()
	return b, nil
}

// save remembers the state. What is lost is found out anew.
func (b *Bucket) save() {
	if known := b.d.State(); !b.back {
		b.state.Known = &known
		if s := b.state.Reread(); !b.write && s.Known != nil && s.Known.ID == known.ID && s.Known.Generation > known.Generation {
			b.state.Known = s.Known // another process has read it meanwhile
		}
	}
	b.state.Refs = b.d.Manifest().Refs
	b.state.Save()
	b.state.Tidy(b.d.Manifest())
}

// begin begins a transfer. end adds the requests to its report, and remembers what is known.
func (b *Bucket) begin(ctx context.Context) (end func(*TransferReport), err error) {
	if err := b.one.Lock(ctx); err != nil {
		return nil, err
	}
	return func(r *TransferReport) {
		if now := b.store.Count(); r != nil {
			r.Requests, r.Sent, r.Received = now.Requests-b.told.Requests, now.Sent-b.told.Sent, now.Received-b.told.Received
			r.Note, b.told = b.note, now
		}
		b.fresh, b.opened = false, false
		b.state.Close()
		b.save()
		b.one.Unlock()
	}, nil
}

// refresh reads the manifest, unless it was read in this call.
func (b *Bucket) refresh(ctx context.Context) error {
	if b.fresh && !b.opened {
		return nil
	}
	b.fresh, b.opened = true, false
	return b.d.Refresh(ctx)
}

// pushTries bounds how often a push is planned anew because others publish.
const pushTries = 64

// PushTo is [DB.Push] to a bucket. Errors are those of Push, and: kv.ErrUnknown if an answer was lost and the outcome could not be
// found out: the same push settles it. [ErrOtherBytes], [ErrRefMoved].
func (db *DB) PushTo(ctx context.Context, b *Bucket, o TransferOptions) (r *TransferReport, err error) {
	defer wrap(&err, "push to %s", b.name)
	if r, err = db.pushTo(ctx, b, o); errors.Is(err, transfer.ErrElsewhere) {
		return db.pushWhole(ctx, b, o)
	}
	return r, err
}

// pushWhole pushes what a lazy clone has in another bucket: a whole copy is made in DB/remotes/…/outgoing, and pushed. What was
// interrupted goes on.
func (db *DB) pushWhole(ctx context.Context, b *Bucket, o TransferOptions) (r *TransferReport, err error) {
	opts := db.copyOptions()
	opts.FS = db.fs
	dir := db.fs.PathJoin(db.fs.PathDir(b.state.Incoming), "outgoing")
	to, err := Open(dir, &opts)
	if errors.Is(err, ErrNotDatabase) || errors.Is(err, kv.ErrCorrupt) {
		if err = db.fs.RemoveAll(dir); err == nil {
			to, err = Create(dir, &opts)
		}
	}
	if err != nil {
		return &TransferReport{}, err
	}
	all := o
	all.Force, all.Prune, all.Refs = true, false, nil
	for _, s := range o.Refs {
		all.Refs = append(all.Refs, RefSpec{From: s.From})
	}
	if r, err = db.Push(ctx, to, all); err == nil {
		r, err = to.pushTo(ctx, b, o)
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = db.fs.RemoveAll(dir)
	}
	return r, err
}

func (db *DB) pushTo(ctx context.Context, b *Bucket, o TransferOptions) (r *TransferReport, err error) {
	if err := db.check(); err != nil {
		return &TransferReport{}, err
	}
	end, err := b.begin(ctx)
	if err != nil {
		return &TransferReport{}, err
	}
	defer func() { end(r) }()
	if !o.DryRun {
		if !b.write {
			return &TransferReport{}, fmt.Errorf("%w: it was opened to pull from", kv.ErrReadOnly)
		}
		b.state.Begin(FileOf(db.dir), b.d.Manifest())
	}
	from := db.carried()
	to := &transfer.Bucket{Depot: b.d, Push: b.d.Begin(), Stored: b.state.Stored, Uploaded: b.state.Uploaded, Segment: b.segment}
	var sent, packs int64
	for range pushTries {
		r, err = transfer.Send(ctx, from, to, db.opts.Author, db.opts.Now, o)
		sent, packs = sent+r.PayloadBytes, packs+r.Packs
		r.PayloadBytes, r.Packs = sent, packs
		moved := (*depot.MovedError)(nil)
		switch {
		case errors.As(err, &moved):
			if moved.Have.IsZero() && b.fresh {
				return r, fmt.Errorf("%s: %w", moved.Ref, ErrRefMoved)
			}
			b.fresh = true
			err = to.Push.Replan(ctx)
		case errors.Is(err, depot.ErrReplan):
			err = to.Push.Replan(ctx)
		case errors.Is(err, depot.ErrVoid):
			if err = b.d.Refresh(ctx); err == nil {
				b.state.Begin("", b.d.Manifest())
				to.Push = b.d.Begin()
			}
		case (b.opened || !b.fresh) && (err == nil && len(r.Moves) == 0 || errors.Is(err, ErrConflict)):
			// It was planned by a manifest that may be old.
			if err = b.refresh(ctx); err == nil {
				to.Push = b.d.Begin()
			}
		case err == nil:
			if o.DryRun {
				return r, nil
			}
			b.state.End()
			if len(r.Moves) > 0 {
				_, _ = b.d.Merge(ctx, db.reached) // the push is done
			}
			return r, nil
		default:
			return r, err
		}
		if err != nil {
			return r, err
		}
	}
	return r, errors.New("others push all the time; try again")
}

// reached implements [depot.Reached] with the pages that are here, level by level.
func (db *DB) reached(ctx context.Context, refs map[string]depot.ID, listed func(depot.ID) bool) iter.Seq[depot.ID] {
	pages := tree.New(db.committed(), &tree.Options{CacheBytes: -1})
	return func(yield func(depot.ID) bool) {
		var links tree.Links
		seen := map[tree.Name]bool{}
		for _, ref := range slices.Sorted(maps.Keys(refs)) { // branches before tags
			c, err := db.Lookup(ctx, CommitID(refs[ref]))
			if err != nil {
				continue
			}
			for level := []Root{c.Root}; len(level) > 0; {
				var below []Root
				for _, r := range level {
					if r.Empty() || seen[r.Name] || !listed(depot.ID(r.Name)) {
						continue
					}
					if seen[r.Name] = true; ctx.Err() != nil || !yield(depot.ID(r.Name)) {
						return
					}
					if (r.Height > 0 || r.Flags&tree.HasChild != 0) && pages.Links(ctx, r, &links) == nil {
						below = append(below, links.Pages...)
					}
				}
				level = below
			}
		}
	}
}

// PullFrom is [DB.Pull] from a bucket.
func (db *DB) PullFrom(ctx context.Context, b *Bucket, o TransferOptions) (*TransferReport, error) {
	return db.takeFrom(ctx, b, transfer.OpPull, o)
}

// FetchFrom is [DB.Fetch] from a bucket.
func (db *DB) FetchFrom(ctx context.Context, b *Bucket, o TransferOptions) (*TransferReport, error) {
	return db.takeFrom(ctx, b, transfer.OpFetch, o)
}

func (db *DB) takeFrom(ctx context.Context, b *Bucket, op string, o TransferOptions) (r *TransferReport, err error) {
	defer wrap(&err, "%s from %s", op, b.name)
	if err := db.check(); err != nil {
		return &TransferReport{}, err
	}
	if db.opts.ReadOnly {
		return &TransferReport{}, db.opts.readOnly()
	}
	cached := db.Caches() != ""
	if cached {
		if o, err = db.follows(b, op, o); err != nil {
			return &TransferReport{}, err
		}
	}
	end, err := b.begin(ctx)
	if err != nil {
		return &TransferReport{}, err
	}
	defer func() { end(r) }()
	fs, dir := db.fs, b.state.Incoming
	if err := fs.MkdirAll(fs.PathDir(dir), 0o777); err != nil {
		return &TransferReport{}, err
	}
	alone, err := index.LockFileOf(ctx, fs, dir+".lock") // against another pull from there, of any process
	if err != nil {
		return &TransferReport{}, fmt.Errorf("another pull is running: %w", err)
	}
	defer func() { err = errors.Join(err, alone.Close()) }()
	if err := b.refresh(ctx); err != nil {
		return &TransferReport{}, err
	}
	if cached {
		if mirrored, err := b.newest(ctx); err != nil || mirrored {
			return &TransferReport{}, err
		}
		defer func() {
			if err == nil && !o.DryRun {
				b.mirrored()
			}
		}()
	}
	if exists(fs, fs.PathJoin(dir, FormatFile)) { // the pull from it failed
		if err := fs.RemoveAll(dir); err != nil {
			return &TransferReport{}, err
		}
	}
	opts := db.copyOptions()
	opts.FS = fs
	done := false
	o.Lazy = db.away != nil && db.away.At.ID == b.d.Manifest().ID
	in, r, err := makeCopy(ctx, dir, opts, func(to *DB) (r *TransferReport, err error) {
		if o.Lazy {
			if err := to.begunAway(b.d, away.Place{URL: b.name, Staged: true}); err != nil {
				return &TransferReport{}, err
			}
		}
		t := to.carriedHere()
		staged := stagedTo{core: core{to}, db: db, heads: map[string]CommitID{}, protected: map[string]Protection{}}
		if err := staged.readRefs(ctx); err != nil {
			return &TransferReport{}, err
		}
		t.Tree, t.Committed, t.DestinationDB = db.space.Tree, db.space.Tree.Pages(), staged
		r, done, err = transfer.Stage(ctx, transfer.FromBucket(b.d, b.name, to.idx, false), t, op, o)
		return r, err
	})
	if done || errors.Is(err, ErrExists) || errors.Is(err, kv.ErrCorrupt) { // what is there is no use to the next pull
		err = errors.Join(err, fs.RemoveAll(dir))
	}
	if err != nil || done {
		return r, err
	}
	if !db.IsPeer() { // otherwise the other process opens it
		opts.ReadOnly = true
		if in, err = Open(dir, &opts); err != nil {
			return r, err
		}
	}
	for {
		r, err = db.home.transfer(ctx, in, op, o)
		if !errors.Is(err, ErrCollecting) || ctx.Err() != nil {
			break
		}
		select { // what was fetched waits for the end of the collection
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if !db.IsPeer() {
		err = errors.Join(err, in.Close())
	}
	return r, errors.Join(err, fs.RemoveAll(dir))
}

// stagedTo is a destination whose plan is that of another database.
type stagedTo struct {
	core
	db    *DB
	heads map[string]CommitID // its refs when the transfer began

	protected map[string]Protection // of its refs
}

func (s stagedTo) readRefs(ctx context.Context) error {
	branches, tags, err := s.db.Refs(ctx)
	if err != nil {
		return err
	}
	for _, r := range branches {
		s.heads[catalog.HeadRef(r.Name)] = r.Commit
	}
	for _, r := range tags {
		s.heads[catalog.TagRef(r.Name)] = r.Commit
	}
	ofBranches, ofTags, err := s.db.Protections(ctx)
	for name, p := range ofBranches {
		s.protected[catalog.HeadRef(name)] = p
	}
	for name, p := range ofTags {
		s.protected[catalog.TagRef(name)] = p
	}
	return err
}

func (s stagedTo) Protection(ref string) Protection { return s.protected[ref] }

func (s stagedTo) Heads() (out []Ref) {
	for _, name := range slices.Sorted(maps.Keys(s.heads)) {
		out = append(out, Ref{Name: name, Commit: s.heads[name]})
	}
	return out
}

func (s stagedTo) Head(ref string) (CommitID, bool) {
	id, ok := s.heads[ref]
	return id, ok
}

func (s stagedTo) Lookup(ctx context.Context, id CommitID) (*Commit, error) {
	return s.db.Lookup(ctx, id)
}

// Known is whether the other database has a version.
func (s stagedTo) Known(ctx context.Context, id CommitID) (has, gone bool, err error) {
	if _, err := s.db.Lookup(ctx, id); errors.Is(err, ErrNoRef) {
		return false, false, nil
	} else if err != nil {
		return false, false, err
	}
	gone, _, err = s.db.home.expired(ctx, id)
	return err == nil, gone, err
}

// CloneBucket is [DB.Clone] of a database in a bucket.
func CloneBucket(ctx context.Context, from BucketOptions, dir string, opts *Options, o TransferOptions) (r *TransferReport, err error) {
	defer wrap(&err, "clone %s", from.Name)
	to := opts.withDefaults()
	to.ReadOnly, to.Durability, to.CheckpointCommits = false, DurabilitySync, -1
	fs := to.FS
	if exists(fs, fs.PathJoin(dir, FormatFile)) {
		return &TransferReport{}, fmt.Errorf("create %s: %w", dir, ErrExists)
	}
	b, err := openBucket(ctx, fs, "", from)
	if err != nil {
		return &TransferReport{}, err
	}
	return b.clone(ctx, dir, to, o, false)
}

// clone is [CloneBucket]. cached is as in [awayPlace].
func (b *Bucket) clone(ctx context.Context, dir string, to Options, o TransferOptions, cached bool) (r *TransferReport, err error) {
	end, err := b.begin(ctx)
	if err != nil {
		return &TransferReport{}, err
	}
	defer func() { end(r) }()
	_, r, err = makeCopy(ctx, dir, to, func(to *DB) (*TransferReport, error) {
		if err := b.begunBy(ctx, to); err != nil {
			return &TransferReport{}, err
		}
		if o.Lazy {
			if err := to.begunAway(b.d, away.Place{URL: b.name, Cached: cached, Size: cmp.Or(o.AwaySize, away.TenthOfDisk(dir))}); err != nil {
				return &TransferReport{}, err
			}
		} else if err := to.errBegunLazy(); err != nil {
			return &TransferReport{}, err
		}
		r, err := transfer.Clone(ctx, transfer.FromBucket(b.d, b.name, to.idx, o.Branch == "" && o.Depth == 0), to.carriedHere(), o)
		if err == nil {
			err = to.copied(ctx, true)
		}
		return r, err
	})
	if err == nil {
		b.state.MovedTo(to.FS, dir)
		b.d.SaveTo(ctx, b.state.Cache())
	}
	return r, err
}

// begunBy is [DB.begunBy] of a clone of a bucket.
func (b *Bucket) begunBy(ctx context.Context, to *DB) error {
	if blank, err := to.blank(); blank || err != nil {
		return err
	}
	for _, r := range to.heads.list("") {
		has, err := b.d.HasCommits(ctx, []depot.ID{depot.ID(r.Commit)})
		if err == nil && !has[0] {
			err = fmt.Errorf("create %s: %w", to.dir, errIsLeft(to.dir, "there is another database without "+FormatFile))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckBucket verifies a database in a bucket: see [depot.Depot.Check].
func CheckBucket(ctx context.Context, o BucketOptions, full bool) (r *depot.CheckReport, err error) {
	defer wrap(&err, "%s", o.Name)
	d, err := depot.Open(ctx, o.Store, nil)
	if err != nil {
		return nil, err
	}
	return d.Check(ctx, full)
}
