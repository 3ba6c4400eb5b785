package txn

import (
	"context"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// batchPages puts pages into the index in batches.
type batchPages struct {
	indexPages
	b *index.Batch
}

func (p *batchPages) PutPage(_ context.Context, name tree.Name, page []byte) error {
	p.b.PutPage(name, page)
	if p.b.Len() < 16<<20 {
		return nil
	}
	defer p.b.Close()
	err := p.b.Commit(false)
	p.b = p.idx.NewBatch()
	return err
}

// putChunks puts the map of an array of native chunks into an index, each step
// bytes behind the one before. No payload is read by a collection, so that there
// are none.
func putChunks(tb testing.TB, db *DB, id tree.PackID, chunks int, step uint64) tree.Root {
	tb.Helper()
	pages := &batchPages{db.committed(), db.idx.NewBatch()}
	b := db.space.Tree.With(pages).NewBuilder(bg)
	for i := range chunks {
		key := binary.BigEndian.AppendUint32(nil, uint32(i))
		v := tree.Value{Kind: tree.KindNative, Sum: digest.Of(key), Pack: id, Offset: 200 + uint64(i)*step, Length: 3000}
		must.Do(tb, b.Add(&tree.Entry{Key: key, Value: v}))
	}
	root := must.Get(b.Finish())(tb)
	must.Do(tb, pages.b.Commit(true))
	pages.b.Close()
	return root
}

// putCommit puts a commit with a root into an index.
func putCommit(tb testing.TB, db *DB, root tree.Root) {
	tb.Helper()
	c := &Commit{Root: root}
	rec := catalog.SealCommit(c)
	b := db.idx.NewBatch()
	defer b.Close()
	catalog.PutCommit(b, c.ID, rec)
	must.Do(tb, b.Commit(true))
}

// BenchmarkGC collects in an index of native chunks. With payloads in a row
// nearly nothing is to be kept in mind; with gaps each chunk is a range.
func BenchmarkGC(b *testing.B) {
	const row, gaps = 3100 / 8 * 8, 4096
	for _, c := range []struct {
		name       string
		live, dead int
		step       uint64
	}{
		{"1M in a row", 1e6, 0, row}, {"10M in a row", 1e7, 0, row}, {"10M with gaps", 1e7, 0, gaps},
		{"5M live with gaps, 5M garbage", 5e6, 5e6, gaps},
	} {
		b.Run(c.name, func(b *testing.B) {
			if testing.Short() && c.live > 1e6 {
				b.Skip("takes long to make")
			}
			for range b.N {
				b.StopTimer()
				db, err := Create(b.TempDir()+"/db", nil)
				must.Do(b, err)
				putCommit(b, db, putChunks(b, db, tree.PackID{1}, c.live, c.step))
				if c.dead > 0 {
					putChunks(b, db, tree.PackID{2}, c.dead, c.step)
				}
				must.Do(b, db.idx.Flush())
				runtime.GC()
				cpu := cpuTime()
				b.StartTimer()
				peak := runGC(b, db, c.dead)
				b.StopTimer()
				b.ReportMetric((cpuTime() - cpu).Seconds(), "cpu-s/op")
				b.ReportMetric(float64(peak)/float64(c.live+c.dead), "B/chunk")
				must.Do(b, db.Close())
			}
		})
	}
}

// runGC collects once and returns how much memory it took, as far as that is
// seen from time to time.
func runGC(b *testing.B, db *DB, dead int) (peak uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	r := must.Get(db.GC(bg, GCOptions{DryRun: dead == 0, Progress: func(GCProgress) {
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc-min(before, m.HeapAlloc))
	}}))(b)
	if (r.DeletedPages > 0) != (dead > 0) {
		b.Fatalf("%d pages were deleted", r.DeletedPages)
	}
	return peak
}
