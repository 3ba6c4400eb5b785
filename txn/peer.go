package txn

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// peer is the part of a DB that reads through a source in place of an index, because another
// process has the database open.
type peer struct {
	Source
	answerer Remote // nil if the peer only reads
	db       *DB
	id       Identity
	stop     func() // being recalled

	mu      sync.Mutex
	answers [answersAhead + 2]ancestry // of Ancestors, the last answer first
	age     uint64                     // counts recalls
	open    map[CommitID]*openVersion
	kept    *openVersion // of open: the one that was closed last, to be opened again
	closed  bool
	unused  *time.Timer // releases it, and gives the files back

	names names
}

// openVersion is a version that snapshots share.
type openVersion struct {
	Lease
	snapshots int
}

// ancestry is an answer of Ancestors.
type ancestry struct {
	first   CommitID
	reached bool                // by a search
	asked   bool                // the next answer was asked for
	expired map[CommitID]*int64 // as Ancestor.Expired, of all commits in the answer
	read    time.Time           // when the answer came; zero after a recall
	next    map[CommitID]int    // parents behind the answer, and how many commits to ask for there
}

// ErrPeer means that only the process that has the database open can do something.
var ErrPeer = fmt.Errorf("txn: only the process that has the database open can do this: %w", errors.ErrUnsupported)

// NewPeer returns a DB that reads the database in dir through a source, while another process
// has the database open. id is the identity of the database. NewPeer uses the options ReadOnly,
// Author, Policy, Resolver, Now, MemoryBytes, SessionBytes, PageCacheBytes and VerifyReads. All
// methods that read work. Methods that write need a source that is a [Remote], else they
// return ErrPeer. Close leaves the source open.
func NewPeer(dir string, id Identity, src Source, o *Options) *DB {
	opts := o.withDefaults()
	opts.Durability = DurabilitySync // nothing waits here
	packs := pack.Borrow(&pack.Options{FS: opts.FS, VerifyReads: opts.VerifyReads}, opts.FS.PathJoin(dir, packDir), src.Pack)
	db := &DB{opts: opts, dir: dir, fs: opts.FS, open: map[*Session]struct{}{}, roots: map[tree.Root]int{}, packs: packs}
	p := &peer{Source: src, db: db, id: id}
	p.answerer, _ = src.(Remote)
	p.open, p.unused = map[CommitID]*openVersion{}, time.AfterFunc(time.Hour, func() {
		p.releaseKept()
		if p.idle() && p.db.check() == nil {
			p.release(0)
		}
	})
	p.unused.Stop()
	db.home = p
	if name, err := hex.DecodeString(id.Name); err == nil && len(name) == len(db.incarnation) {
		db.incarnation = [8]byte(name)
	}
	db.joinMemory()
	db.forgetCommits()
	_ = db.openAway() // it opens no files
	db.lendTo(src)
	t := tree.New(db.pagesOf(src), &db.memory.pages)
	db.space = namespace.New(t, opts.Policy, db.load)
	p.stop = src.Recalled(p.recalled)
	return db
}

// IsPeer reports whether another process has the database open; see [NewPeer].
func (db *DB) IsPeer() bool {
	_, is := db.home.(*peer)
	return is
}

// releaseTime is how long a recalled peer waits for its reads.
var releaseTime = time.Second // tests change it

// recalled gives the files of packs back, and forgets that versions have not expired.
func (p *peer) recalled() {
	p.mu.Lock()
	p.age++
	for i := range p.answers {
		p.answers[i].read = time.Time{}
	}
	p.mu.Unlock()
	p.releaseKept()
	p.release(releaseTime)
}

// releaseKept lets the version go that was closed last.
func (p *peer) releaseKept() {
	p.mu.Lock()
	v := p.kept
	if p.kept = nil; v != nil && p.open[v.Commit().ID] == v {
		delete(p.open, v.Commit().ID)
	}
	p.mu.Unlock()
	if v != nil {
		v.Release()
	}
}

// release gives the files of packs back, and waits for reads that use them, at most so long.
func (p *peer) release(wait time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	p.db.packs.Release(ctx)
}

func (p *peer) identity() Identity { return p.id }
func (p *peer) failed() error      { return nil }
func (p *peer) source() Source     { return p.Source }
func (p *peer) remote() Remote     { return p.answerer }

func (p *peer) here() error {
	return cmp.Or(p.db.check(), index.HereOf(filepath.Join(p.db.dir, indexDir), p.id.File))
}

func (p *peer) close() error {
	p.stop()
	p.unused.Stop()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.releaseKept()
	p.db.memory.end()
	return errors.Join(p.db.away.Close(), p.db.packs.Close())
}

func (p *peer) usage() (packs int, written int64) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	for _, err := range catalog.Packs.All(p.records(ctx)) {
		if err != nil {
			break // the files are counted all the same
		}
		packs++
	}
	return packs, 0
}

func (p *peer) records(ctx context.Context) transfer.Records { return sourceRecords{ctx, p.Source, 0} }

func (p *peer) refs(ctx context.Context) (branches, tags []Ref, err error) { return p.Refs(ctx) }

func (p *peer) head(ctx context.Context, branch string) (CommitID, error) {
	branches, _, err := p.Refs(ctx)
	if i := slices.IndexFunc(branches, func(r Ref) bool { return r.Name == branch }); i >= 0 {
		return branches[i].Commit, nil
	}
	return CommitID{}, fmt.Errorf("branch %q: %w", branch, cmp.Or(err, ErrNoRef))
}

func (p *peer) resolve(ctx context.Context, rev string) (CommitID, error) {
	var id CommitID
	if id.UnmarshalText([]byte(rev)) == nil {
		if s := p.opened(id); s != nil {
			return id, s.Close()
		}
	}
	id, known, learn := p.named(ctx, rev)
	if known {
		return id, nil
	}
	id, err := p.Resolve(ctx, absolute(rev, p.db.opts.Now()))
	if err == nil {
		learn(id)
	}
	return id, err
}

// unusedTime is how long a peer without an open version keeps the files of packs.
var unusedTime = time.Second // tests change it

// at opens a version, which the source keeps until the snapshot is closed, and for a moment after that, so that a program that opens
// the same version again sends no request. The peer gives all files back after a while without an open version.
func (p *peer) at(ctx context.Context, rev string) (*Snapshot, error) {
	if err := p.db.check(); err != nil {
		return nil, err
	}
	var id CommitID
	known, learn := id.UnmarshalText([]byte(rev)) == nil, func(CommitID) {}
	if !known {
		id, known, learn = p.named(ctx, rev)
	}
	if known {
		if s := p.opened(id); s != nil {
			return s, nil
		}
	}
	p.releaseKept() // a program that goes through versions has one open at a time
	l, err := p.Lease(ctx, absolute(rev, p.db.opts.Now()))
	if err != nil {
		return nil, err
	}
	learn(l.Commit().ID)
	p.mu.Lock()
	defer p.mu.Unlock()
	v := &openVersion{Lease: l}
	p.open[l.Commit().ID] = v
	return p.share(v), nil
}

// opened returns a version that is open already, else nil. It sends no request.
func (p *peer) opened(id CommitID) *Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.open[id]
	if v == nil || v.Check() != nil {
		return nil
	}
	return p.share(v)
}

// share makes a snapshot of an open version. The caller holds mu.
func (p *peer) share(v *openVersion) *Snapshot {
	v.snapshots++
	if p.kept == v {
		p.kept = nil
	}
	c := v.Commit()
	unhold := p.db.hold(c.Root)
	return &Snapshot{db: p.db, commit: c, kept: v.Check, close: func() {
		unhold()
		p.mu.Lock()
		v.snapshots--
		var over *openVersion
		if v.snapshots == 0 {
			over = v
			if p.open[c.ID] == v && !p.closed && v.Check() == nil {
				over, p.kept = p.kept, v
			}
			if over != nil && p.open[over.Commit().ID] == over {
				delete(p.open, over.Commit().ID)
			}
			if !p.closed {
				p.unused.Reset(unusedTime)
			}
		}
		p.mu.Unlock()
		if over != nil {
			over.Release()
		}
	}}
}

func (p *peer) snapshot(ctx context.Context, id CommitID) (*Snapshot, error) {
	s, err := p.at(ctx, id.String())
	if err == nil && s.commit.ID != id { // a branch has this name
		err = errors.Join(fmt.Errorf("commit %v: %w", id, ErrNoRef), s.Close())
	}
	return s, err
}

// idle reports whether no version is open.
func (p *peer) idle() bool {
	p.db.mu.Lock()
	defer p.db.mu.Unlock()
	return len(p.db.roots) == 0
}

// answerTime is how long calls without a context wait for the other process.
var answerTime = 10 * time.Second // tests change it

// manyAncestors is the greatest number of commits in one request.
const manyAncestors = 512

// ancestors reads a commit, and puts the commits before it that a search will want next into
// the cache: one commit at first, four times as many with each answer that was followed. expired is
// when the commit has expired, nil if it has not.
func (p *peer) ancestors(ctx context.Context, id CommitID) (first *Commit, expired *int64, err error) {
	p.mu.Lock()
	n, age := 1, p.age
	for i := range p.answers {
		n = max(n, p.answers[i].next[id])
	}
	p.mu.Unlock()
	list, err := p.Ancestors(ctx, id, n)
	if err == nil && (len(list) == 0 || list[0].ID != id) {
		err = fmt.Errorf("txn: the answer about commit %v begins with another commit", id)
	}
	if err != nil {
		return nil, nil, err
	}
	a := ancestry{first: id, expired: make(map[CommitID]*int64, len(list)), read: time.Now(), next: map[CommitID]int{}}
	for i := range list {
		a.expired[list[i].ID] = list[i].Expired
	}
	decode := func(i int) (*Commit, error) {
		c, err := catalog.DecodeCommit(list[i].ID, list[i].Record)
		if err != nil {
			return nil, err
		}
		for _, parent := range c.Parents {
			if _, ok := a.expired[parent]; !ok {
				a.next[parent] = min(4*n, manyAncestors)
			}
		}
		return c, nil
	}
	// The last commit tells where the next answer begins, which comes while this one is decoded.
	if _, err := decode(len(list) - 1); err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	if p.age != age {
		a.read = time.Time{}
	}
	copy(p.answers[1:], p.answers[:])
	p.answers[0] = a
	ahead := p.ahead()
	p.mu.Unlock()
	p.ask(ctx, ahead)
	a.next = map[CommitID]int{}
	for i := range list {
		c, err := decode(i)
		if err != nil {
			return nil, nil, err
		}
		if i == 0 {
			first = c
			continue
		}
		p.db.commits.Load().Put(c.ID, c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.answers {
		if p.answers[i].first == id {
			p.answers[i].next = a.next
		}
	}
	return first, list[0].Expired, nil
}

func (p *peer) readCommit(ctx context.Context, id CommitID) (*Commit, error) {
	c, _, err := p.ancestors(ctx, id)
	return c, err
}

// answersAhead is how many long answers a search has asked for beyond the one that it reads:
// the other process prepares one while this process decodes another.
const answersAhead = 2

// reached notes that a search has come to a commit.
func (p *peer) reached(ctx context.Context, id CommitID) {
	var ahead []CommitID
	p.mu.Lock()
	for i := range p.answers {
		if a := &p.answers[i]; a.first == id && !a.reached {
			a.reached = true
			ahead = append(ahead, p.ahead()...)
		}
	}
	p.mu.Unlock()
	p.ask(ctx, ahead)
}

// ahead returns where the answer behind the last one begins, if that was long and a search is near it,
// once. The caller holds mu.
func (p *peer) ahead() []CommitID {
	near := slices.ContainsFunc(p.answers[:answersAhead], func(a ancestry) bool { return a.reached })
	a := &p.answers[0]
	if !near || a.asked || len(a.expired) < manyAncestors/4 || len(a.next) != 1 {
		return nil
	}
	a.asked = true
	return slices.Collect(maps.Keys(a.next))
}

// ask asks for the answers that begin with some commits, and does not wait for them.
func (p *peer) ask(ctx context.Context, ahead []CommitID) {
	for _, next := range ahead {
		go func() {
			_, _ = p.db.commits.Load().Get(ctx, next, func() (*Commit, error) { // an error comes again
				return p.readCommit(ctx, next)
			})
		}()
	}
}

// expiryTime is how long a peer believes an answer about the expiry of versions. A recall ends
// it. A pull may bring the content of an expired version back without a recall.
const expiryTime = time.Second

func (p *peer) expired(ctx context.Context, id CommitID) (bool, time.Time, error) {
	p.mu.Lock()
	a := &p.answers[max(slices.IndexFunc(p.answers[:], func(a ancestry) bool {
		_, ok := a.expired[id]
		return ok
	}), 0)]
	at, ok := a.expired[id]
	old := time.Since(a.read) > expiryTime
	p.mu.Unlock()
	if !ok || old {
		var err error
		if _, at, err = p.ancestors(ctx, id); err != nil {
			return false, time.Time{}, err
		}
	}
	if at == nil {
		return false, time.Time{}, nil
	}
	return true, time.Unix(0, *at).UTC(), nil
}

// gone is expired: a peer is not told when versions expire.
func (p *peer) gone(ctx context.Context, id CommitID) (bool, time.Time, error) {
	return p.expired(ctx, id)
}

// sourceRecords are the records of a source.
type sourceRecords struct {
	ctx  context.Context
	src  Source
	kept uint64 // see RecordRange
}

// Get implements [catalog.Getter].
func (r sourceRecords) Get(s index.Space, key []byte) ([]byte, error) {
	list, _, err := r.src.Records(r.ctx, RecordRange{Space: byte(s), From: key, To: append(slices.Clip(key), 0), Kept: r.kept})
	if err == nil && len(list) == 0 {
		err = index.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return list[0].Value, nil
}

// Scan implements [catalog.Scanner]. Each answer of the source is as of another moment.
func (r sourceRecords) Scan(s index.Space, from, to []byte, reverse bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		of := RecordRange{Space: byte(s), From: from, To: to, Reverse: reverse, Kept: r.kept}
		for more := true; more; {
			var list []Record
			var err error
			if list, more, err = r.src.Records(r.ctx, of); err == nil && more && len(list) == 0 {
				err = errors.New("txn: an answer without records says that there are more")
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, rec := range list {
				if !yield(rec, nil) {
					return
				}
			}
			if !more {
				return
			}
			if last := list[len(list)-1].Key; reverse {
				of.To = last
			} else {
				of.From = append(slices.Clip(last), 0)
			}
		}
	}
}

func (p *peer) view(ctx context.Context, a pack.Address, off, n uint64, all bool, sum digest.Sum, fn func([]byte) error) error {
	away := p.db.away
	if away == nil {
		return p.viewAny(ctx, a, off, n, all, fn)
	}
	// The process that has the database open does not compare: it does not know the sum.
	compare := func(b []byte) error { return away.Right(false, a, b, sum) }
	if n < a.Length && !away.Known(false, a, sum) {
		if err := p.viewAny(ctx, a, 0, a.Length, all, compare); err != nil {
			return err
		}
	}
	return p.viewAny(ctx, a, off, n, all, func(b []byte) error {
		if uint64(len(b)) == a.Length {
			if err := compare(b); err != nil {
				return err
			}
		}
		return fn(b)
	})
}

// viewAny reads a payload of the files that are lent. The source sends payloads whose files cannot be lent, and those of a lazy clone that
// left the file which was lent.
func (p *peer) viewAny(ctx context.Context, a pack.Address, off, n uint64, all bool, fn func([]byte) error) error {
	view := p.db.packs.View
	if all {
		view = p.db.packs.Reread
	}
	err := view(ctx, a, off, n, fn)
	if !errors.Is(err, pack.ErrNotLent) && (p.db.away == nil || !errors.Is(err, kv.ErrCorrupt)) {
		return err
	}
	if err := kv.CheckHeld(int64(n)); err != nil {
		return err
	}
	b := make([]byte, 0, n)
	for at := uint64(0); at < n; at = uint64(len(b)) {
		part, err := p.Payload(ctx, a, off+at, n-at)
		if err == nil && (len(part) == 0 || uint64(len(part)) > n-at) {
			err = fmt.Errorf("txn: %d bytes came where %d were asked for", len(part), n-at)
		}
		if err != nil {
			return err
		}
		b = append(b, part...)
	}
	return fn(b)
}

// FarSource is an optional interface of a [Source]. A peer of a lazy clone then asks for up to PagesAtOnce pages with one
// [Source].Pages, because pages that are away take long.
type FarSource interface{ PagesAtOnce() int }

// pagesOf are the pages of a source.
func (db *DB) pagesOf(src Source) tree.Pages {
	if far, ok := src.(FarSource); ok && db.away != nil {
		return farPages{sourcePages{src}, min(far.PagesAtOnce(), tree.MaxFar)}
	}
	return sourcePages{src}
}

// farPages are pages of a source of which some are away.
type farPages struct {
	sourcePages
	most int
}

func (p farPages) Far() int { return p.most }

// sourcePages are the committed pages of a source, or those of a session in another process.
type sourcePages struct {
	src interface {
		Pages(ctx context.Context, q PageQuery) ([][]byte, error)
	}
}

var (
	_ tree.Pages       = sourcePages{}
	_ tree.PageBatcher = sourcePages{}
)

func (p sourcePages) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	return onePage(p.src.Pages(ctx, PageQuery{Names: []PageName{name}}))
}

func (p sourcePages) GetPages(ctx context.Context, names []tree.Name) ([][]byte, error) {
	return p.src.Pages(ctx, PageQuery{Names: names})
}

func (p sourcePages) GetPath(ctx context.Context, name tree.Name, key []byte) ([][]byte, error) {
	return p.src.Pages(ctx, PageQuery{Names: []PageName{name}, Key: key})
}

func (p sourcePages) PutPage(context.Context, tree.Name, []byte) error {
	return errors.New("txn: bug: page written by a peer")
}
