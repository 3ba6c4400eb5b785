package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/block/blockkind"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// pageTable is a table of Pebble whose pages are read past it: of each block it
// knows where it lies and the greatest name in it, as far as eight bytes tell, and
// it has the filter that tells most names that are not in it.
type pageTable struct {
	number      uint64
	first, last uint64 // heads of the names that may be in it
	r           *sstable.Reader
	schema      *colblk.KeySchema
	policy      pebble.FilterPolicy
	filter      []byte
	blocks      []pageBlock
	use         usage
}

// pageBlock is a block of a table. at holds its offset and, in the lower 24 bits,
// its length.
type pageBlock struct {
	head, at uint64
}

const (
	maxBlockLength = 1<<24 - 1
	maxBlockOffset = 1<<40 - 1
)

// errOtherTable is of a table whose blocks cannot be read past Pebble.
var errOtherTable = errors.New("index: not a table of plain pages")

// head is what sorts names of pages, as far as eight bytes do.
func head(name []byte) uint64 {
	var b [8]byte
	copy(b[:], name)
	return binary.BigEndian.Uint64(b[:])
}

// headOf is the head of a stored key among those of pages: keys of spaces before
// and behind have the least and the greatest.
func headOf(key []byte) uint64 {
	switch {
	case len(key) == 0 || key[0] < byte(SpacePage):
		return 0
	case key[0] > byte(SpacePage):
		return ^uint64(0)
	}
	return head(key[1:])
}

// openPageTable reads where the blocks of a table lie.
func openPageTable(fs vfs.FS, path string, o *pebble.Options, most int) (_ *pageTable, err error) {
	f, err := fs.Open(path, vfs.RandomReadsOption)
	if err != nil {
		return nil, err
	}
	in, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Of a table that it does not know Pebble's reader panics.
	defer func() {
		if r := recover(); r != nil {
			err = errors.Join(fmt.Errorf("%w: %v", errOtherTable, r), in.Close())
		}
	}()
	r, err := sstable.NewReader(context.Background(), in, o.MakeReaderOptions())
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	t := &pageTable{r: r, schema: o.KeySchemas[o.KeySchema], policy: o.Levels[0].FilterPolicy}
	t.use.init()
	if err := t.load(most); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return t, nil
}

// load reads what is known of the table, if it has at most so many blocks.
func (t *pageTable) load(most int) error {
	format, err := t.r.TableFormat()
	if err != nil {
		return err
	}
	// What a value points to elsewhere is for Pebble to find.
	if !format.BlockColumnar() || t.schema == nil || t.r.Attributes.Intersects(sstable.AttributeValueBlocks|sstable.AttributeBlobValues) {
		return errOtherTable
	}
	layout, err := t.r.Layout()
	if err != nil {
		return err
	}
	if len(layout.Data) > most || len(layout.Filter) != 1 || layout.Filter[0].Name != "fullfilter."+t.policy.Name() {
		return errOtherTable
	}
	err = t.read(layout.Filter[0].Handle, blockkind.Filter, nil, func(h block.BufferHandle) error {
		t.filter = bytes.Clone(h.BlockData())
		return nil
	})
	t.blocks = make([]pageBlock, 0, len(layout.Data))
	for _, at := range layout.Index {
		if err == nil {
			err = t.read(at, blockkind.SSTableIndex, colblk.InitIndexBlockMetadata, t.addBlocks)
		}
	}
	return err
}

// read lends a block to fn.
func (t *pageTable) read(at block.Handle, kind block.Kind, init func(*block.Metadata, []byte) error, fn func(block.BufferHandle) error) error {
	if init == nil {
		init = func(*block.Metadata, []byte) error { return nil }
	}
	h, err := t.r.BlockReader().Read(context.Background(), block.NoReadEnv, nil, at, kind, init)
	if err != nil {
		return err
	}
	defer h.Release()
	return fn(h)
}

// addBlocks adds the blocks that a block of the index names.
func (t *pageTable) addBlocks(h block.BufferHandle) error {
	var it colblk.IndexIter
	if err := it.Init(pebble.DefaultComparer, h.BlockData(), block.NoTransforms); err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		b, err := it.BlockHandleWithProperties()
		if err == nil {
			err = t.addBlock(it.Separator(), b.Handle)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addBlock adds the next block, whose keys are not above the separator.
func (t *pageTable) addBlock(separator []byte, h block.Handle) error {
	if h.Length > maxBlockLength || h.Offset > maxBlockOffset {
		return errOtherTable
	}
	b := pageBlock{head: headOf(separator), at: h.Offset<<24 | h.Length}
	n := len(t.blocks)
	switch {
	case b.head == 0: // none of pages, or none that would be found
	case n > 0 && t.blocks[n-1].head == ^uint64(0): // pages ended before
	default:
		t.blocks = append(t.blocks, b)
	}
	return nil
}

// view calls fn with the page and tells whether it did: not if the page is not
// there, or cannot be read.
func (t *pageTable) view(r *pageReader, name digest.Sum, fn func([]byte) error) (done bool, err error) {
	copy(r.key[1:], name[:])
	at, _ := slices.BinarySearchFunc(t.blocks, head(name[:]), func(b pageBlock, h uint64) int { return cmp.Compare(b.head, h) })
	if at == len(t.blocks) || !t.policy.MayContain(pebble.TableFilter, t.filter, r.key[:]) {
		return false, nil
	}
	v, ok := r.find(t, block.Handle{Offset: t.blocks[at].at >> 24, Length: t.blocks[at].at & maxBlockLength})
	if !ok {
		return false, nil
	}
	defer r.it.Close()
	return true, fn(v)
}

// close waits for reads and closes the file. It may be called again.
func (t *pageTable) close() {
	if t.use.close() {
		t.use.wait()
		_ = t.r.Close() // it was only read
	}
}

// pageReader is what one read needs, used again and again: the buffer of a block
// is not allocated anew. It belongs to one goroutine at a time.
type pageReader struct {
	pool block.BufferPool
	it   colblk.DataBlockIter
	key  [1 + digest.Size]byte
	init func(*block.Metadata, []byte) error
}

func newPageReader(schema *colblk.KeySchema) *pageReader {
	r := &pageReader{init: func(m *block.Metadata, data []byte) error {
		return colblk.InitDataBlockMetadata(schema, m, data)
	}}
	r.pool.Init(1)
	r.key[0] = byte(SpacePage)
	// Values that are elsewhere are in tables that openPageTable refuses.
	r.it.InitOnce(schema, pebble.DefaultComparer, nil)
	return r
}

// find reads a block and looks for r.key in it. The page is valid until r.it is
// closed, which is to be done if it was found.
func (r *pageReader) find(t *pageTable, at block.Handle) (page []byte, ok bool) {
	h, err := t.r.BlockReader().Read(context.Background(), block.ReadEnv{BufferPool: &r.pool}, nil, at, blockkind.SSTableData, r.init)
	if err != nil {
		return nil, false
	}
	if err := r.it.InitHandle(pebble.DefaultComparer, h, block.NoTransforms); err != nil {
		h.Release()
		return nil, false
	}
	if kv := r.it.SeekGE(r.key[:], 0); kv != nil && isSet(kv.K.Kind()) && string(kv.K.UserKey) == string(r.key[:]) {
		if v, _, err := kv.Value(nil); err == nil {
			return v, true
		}
	}
	r.it.Close()
	return nil, false
}

func isSet(k pebble.InternalKeyKind) bool {
	return k == pebble.InternalKeyKindSet || k == pebble.InternalKeyKindSetWithDelete
}

// pageReaders keeps a few readers. Their buffers may be memory that is not
// collected, so a sync.Pool would lose it.
type pageReaders struct {
	schema *colblk.KeySchema

	mu   sync.Mutex
	free []*pageReader
}

// maxFreeReaders is about what reads at once.
const maxFreeReaders = 16

func (p *pageReaders) get() *pageReader {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		r := p.free[n-1]
		p.free = p.free[:n-1]
		return r
	}
	return newPageReader(p.schema)
}

func (p *pageReaders) put(r *pageReader) {
	p.mu.Lock()
	keep := len(p.free) < maxFreeReaders
	if keep {
		p.free = append(p.free, r)
	}
	p.mu.Unlock()
	if !keep {
		r.pool.Release()
	}
}

func (p *pageReaders) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.free {
		r.pool.Release()
	}
	p.free = nil
}
