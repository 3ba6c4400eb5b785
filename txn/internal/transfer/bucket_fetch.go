package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// FromBucket is the source of a transfer from a bucket. Pages go to the index of the destination as whole bundles, where
// nothing leads to them yet, because a request for each page takes too long. all says that the whole history and most pages will be needed.
func FromBucket(d *depot.Depot, name string, idx *index.Index, all bool) *From {
	b := &bucketSource{d: d, name: name, idx: idx, all: all, records: map[catalog.CommitID][]byte{}, single: map[depot.Name]int{}}
	if all {
		b.beside = len(d.Manifest().Bundles)
	}
	return &From{Dir: name, Tree: tree.New(b, reach.Uncached), SourceDB: b, bucket: b}
}

// bucketSource implements [SourceDB] and [tree.Pages].
type bucketSource struct {
	d    *depot.Depot
	name string
	idx  *index.Index
	all  bool

	busy    ctxlock.Lock // for the maps below, and so that what is missing is fetched once
	records map[catalog.CommitID][]byte
	held    int // bytes of records
	beside  int // bundles whose records come with those of the next one
	bare    map[catalog.CommitID]bool
	single  map[depot.Name]int // pages that were fetched one by one
}

func (b *bucketSource) Keep(ctx context.Context) (*Kept, error) {
	k := &Kept{Ctx: ctx, Release: func() {}, Heads: map[string]catalog.CommitID{}, Expired: map[catalog.CommitID]bool{}}
	for name, id := range b.d.Manifest().Refs {
		short, head := strings.CutPrefix(name, catalog.HeadPrefix)
		tag := false
		if !head {
			short, tag = strings.CutPrefix(name, catalog.TagPrefix)
		}
		if !head && !tag || catalog.CheckRefName(short) != nil {
			return nil, catalog.Corrupt("%s: the manifest has the ref %q, which no branch or tag can have", b.name, name)
		}
		k.Heads[name] = catalog.CommitID(id)
	}
	err := b.d.Bare(ctx, func(id depot.ID) { k.Expired[catalog.CommitID(id)] = true })
	b.bare = k.Expired
	return k, err
}

func (b *bucketSource) Lookup(ctx context.Context, id catalog.CommitID) (*catalog.Commit, error) {
	if err := b.busy.Lock(ctx); err != nil {
		return nil, err
	}
	defer b.busy.Unlock()
	if b.records[id] == nil {
		list, err := b.d.CommitsBeside(ctx, depot.ID(id), b.beside)
		b.beside = min(2*b.beside+1, 1<<16)
		if errors.Is(err, depot.ErrLeft) {
			err = fmt.Errorf("commit %v: %w", id, catalog.ErrNoRef)
		}
		if err != nil {
			return nil, err
		}
		if b.held > maxRecords {
			clear(b.records)
			b.held = 0
		}
		for _, rec := range list {
			b.records[catalog.CommitID(depot.NameOf(rec))] = rec
			b.held += len(rec)
		}
	}
	return catalog.DecodeCommit(id, b.records[id])
}

func (b *bucketSource) Version(ctx context.Context, id catalog.CommitID) (*catalog.Commit, error) {
	c, err := b.Lookup(ctx, id)
	if err == nil && b.bare[id] {
		return nil, fmt.Errorf("commit %v: %w", id, catalog.ErrExpired)
	}
	return c, err
}

// Pages are those that the transfer has put into the index already.
func (b *bucketSource) Pages(ctx context.Context, names []tree.Name) iter.Seq2[index.Page, error] {
	return func(yield func(index.Page, error) bool) {
		for _, name := range names {
			p, err := b.GetPage(ctx, name)
			if !yield(index.Page{Name: name, Bytes: p}, err) || err != nil {
				return
			}
		}
	}
}

func (b *bucketSource) PutPage(context.Context, tree.Name, []byte) error {
	return errors.New("txn: bug: page written to a bucket by name")
}

const (
	// smallBundle is the size up to which a bundle is fetched whole at once, and singlePages how many pages of
	// a larger one are fetched one by one before that.
	smallBundle = 1 << 20
	singlePages = 8
	// maxRecords bounds the bytes of commits that are held, but for those of the last bundle.
	maxRecords = 256 << 20
)

func (b *bucketSource) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	page, err := b.idx.GetPage(ctx, name)
	if !errors.Is(err, index.ErrNotFound) {
		return page, err
	}
	if err := b.busy.Lock(ctx); err != nil {
		return nil, err
	}
	defer b.busy.Unlock()
	info, err := b.d.PageBundle(ctx, depot.ID(name))
	if err != nil {
		return nil, err
	}
	if b.single[info.Name]++; b.all || info.Size <= smallBundle || b.single[info.Name] > singlePages {
		err := b.bundle(ctx, &info)
		if err == nil {
			page, err = b.idx.GetPage(ctx, name)
		}
		if err == nil || ctx.Err() != nil {
			return page, err
		}
		// The bundle is damaged, or was merged into another.
	}
	list, err := b.d.Pages(ctx, []depot.ID{depot.ID(name)})
	if err != nil {
		return nil, err
	}
	batch := b.idx.NewBatch()
	defer batch.Close()
	batch.PutPage(name, list[0])
	return list[0], batch.Commit(false)
}

// fetchPages puts the pages into the index that the walk had no reason to read.
func (t *Transfer) fetchPages(ctx context.Context) error {
	for _, err := range t.From.Pages(ctx, t.Found.Pages) {
		if err != nil {
			return err
		}
	}
	return nil
}

// bundle puts the sound pages of a bundle into the index.
func (b *bucketSource) bundle(ctx context.Context, info *depot.BundleInfo) error {
	w, err := b.d.Bundle(ctx, info)
	if err != nil {
		return err
	}
	var pages []index.Page
	for p, err := range w.Pages() {
		if err == nil {
			pages = append(pages, index.Page{Name: digest.Of(p.Data), Bytes: p.Data})
		}
	}
	if info.Size > smallBundle {
		slices.SortFunc(pages, func(a, b index.Page) int { return bytes.Compare(a.Name[:], b.Name[:]) })
		return b.idx.Ingest(func(yield func(index.Page, error) bool) {
			for _, p := range pages {
				if !yield(p, nil) {
					return
				}
			}
		})
	}
	batch := b.idx.NewBatch()
	defer batch.Close()
	for _, p := range pages {
		batch.PutPage(p.Name, p.Bytes)
	}
	return batch.Commit(false)
}

func (b *bucketSource) RightPayload(ctx context.Context, a pack.Address, sum digest.Sum) ([]byte, error) {
	if err := kv.CheckHeld(int64(a.Length)); err != nil {
		return nil, err
	}
	out := make([]byte, a.Length)
	p, err := newPackReader(ctx, b.d, a.Pack, []pack.Extent{{From: a.Offset, To: a.Offset + a.Length}})
	if err == nil {
		_, err = p.ReadAt(out, int64(a.Offset))
		p.close()
	}
	if err != nil {
		return nil, err
	}
	return out, care.CompareSum(a, out, sum)
}

// Problems finds none: the versions that have a damaged payload are not looked for over the network.
func (b *bucketSource) Problems(context.Context, care.Damages) ([]care.Problem, error) {
	return nil, nil
}

// ImportFrom copies the records of a pack that a depot has and that are needed.
func ImportFrom(ctx context.Context, d *depot.Depot, to *pack.Store, id pack.ID, need []pack.Extent, progress func(pack.Imported)) (pack.Info, pack.Imported, error) {
	var open []*packReader
	defer func() {
		for _, p := range open {
			p.close()
		}
	}()
	return to.ImportFrom(ctx, func(need []pack.Extent) (io.ReaderAt, uint64, error) {
		p, err := newPackReader(ctx, d, id, need)
		if err != nil {
			return nil, 0, err
		}
		open = append(open, p)
		return p, p.size, nil
	}, id, need, progress)
}

// Row imports records of a pack that a depot has, one step behind the other. While one step is written, the bytes of the next ones are
// on the way. Close it when done.
type Row struct{ p *packReader }

// NewRow begins a row.
func NewRow(ctx context.Context, d *depot.Depot, id pack.ID) *Row {
	return &Row{openPackReader(ctx, d, id)}
}

// Ask has ranges read ahead, each from one extent of the depot, but for what lies before the end of those that were asked for.
func (r *Row) Ask(need []pack.Extent) { r.p.add(need) }

// New returns the part of ranges that was not asked for.
func (r *Row) New(need []pack.Extent) []pack.Extent {
	return pack.Subtract(need, []pack.Extent{{To: r.p.asked}})
}

// Import copies the records that lie in step whole. The next step begins where the last of them ends. The one over the end of
// step is known if it ends before size.
func (r *Row) Import(ctx context.Context, to *pack.Store, step pack.Extent, size uint64) (pack.Imported, error) {
	r.p.size = max(r.p.asked, size)
	_, n, err := to.ImportFrom(ctx, func([]pack.Extent) (io.ReaderAt, uint64, error) { return r.p, r.p.size, nil }, r.p.id, []pack.Extent{step}, nil)
	return n, err
}

// Close ends the requests that are on the way.
func (r *Row) Close() { r.p.close() }

const (
	// readBytes is how much of a pack is read at a time, and readAhead how many such pieces are on the way.
	readBytes = 8 << 20
	readAhead = 4
	// frontBytes is more than the header of a record takes before its payload, but for its checksums.
	frontBytes = 80 << 10
)

// packReader reads the records of a pack that are needed, from front to back and with requests ahead. Where
// nothing is needed, or the bucket has nothing, it reads zeros. Close it when done.
type packReader struct {
	ctx  context.Context
	stop context.CancelFunc
	sent sync.WaitGroup // requests
	d    *depot.Depot
	id   pack.ID
	size uint64
	// asked is where what is read ends. Up to size there are zeros.
	asked uint64

	mu     sync.Mutex
	pieces []*packPiece // ascending, apart
}

// packPiece is what is asked for at once.
type packPiece struct {
	from, to uint64
	parts    []depot.Part
	came     chan struct{} // nil if it was not asked for, or is no longer needed
	data     [][]byte
	err      error
}

func openPackReader(ctx context.Context, d *depot.Depot, id pack.ID) *packReader {
	p := &packReader{d: d, id: id}
	p.ctx, p.stop = context.WithCancel(ctx)
	return p
}

func newPackReader(ctx context.Context, d *depot.Depot, id pack.ID, need []pack.Extent) (*packReader, error) {
	p := openPackReader(ctx, d, id)
	for _, e := range need {
		front := min(e.From-p.size, frontBytes+(e.To-e.From)>>14) // checksums are a 16,384th
		list, err := d.Extents(ctx, id, e.From-front, e.To)
		if err != nil {
			p.close()
			return nil, err
		}
		// A record lies in one extent, with its front.
		for _, x := range list {
			if x.To > e.From {
				p.add([]pack.Extent{{From: x.From, To: x.To}})
			}
		}
		p.size = max(p.size, e.To)
		p.asked = p.size
	}
	return p, nil
}

// add has ranges read, too, each from one extent, but for what lies before the end of those that it has.
func (p *packReader) add(list []pack.Extent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range list {
		for from := max(e.From, p.asked); from < e.To; {
			last := len(p.pieces) - 1
			if last < 0 || p.pieces[last].came != nil || from >= p.pieces[last].from+readBytes {
				p.pieces = append(p.pieces, &packPiece{from: from})
				last++
			}
			piece := p.pieces[last]
			piece.to = min(e.To, piece.from+readBytes)
			piece.parts = append(piece.parts, depot.Part{Pack: p.id, From: from, To: piece.to})
			from = piece.to
		}
		p.asked = max(p.asked, e.To)
	}
}

// close ends the requests that are on the way.
func (p *packReader) close() {
	p.stop()
	p.sent.Wait()
}

// ReadAt implements [io.ReaderAt].
func (p *packReader) ReadAt(b []byte, off int64) (n int, err error) {
	if uint64(off) >= p.size {
		return 0, io.EOF
	}
	at, end := uint64(off), uint64(off)+uint64(len(b))
	if end > p.size {
		b, err = b[:p.size-at], io.EOF
	}
	clear(b)
	for i := sort.Search(len(p.pieces), func(i int) bool { return p.pieces[i].to > at }); i < len(p.pieces) && p.pieces[i].from < end; i++ {
		if err := p.copy(b, at, i); err != nil {
			return 0, err
		}
	}
	return len(b), err
}

// copy copies what a piece has of the bytes at an offset.
func (p *packReader) copy(b []byte, at uint64, i int) error {
	came := p.ask(i)
	select {
	case <-came:
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
	piece := p.pieces[i]
	if piece.err != nil {
		return piece.err
	}
	for k, e := range piece.parts {
		from, to := max(e.From, at), min(e.To, at+uint64(len(b)))
		if from < to {
			copy(b[from-at:to-at], piece.data[k][from-e.From:])
		}
	}
	return nil
}

// ask has a piece fetched, and the next ones. It forgets those that end more than readBytes before: imports look ahead less.
func (p *packReader) ask(i int) (came <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, old := range p.pieces[:i] {
		if old.came == nil || old.to+readBytes > p.pieces[i].from {
			continue
		}
		select {
		case <-old.came:
			old.came, old.data = nil, nil
		default:
		}
	}
	for k := i; k < min(i+readAhead, len(p.pieces)); k++ {
		piece := p.pieces[k]
		if piece.came != nil {
			continue
		}
		piece.came = make(chan struct{})
		p.sent.Go(func() {
			defer close(piece.came)
			piece.data, piece.err = p.d.Payloads(p.ctx, piece.parts)
		})
	}
	return p.pieces[i].came
}

// Stage carries what a pull or fetch needs of a bucket into a new database, whose To.Publish and To.Write are. Plan, bases and
// versions that are known are those of the database that pulls from it afterwards: the new one has the rest alone.
func Stage(ctx context.Context, from *From, to *To, op string, o Options) (*Report, bool, error) {
	p := &pushing{op: op}
	empty := false
	r, err := run(ctx, from, to, o, func(ctx context.Context, t *Transfer) error {
		t.edges = map[catalog.CommitID]*catalog.Commit{}
		err := p.plan(ctx, t)
		if err == nil && len(t.Records)+len(p.move) == 0 {
			empty, err = true, errPlanned
		}
		return err
	}, p.stage)
	if err == errPlanned {
		return r, empty || o.DryRun, nil
	}
	return r, false, err
}

// stage publishes the refs of the bucket, and the commits at which the history of the other database begins.
func (p *pushing) stage(ctx context.Context, t *Transfer) error {
	return t.publish(ctx, func(c *LastBatch) error {
		for id, commit := range t.edges {
			catalog.Commits.Put(c.Batch, commit)
			catalog.Expired.Put(c.Batch, catalog.Expiry{Commit: id, Time: catalog.NotCopied})
		}
		for _, r := range t.Records {
			if r.old { // in the other database
				catalog.Commits.Put(c.Batch, r.Commit)
			}
		}
		for ref, id := range t.heads {
			c.Moves = append(c.Moves, catalog.RefMove{Ref: ref, New: id, Time: t.to.Now().UTC(), Author: t.to.Author, Op: p.op})
		}
		return nil
	})
}
