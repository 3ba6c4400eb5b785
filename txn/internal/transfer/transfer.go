package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

var (
	// ErrDiverged means that a branch of the destination has versions that the
	// source has not, which a push or backup would drop, or another tag of the same name.
	// It is catalog.ErrConflict.
	ErrDiverged = fmt.Errorf("%w: the destination has versions that the source does not have", catalog.ErrConflict)
	errOtherTag = otherTagError{}
)

// otherTagError is ErrDiverged of a tag.
type otherTagError struct{}

func (otherTagError) Error() string {
	return catalog.ErrConflict.Error() + ": the destination has another version under this name"
}
func (otherTagError) Is(target error) bool { return errors.Is(ErrDiverged, target) }

// Options of DB.Clone, DB.Push, DB.Pull, DB.Fetch, DB.Backup and
// Restore. Backups hold everything and know no options but Force, SkipDamaged and Progress.
type Options struct {
	// Branch is the only branch that is cloned, with the tags among its
	// versions; "" is all branches and tags.
	Branch string
	// Refs are pushed, pulled or fetched. AllBranches and AllTags add all of the
	// source. None of these is [catalog.MainBranch].
	Refs                 []RefSpec
	AllBranches, AllTags bool
	// Depth, if positive, is how many generations of versions are copied with
	// their contents, counted from each branch and tag. Older ones are in the
	// log, and expired.
	Depth int
	// Deepen, if positive, also copies the contents of so many generations below what
	// the destination has, and Unshallow those of all versions that the source still has.
	Deepen    int
	Unshallow bool
	// Force is that of every RefSpec, and of Prune. It lets a backup drop what was committed to it.
	Force bool
	// Prune lets a push delete branches, with AllBranches, and tags, with AllTags, that
	// the source does not have. It is refused where the source lacks the version that
	// one points at, unless forced. The branch main stays in any case.
	Prune bool
	// DryRun reports the moves of a push or pull, and copies nothing. Others ignore it.
	DryRun bool
	// SkipDamaged makes a copy without payloads that are damaged in the source.
	// Otherwise one of them is a *[care.DamageError], and nothing moves. In the copy they are
	// known holes: reading one is kv.ErrCorrupt, DB.Check names them, and a later
	// transfer from a source that has them fills them, as a write and DB.Repair do.
	SkipDamaged bool
	// Lazy makes a clone of a bucket that has the history alone: contents are fetched when they are read. Others ignore it.
	Lazy bool
	// AwaySize bounds the bytes on disk that a lazy clone keeps of the payloads that it fetches; 0 is a tenth of the free disk.
	AwaySize int64
	// Progress, if not nil, is called now and then with how far a phase is. Calls do
	// not overlap.
	Progress func(Progress) `json:"-"`
}

// Progress is how far a transfer is.
type Progress struct {
	Phase string // "find", "copy", "index" or "verify"
	// Done of Total bytes, or pages with a Total of 0.
	Done, Total int64
}

// Report says what a transfer moved.
type Report struct {
	// Commits were copied with their contents, Records without: of versions
	// that have expired, or lie below the depth.
	Commits, Records int64
	// Pages of the index that were copied, and their bytes.
	Pages, PageBytes int64
	// PayloadBytes were written to Packs, with their headers; PresentBytes were
	// looked at and there already.
	PayloadBytes, PresentBytes int64
	Packs                      int64
	// Verified is how many payloads were read back from the destination and
	// compared by hash: the payloads that only versions new to the destination name.
	Verified int64
	// Filled is how many known holes of the destination got their bytes, and Holes
	// how many it has now. Skipped are the first 1000 new ones: what is damaged in the
	// source, with its keys and versions there.
	Filled, Holes int64
	Skipped       []care.Problem
	// Moves are the refs that moved.
	Moves []catalog.RefMove
	// Requests were sent to a bucket, with Sent and Received bytes of objects. Note is something to know about it.
	Requests, Sent, Received int64
	Note                     string
	// Refs are what a push, pull or fetch was about: stored names in the
	// destination, such as "heads/main", and the versions of the source.
	Refs []catalog.Ref
}

// Transfer is a transfer under way.
type Transfer struct {
	From *From
	to   *To
	o    Options
	r    *Report

	Kept    *Kept // of the source
	heads   map[string]catalog.CommitID
	expired map[catalog.CommitID]time.Time // versions of the source, and when

	Records []transferRecord
	bases   []tree.Root                          // of what refs of the destination point at
	edges   map[catalog.CommitID]*catalog.Commit // that were met and are not carried; nil if nobody asks

	Found *Walk // what is to be copied
	packs []pack.Info

	mu  sync.Mutex // guards packs and bad in verify
	bad map[pack.Address]badPayload

	phase string    // of the last report of progress
	next  time.Time // of the next one
}

// badPayload is a payload that is damaged in the source.
type badPayload struct {
	sum digest.Sum
	err error
}

// transferRecord is a commit that the destination is to know.
type transferRecord struct {
	Commit  *catalog.Commit
	content bool           // with everything below its root
	mark    time.Time      // without: when it expired in the source, or NotCopied
	old     bool           // the record is there, and marked as expired
	bases   []transferBase // what its pages are compared with; walk sets it
}

// run runs a transfer: plan says which commits and publish which refs. A transfer whose versions are
// not kept any more begins anew: what was copied is there.
func run(ctx context.Context, from *From, to *To, o Options, plan, publish func(context.Context, *Transfer) error) (*Report, error) {
	for {
		t := &Transfer{From: from, to: to, o: o, r: &Report{}, bad: map[pack.Address]badPayload{}}
		if again, err := t.run(ctx, plan, publish); !again {
			return t.r, err
		}
	}
}

// run runs the transfer. again says that it failed because the versions were not kept.
func (t *Transfer) run(ctx context.Context, plan, publish func(context.Context, *Transfer) error) (again bool, err error) {
	defer t.close()
	if t.Kept, err = t.From.Keep(ctx); err != nil {
		return ctx.Err() == nil && errors.Is(err, ErrNotKept), err
	}
	steps := []func(context.Context) error{t.fill, t.walk, t.copyPacks, t.copyPages, t.verify}
	switch {
	case t.to.bucket != nil:
		steps = []func(context.Context) error{t.walk, t.leaveAway, t.verifySource}
	case t.From.bucket != nil && t.o.Lazy, t.From.HistoryAlone:
		steps = nil
	case t.From.bucket != nil:
		steps = []func(context.Context) error{t.walk, t.copyPacks, t.fetchPages, t.verify}
	}
	steps = slices.Insert(steps, 0, func(ctx context.Context) error { return t.begin(ctx, plan) })
	err = care.InTurn(t.Kept.Ctx, append(steps, func(ctx context.Context) error { return publish(ctx, t) })...)
	if err != nil && ctx.Err() == nil {
		again = t.Kept.lost(ctx)
	}
	return again, err
}

// begin takes the state of the source, which is kept, and plans.
func (t *Transfer) begin(ctx context.Context, plan func(context.Context, *Transfer) error) error {
	t.heads, t.expired = map[string]catalog.CommitID{}, map[catalog.CommitID]time.Time{}
	if t.Kept.Records == nil {
		t.heads = t.Kept.Heads
		for id := range t.Kept.Expired {
			t.expired[id] = catalog.NotCopied
		}
	} else {
		for r, err := range catalog.Refs.All(t.Kept) {
			if err != nil {
				return err
			}
			t.heads[r.Name] = r.Commit
		}
		for e, err := range catalog.Expired.All(t.Kept) {
			if err != nil {
				return err
			}
			t.expired[e.Commit] = e.Time
		}
	}
	for _, r := range t.to.Heads() {
		c, err := t.base(ctx, r.Commit)
		if err != nil {
			return err
		}
		if c != nil {
			t.bases = append(t.bases, c.Root)
		}
	}
	return plan(ctx, t)
}

func (t *Transfer) close() {
	if t.Kept != nil {
		t.Kept.Release()
	}
}

// base looks up a version that the destination has, to compare others with. It is nil if To.Tree cannot read its pages: those
// of a bucket are read in the source.
func (t *Transfer) base(ctx context.Context, id catalog.CommitID) (*catalog.Commit, error) {
	if t.to.bucket == nil {
		return t.to.Lookup(ctx, id)
	}
	c, err := t.From.Version(ctx, id)
	if errors.Is(err, catalog.ErrNoRef) {
		return nil, nil
	}
	return c, err
}

// known reports whether the destination has a commit, and whether it has
// expired there. With a commit that has not expired, the destination has everything
// that the commit names.
func (t *Transfer) known(ctx context.Context, id catalog.CommitID) (has, gone bool, err error) {
	if k, ok := t.to.DestinationDB.(knower); ok {
		return k.Known(ctx, id)
	}
	if _, err = catalog.Commits.Record(t.to.Index, id); errors.Is(err, index.ErrNotFound) {
		return false, false, nil
	}
	if err == nil {
		gone, _, err = t.to.DB.Expired(ctx, id)
	}
	return err == nil, gone, err
}

// add plans a commit.
func (t *Transfer) add(c *catalog.Commit, content, old bool, mark time.Time) {
	t.Records = append(t.Records, transferRecord{Commit: c, content: content, old: old, mark: mark})
	if !content {
		t.r.Records++
		return
	}
	t.r.Commits++
}

// commits plans what is missing of the history of tips. left counts the generations
// from a commit on that are copied with contents.
func (t *Transfer) commits(ctx context.Context, tips []catalog.CommitID) error {
	depth, deepen := t.o.Depth, t.o.Deepen
	if depth <= 0 {
		depth = math.MaxInt
	}
	if t.o.Unshallow {
		deepen = math.MaxInt - 1
	}
	left := map[catalog.CommitID]int{}
	for _, id := range tips {
		left[id] = depth
	}
	more := false
	for c, err := range history.Ancestors(ctx, t.From.Lookup, tips, func(*catalog.Commit) bool { return more }) {
		if err != nil {
			return err
		}
		has, gone, err := t.known(ctx, c.ID)
		if err != nil {
			return err
		}
		at, expired := t.expired[c.ID]
		n := left[c.ID]
		delete(left, c.ID)
		switch {
		case has && !gone:
			more, n = deepen > 0, deepen+1
		case has && deepen <= 0 && !slices.Contains(tips, c.ID), has && n <= 0:
			more = false // it was let go there, or was below the depth
		default:
			more = true
			if expired && t.From.bucket != nil && slices.Contains(tips, c.ID) {
				return catalog.Corrupt("version %v, which a branch or tag of %s points at: the remote has only its record", c.ID.Short(), t.From.Dir)
			}
			if !expired {
				at = catalog.NotCopied
			}
			if content := !expired && n > 0; content || !has {
				t.add(c, content, has, at)
			}
		}
		if planned := len(t.Records); t.edges != nil && (planned == 0 || t.Records[planned-1].Commit != c) {
			t.edges[c.ID] = c
		}
		for _, id := range c.Parents {
			left[id] = max(left[id], n-1)
		}
	}
	return nil
}

// report tells about progress, at the beginning of a phase and then a few times a
// second.
func (t *Transfer) report(phase string, done, total int64) {
	if t.o.Progress == nil {
		return
	}
	if now := time.Now(); phase != t.phase || now.After(t.next) {
		t.phase, t.next = phase, now.Add(100*time.Millisecond)
		t.o.Progress(Progress{phase, done, max(done, total)})
	}
}
