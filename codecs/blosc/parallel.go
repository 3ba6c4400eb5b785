package blosc

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/internal/together"
)

// Blocks of a long chunk are decoded by several goroutines, as long as other calls do not
// decode long chunks: a reader of many chunks runs a call for each.

// share is the least that is worth a goroutine of its own: one that sleeps needs some
// 50 µs to begin.
func (i Info) share() int64 {
	if i.code == codeZlib || i.code == codeZstd {
		return 256 << 10
	}
	return 1 << 20
}

// maxWorkers bounds the goroutines for one chunk: more would wait for memory.
const maxWorkers = 16

// processors counts goroutines that decode long chunks.
type processors struct{ atomic.Int32 }

var busy processors

// take reserves up to n processors for a call, and one always. The caller gives
// them back.
func (p *processors) take(n int32) int32 {
	for {
		used := p.Load()
		got := max(1, min(n, int32(runtime.GOMAXPROCS(0))-used))
		if p.CompareAndSwap(used, used+got) {
			return got
		}
	}
}

// inParallel decodes the blocks from first up to end by several goroutines, one of them the
// caller's. The error is the error of the first damaged block. A panic of one of them, such as
// the fault of a page that cannot be read, becomes a panic of the caller when all have ended.
func (p part) inParallel(workers int, first, end int64) error {
	var (
		next   atomic.Int64
		wg     together.Group
		mu     sync.Mutex
		failed = end
		err    error
	)
	defer wg.Wait()
	next.Store(first)
	work := func() {
		s := scratchPool.Get().(*scratch)
		defer scratchPool.Put(s)
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // as the caller, who may decode a mapped file
		for k := next.Add(1) - 1; k < end; k = next.Add(1) - 1 {
			if e := p.block(k, s); e != nil {
				next.Store(end) // blocks before this one are being decoded or are done
				mu.Lock()
				if k < failed {
					failed, err = k, e
				}
				mu.Unlock()
			}
		}
	}
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return err
}
