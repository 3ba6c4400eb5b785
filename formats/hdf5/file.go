package hdf5

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv"
)

const (
	signature = "\x89HDF\r\n\x1a\n"

	// frontBytes are read at once when a file is opened: in files that are made for
	// servers, and in most small ones, all that describes the arrays.
	frontBytes = 256 << 10
	// keepBytes bounds what stays of the rest, for later passes over the file.
	keepBytes = 64 << 20
	// gapBytes between two structures are read to save a request.
	gapBytes = 256 << 10
	// runBytes bounds one request for several structures.
	runBytes = 8 << 20
)

// file is an open file. Addresses count from its superblock. Safe for concurrent use.
//
//	| user block | superblock | headers, indexes, heaps and chunks in any order |
//	             └ base
type file struct {
	w    *formats.Window
	name string
	o    formats.Options

	base              int64
	addrSize, lenSize int // of addresses and lengths
	groupK, chunkK    int // half the children of a node of B-trees 1
	root              int64
	shared            []sharedIndex

	value  kv.Value
	tables *lru.Cache[int64, *table] // of chunks, by the address of the dataset
	whole  atomic.Bool               // all references are asked for

	mu              sync.Mutex // guards what follows
	spent           map[inlineKey]bool
	inlined, texted int64
	described       int64 // bytes of headers, types, names and global heaps

	heaps   *lru.Cache[int64, *fractalHeap]
	blocks  *lru.Cache[int64, []byte] // of fractal heaps, checked and decoded
	globals *lru.Cache[int64, *collection]
	commits *lru.Cache[int64, *object] // of shared types
}

func newFile(ctx context.Context, value kv.Value, name string, o formats.Options) (*file, error) {
	w, err := formats.OpenWindow(ctx, value, formats.WindowOptions{
		Scheme: scheme, Front: frontBytes, Keep: keepBytes, Gap: gapBytes, Most: runBytes,
	})
	if err != nil {
		return nil, err
	}
	f := &file{w: w, value: value, name: name, o: o, groupK: 16, chunkK: 32, spent: map[inlineKey]bool{}}
	f.tables = lru.New[int64](tableBytes, func(t *table) int64 { return 32 * int64(len(t.rows)) })
	f.heaps = lru.New[int64](1<<20, func(*fractalHeap) int64 { return 500 })
	f.blocks = lru.New[int64](4<<20, func(b []byte) int64 { return int64(len(b)) })
	f.commits = lru.New[int64](1<<20, func(o *object) int64 { return 100 + 64*int64(len(o.msgs)) })
	f.globals = lru.New[int64](4<<20, func(c *collection) int64 { return int64(len(c.b)) })
	if f.base, err = f.find(ctx); err != nil {
		return nil, err
	}
	return f, f.superblock(ctx)
}

// charge counts bytes of what describes the objects: a file whose structures overlap could
// have much more of it than bytes.
func (f *file) charge(n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.described += n; f.described/8 > f.w.Size()+(16<<20) {
		return formats.Invalid("hdf5: the descriptions of objects and the texts are longer than a file of %d bytes can hold", f.w.Size())
	}
	return nil
}

// detected reports whether the beginning of a file has a superblock.
func detected(head []byte) bool {
	for at := 0; at < len(head); at = next(at) {
		if bytes.HasPrefix(head[at:], []byte(signature)) {
			return true
		}
	}
	return false
}

// next is the next place where a superblock may be: 0, 512, 1024, 2048, …
func next(at int) int { return max(512, 2*at) }

// find returns the place of the superblock.
func (f *file) find(ctx context.Context) (int64, error) {
	for at := 0; int64(at)+int64(len(signature)) <= f.w.Size(); at = next(at) {
		b, err := f.w.Bytes(ctx, int64(at), int64(len(signature)))
		if err != nil {
			return 0, err
		}
		if string(b) == signature {
			return int64(at), nil
		}
	}
	return 0, formats.Other("HDF5")
}

// superblock reads the superblock and its extension.
func (f *file) superblock(ctx context.Context) error {
	d, err := f.read(ctx, "the superblock", 0, min(256, f.w.Size()-f.base))
	if err != nil {
		return err
	}
	d.skip(8)
	version, flags, extension := d.u8(), uint32(0), int64(undefined)
	if d.err == nil && version > 3 {
		return formats.Unsupported("hdf5: the superblock has version %d", version)
	}
	sizes := func() {
		f.addrSize, f.lenSize = int(d.u8()), int(d.u8())
		for _, n := range []int{f.addrSize, f.lenSize} {
			if d.err == nil && n != 2 && n != 4 && n != 8 {
				d.err = formats.Unsupported("hdf5: addresses or lengths of %d bytes", n)
			}
		}
	}
	var stored, end, driver int64
	if version < 2 {
		d.skip(4)
		sizes()
		d.skip(1)
		d.skip(2) // K of leaves
		f.groupK = d.u16()
		flags = d.u32()
		if version == 1 {
			f.chunkK = d.u16()
			d.skip(2)
		}
		if d.err == nil {
			stored, _, end, driver = d.address(), d.address(), d.address(), d.address()
			d.skip(f.lenSize) // name of the root
			f.root = d.address()
		}
	} else {
		sizes()
		flags = uint32(d.u8())
		if d.err == nil {
			stored, extension, end, f.root = d.address(), d.address(), d.address(), d.address()
			_ = d.sum()
		}
		driver = undefined
	}
	switch {
	case d.err != nil:
		return d.err
	case version == 3 && flags&5 != 0:
		return formats.Unsupported("hdf5: the file is open for writing, or was not closed: the superblock says so (flags %d). Close it there; if no program writes it, run h5clear -s", flags)
	case driver != undefined:
		if d, err = f.read(ctx, "the driver information", driver, 16); err == nil {
			err = errDriver(d.b[8:])
		}
		return err
	case stored == undefined || end == undefined || f.root == undefined:
		return formats.Invalid("hdf5: the superblock lacks an address")
	}
	// The end counts from where the file began when it was written.
	if end += f.base - stored; f.w.Size() < end {
		return formats.Invalid("hdf5: the file is truncated: it has %d bytes, and should have %d", f.w.Size(), end)
	}
	return f.extend(ctx, extension)
}

// errDriver is of a file that is a part of several.
func errDriver(name []byte) error {
	return formats.Unsupported("hdf5: a part of a family, split or multi file (driver %q)", name)
}

// extend reads the extension of the superblock.
func (f *file) extend(ctx context.Context, addr int64) error {
	if addr == undefined {
		return nil
	}
	o, err := f.object(ctx, addr)
	if err != nil {
		return err
	}
	for i := range o.msgs {
		d := f.message(&o.msgs[i])
		switch m := &o.msgs[i]; m.typ {
		case msgTreeK:
			d.skip(1)
			f.chunkK, f.groupK = d.u16(), d.u16()
		case msgDriver:
			d.skip(1)
			return errDriver(d.take(8))
		case msgSharedTable:
			d.skip(1)
			addr := d.address()
			n := d.u8()
			if d.err == nil {
				d.err = f.readShared(ctx, addr, int(n))
			}
		}
		if d.err != nil {
			return d.err
		}
	}
	return nil
}
