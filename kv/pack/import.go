package pack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// Imported has the counts of [Store.Import].
type Imported struct {
	// Written is the number of copied bytes, Equal the number of bytes that were there already.
	Written, Equal uint64
	// First is where the payload of the first record begins that is here now, and End where the last one ends; 0 without one. Cut is where the record ends that
	// [Store.ImportFrom] left out because it lies over the end of need.
	First, End, Cut uint64
}

// Import copies the records whose payloads overlap need, which ascend, from a
// pack of another store to the same offsets of the pack of the same ID here. The
// file is made if it is not there, and has holes for all else. A record that is there
// and sound is not written, so that an Import that was interrupted can be run again,
// and damage of the source does not spread.
//
// Copied payloads are durable when Import returns; the Info is for the index, in
// or before the batch that names the payloads. A crash leaves unreferenced
// bytes. A pack that grows here is not written: it has its own payloads.
// Damaged ranges of the source are left out; reading such a payload is an error.
//
// progress, if not nil, is called from time to time with the counts so far.
// Packs may be imported side by side.
func (s *Store) Import(ctx context.Context, from *Store, id ID, need []Extent, progress func(Imported)) (Info, Imported, error) {
	return s.importFrom(ctx, id, need, progress, nil, func() (reclaimer, error) { return from.source(ctx, id) })
}

// ImportFrom is [Store.Import] from a pack that is in no other store, such as one in pieces: open gets the part of need that is
// not here, and returns a reader that has size bytes at logical offsets, and zeros where it has nothing. The bytes need not be trusted: a record whose
// payload reaches outside of need is left out, and one that would lie over another record of this store is an error.
func (s *Store) ImportFrom(ctx context.Context, open func(need []Extent) (from io.ReaderAt, size uint64, err error), id ID, need []Extent, progress func(Imported)) (Info, Imported, error) {
	return s.importFrom(ctx, id, need, progress, func(need []Extent) (reclaimer, error) {
		from, size, err := open(need)
		if err == nil && size >= maxImport {
			err = fmt.Errorf("%w: a pack of %d bytes", kv.ErrTooLarge, size)
		}
		return reclaimer{ctx: ctx, s: s, p: newPack(s, id, size), f: originFile{from: from, size: int64(size)}}, err
	}, nil)
}

// maxImport bounds the size of a pack, so that sums of offsets do not overflow.
const maxImport = 1 << 60

// originFile is a file as far as an import reads it.
type originFile struct {
	vfs.File // nil
	from     io.ReaderAt
	size     int64
}

type originInfo struct {
	vfs.FileInfo // nil
	size         int64
}

func (f originFile) ReadAt(b []byte, off int64) (int, error) { return f.from.ReadAt(b, off) }
func (f originFile) Stat() (vfs.FileInfo, error)             { return originInfo{size: f.size}, nil }
func (f originFile) Close() error                            { return nil }
func (i originInfo) Size() int64                             { return i.size }

// importFrom is Import from what open opens, or foreign, which is not trusted, for what is not here.
func (s *Store) importFrom(ctx context.Context, id ID, need []Extent, progress func(Imported), foreign func([]Extent) (reclaimer, error), open func() (reclaimer, error)) (Info, Imported, error) {
	if s.o.ReadOnly {
		return Info{}, Imported{}, kv.ErrReadOnly
	}
	if err := s.check(ctx); err != nil {
		return Info{}, Imported{}, err
	}
	s.reclaim.RLock()
	defer s.reclaim.RUnlock()
	defer s.lockImport(id)()
	m := importer{ctx: ctx, s: s, id: id, progress: progress, foreign: foreign != nil, buf: make([]byte, importBytes), old: make([]byte, importBytes), head: make([]byte, scanBytes)}
	info, err := Info{}, error(nil)
	if foreign != nil {
		info, err = m.run(need, foreign)
	} else if m.src, err = open(); err == nil {
		info, err = m.run(need, nil)
	}
	if err != nil {
		return info, m.out, fmt.Errorf("pack: import %v: %w", id, err)
	}
	return info, m.out, nil
}

// lockImport waits until no other Import or Heal writes to a pack.
func (s *Store) lockImport(id ID) (unlock func()) {
	one, _ := s.importing.LoadOrStore(id, new(sync.Mutex))
	one.(*sync.Mutex).Lock()
	return one.(*sync.Mutex).Unlock
}

// importBytes is the number of bytes compared and copied at a time.
const importBytes = 256 << 10

type importer struct {
	ctx      context.Context
	s        *Store
	id       ID
	src      reclaimer // reads the pack of the source
	f        vfs.File  // of this store
	size     uint64    // of f
	grows    bool      // f is not written
	fresh    bool      // f is new in the directory
	foreign  bool      // the source is not trusted
	had      uint64    // the size of f at first
	here     []placed  // the records of f at first, once they are needed
	buf, old []byte
	head     []byte // of the scanners
	out      Imported
	runs     []Extent // that are here now
	progress func(Imported)
}

// source opens a pack to be read by records. The caller closes the file.
func (s *Store) source(ctx context.Context, id ID) (src reclaimer, err error) {
	if err := s.check(ctx); err != nil {
		return src, err
	}
	p := s.lookup(id)
	if s.o.borrow != nil {
		p = newPack(s, id, 0) // its size is that of the file
	}
	if p == nil {
		return src, &CorruptError{Pack: id, Reason: "there is no such pack"}
	}
	src = reclaimer{ctx: ctx, s: s, p: p}
	if src.f, err = s.openPack(id); err != nil {
		return src, err
	}
	src.lay, err = p.checkFile(src.f)
	if err == nil && s.o.borrow != nil {
		var size uint64
		size, err = logicalSize(src.f, src.lay)
		p.size.Store(size)
	}
	if err != nil {
		err = errors.Join(err, src.f.Close())
	}
	return src, err
}

func (m *importer) run(need []Extent, foreign func([]Extent) (reclaimer, error)) (info Info, err error) {
	if foreign == nil {
		defer func() { err = errors.Join(err, m.src.f.Close()) }()
	}
	if foreign != nil {
		m.src.p = newPack(m.s, m.id, 0) // its checksums
	}
	if err := m.open(); err != nil {
		return info, err
	}
	m.had = m.size
	if foreign != nil {
		if need, err = m.absent(need); err == nil && len(need) > 0 {
			m.src, err = foreign(need)
		}
	}
	for _, e := range need {
		if err != nil {
			break
		}
		err = m.extent(e)
	}
	if err == nil && !m.grows && !m.s.o.Scratch {
		err = m.f.Sync()
	}
	if err = errors.Join(err, m.f.Close()); err == nil && m.fresh && !m.s.o.Scratch {
		err = syncDir(m.s.fs, m.s.dir)
	}
	if err != nil {
		if p := m.s.lookup(m.id); p != nil {
			p.drop() // some of its blocks may have changed
		}
		return info, err
	}
	return m.publish(), nil
}

// open opens the file of this store, with logical offsets for its own.
func (m *importer) open() error {
	fs, path := m.s.fs, m.s.path(m.id)
	p := m.s.lookup(m.id)
	if p != nil && p.inUse() {
		m.grows = true
		m.size = p.info().End
		f, err := fs.Open(path)
		m.f = f
		return err
	}
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if errors.Is(err, os.ErrNotExist) {
		return m.create(path)
	}
	if err != nil {
		return err
	}
	lay, err := readLayout(f, m.id, crc(m.id[:]))
	switch {
	case errors.Is(err, errFormat):
	case err != nil && (p == nil || p.info().End == 0):
		// A crash left it before anything in it was named.
		if err = f.Close(); err != nil {
			return err
		}
		return m.create(path)
	case err != nil:
		err = &CorruptError{Pack: m.id, Length: fileHeaderSize, Reason: err.Error()}
	case lay != nil || osfs.Links(f) > 1:
		err = m.unfold(f, lay, path)
		if err = errors.Join(err, closeFile(f)); err != nil {
			return err
		}
		f, err = fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
	}
	if err == nil {
		var n int64
		n, err = fileSize(f)
		m.size = uint64(n)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	m.f = f
	return nil
}

func (m *importer) create(path string) (err error) {
	m.fresh = true
	if m.f, err = m.s.fs.Create(path, vfs.WriteCategoryUnspecified); err != nil {
		return err
	}
	if _, err := m.f.WriteAt(appendFileHeader(nil, m.id), 0); err != nil {
		return errors.Join(err, m.f.Close())
	}
	m.size = fileHeaderSize
	return nil
}

// unfold puts a file of this store's own with every range at its logical offset
// in the place of one that was rewritten or has other names.
func (m *importer) unfold(f vfs.File, lay *layout, path string) error {
	n, err := fileSize(f)
	if err != nil {
		return err
	}
	fs, tmp := m.s.fs, path+rewriteSuffix
	to, err := fs.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = to.WriteAt(appendFileHeader(nil, m.id), 0)
	end, size := uint64(fileHeaderSize), uint64(n)
	if lay != nil {
		size = lay.size // as the table of the index has it
	}
	for _, e := range lay.after(fileHeaderSize, uint64(n)) {
		for off := uint64(0); off < e.n && err == nil; {
			b := m.buf[:min(uint64(len(m.buf)), e.n-off)]
			if err = m.ctx.Err(); err == nil {
				_, err = readAt(f, b, e.at+off)
			}
			off += uint64(len(b))
			if err == nil && !bytes.Equal(b, m.old[:len(b)]) { // holes stay holes
				end = e.from + off
				_, err = to.WriteAt(b, int64(end-uint64(len(b))))
			}
		}
	}
	if err == nil && end < size {
		_, err = to.WriteAt([]byte{0}, int64(size-1))
	}
	if err == nil {
		err = to.Sync()
	}
	p := m.s.lookup(m.id)
	if err = errors.Join(err, to.Close()); err == nil {
		err = m.s.replace(m.ctx, p, m.id, f, tmp)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(fs, tmp))
	}
	if p != nil {
		p.drop()
	}
	m.fresh = true
	return nil
}

// here notes records that are here now, from the payload of the first one to the end of the last one.
func (n *Imported) here(first, end uint64) {
	if n.First == 0 || first < n.First {
		n.First = first
	}
	n.End = max(n.End, end)
}

// absent returns the ranges without the records that are here and sound, such as those of an import that was
// interrupted: the source is not asked for them.
func (m *importer) absent(need []Extent) ([]Extent, error) {
	var here []Extent
	local := reclaimer{ctx: m.ctx, s: m.s, p: newPack(m.s, m.id, m.size), f: m.f}
	for _, e := range need {
		if e.From == e.To || e.From >= m.had {
			continue
		}
		if err := local.eachRecord(e, m.head, func(rec Record, _ uint64) error {
			end := rec.Offset + rec.Length
			has, err := m.has(rec)
			if !has || err != nil || rec.Offset < e.From || end > e.To {
				return err
			}
			m.runs = append(m.runs, Extent{rec.Header, end})
			m.out.Equal += end - rec.Header
			m.out.here(rec.Offset, end)
			if last := len(here) - 1; last >= 0 && rec.Header == roundUp(here[last].To, smallAlign) {
				here[last].To = end
			} else {
				here = append(here, Extent{rec.Header, end})
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	if len(here) == 0 {
		return need, nil
	}
	return Subtract(need, here), nil
}

// foreignRun is how much is looked at before it is copied, where looking and copying are requests.
const foreignRun = 4 << 20

// extent copies the records of one range. It copies only whole records: bytes
// between them may be dead in the source and alive here.
func (m *importer) extent(e Extent) error {
	var run Extent
	var shift, first uint64 // of the run
	flush := func() error {
		r, at := run, first
		run, first = Extent{}, 0
		err := m.copy(r, shift)
		if err == nil && r.To > 0 {
			m.out.here(at, r.To)
		}
		return err
	}
	err := m.src.eachRecord(e, m.head, func(rec Record, at uint64) error {
		end := rec.Offset + rec.Length
		if m.foreign && (rec.Offset < e.From || end > e.To) {
			if end > e.To {
				m.out.Cut = end
			}
			return nil
		}
		has, err := m.has(rec)
		if err == nil && !has && m.foreign && !m.grows {
			err = m.free(rec, at)
		}
		if err == nil && (has || at != shift || rec.Header != roundUp(run.To, smallAlign)) {
			err = flush()
		}
		if shift = at; has {
			m.runs = append(m.runs, Extent{rec.Header, end})
			m.out.Equal += end - rec.Header
			m.out.here(rec.Offset, end)
		}
		if has || err != nil || m.grows {
			return err
		}
		if run.To == 0 {
			run.From, first = rec.Header, rec.Offset
		}
		if run.To = end; m.foreign && end-run.From >= foreignRun {
			err = flush()
		}
		return err
	})
	return errors.Join(err, flush())
}

// eachRecord calls fn for the records whose payloads overlap a range, with the shift from logical
// offsets to offsets in the file. Damaged ranges are left out. head is a buffer of scanBytes.
func (r *reclaimer) eachRecord(e Extent, head []byte, fn func(rec Record, shift uint64) error) error {
	start := e.From
	if h, ok, err := r.header(e.From); err != nil {
		return err
	} else if ok {
		start = h.at
	}
	size, err := fileSize(r.f)
	if err != nil {
		return err
	}
	for _, x := range r.lay.after(start, uint64(size)) {
		if x.from >= e.To && x.from > start {
			break
		}
		sc := scanner{ctx: r.ctx, p: r.p, f: r.f, size: x.from + x.n, shift: x.at - x.from, buf: head[:0]}
		sc.step = stepTo(start, e.To)
		sc.run(max(start, x.from), func(rec Record, bad error) bool {
			var damage *CorruptError
			if errors.As(bad, &damage) {
				return damage.Offset+damage.Length < e.To
			}
			if err = bad; err != nil || rec.Header >= e.To && rec.Header > start {
				return false
			}
			end := rec.Offset + rec.Length
			err = fn(rec, sc.shift)
			if sc.step = stepTo(end, e.To); rec.Length >= scanBytes {
				sc.step = headerBytes // the next ones will be as long
			}
			return err == nil && end < e.To
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stepTo returns the number of bytes that a scanner, which ends at to, reads at
// a time: the headers of many small records.
func stepTo(from, to uint64) int { return int(min(max(to-min(from, to), headerBytes), scanBytes)) }

// copy copies a range of the source to the file.
func (m *importer) copy(r Extent, shift uint64) error {
	if r.From >= r.To {
		return nil
	}
	for off := r.From; off < r.To; {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		b := m.buf[:min(uint64(len(m.buf)), r.To-off)]
		if _, err := readAt(m.src.f, b, off+shift); err != nil {
			return err
		}
		if _, err := m.f.WriteAt(b, int64(off)); err != nil {
			return err
		}
		m.out.Written += uint64(len(b))
		off += uint64(len(b))
		m.size = max(m.size, off)
		if m.progress != nil {
			m.progress(m.out)
		}
	}
	m.runs = append(m.runs, r)
	return nil
}

// has reports whether the file has a sound record already. Such a record is not written
// over, because the record in the source may be damaged.
func (m *importer) has(rec Record) (bool, error) {
	if rec.Offset+rec.Length > m.size {
		return false, nil
	}
	sc := scanner{ctx: m.ctx, p: m.src.p, f: m.f, size: m.size, step: headerBytes, buf: m.old[:0]}
	h, ok, err := parseHeader(sc.read, rec.Header, m.size, m.src.p.salt)
	if !ok || err != nil || h.skip || h.payload != rec.Offset || h.length != rec.Length {
		return false, err
	}
	sums := make([]byte, sumSize*blocks(rec.Length))
	if _, err := readAt(m.f, sums, rec.Offset-backSize-uint64(len(sums))); err != nil {
		return false, err
	}
	r := part{p: m.src.p, a: rec.Address}
	for off := uint64(0); off < rec.Length; {
		b := m.old[:min(uint64(len(m.old)), rec.Length-off)]
		if _, err := readAt(m.f, b, rec.Offset+off); err != nil {
			return false, err
		}
		if r.checkAll(b, off, sums[sumSize*(off/blockSize):]) != nil {
			return false, nil
		}
		off += uint64(len(b))
	}
	return true, nil
}

// placed is the place of a record.
type placed struct{ header, offset, end uint64 }

// free checks that no other record of the file lies where rec is to be written.
func (m *importer) free(rec Record, shift uint64) (err error) {
	if rec.Header >= m.had {
		return nil
	}
	if m.s.o.Scratch {
		return m.blank(rec, shift)
	}
	if m.here == nil {
		m.here = []placed{}
		sc := scanner{ctx: m.ctx, p: m.src.p, f: m.f, size: m.had}
		sc.run(0, func(r Record, bad error) bool {
			var damage *CorruptError
			switch {
			case bad == nil:
				m.here = append(m.here, placed{r.Header, r.Offset, r.Offset + r.Length})
			case !errors.As(bad, &damage):
				err = bad
			}
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	own := placed{rec.Header, rec.Offset, rec.Offset + rec.Length}
	i, _ := slices.BinarySearchFunc(m.here, own.header, func(p placed, at uint64) int { return cmp.Compare(p.end, at+1) })
	for ; i < len(m.here) && m.here[i].header < own.end; i++ {
		if m.here[i] != own {
			return m.src.p.corrupt(own.header, own.end-own.header, "a record of the source lies over another one that is here")
		}
	}
	return nil
}

// ErrTaken means that the pack of a store has other bytes where a record is to be imported. Remove the pack.
var ErrTaken = errors.New("pack: other bytes are in the place of a record")

// blank checks that the file has zeros where rec is to be written, or parts of it, which an import that was interrupted has left, or
// skips of Reclaim, whose live ranges may end within a record that is not here.
func (m *importer) blank(rec Record, shift uint64) error {
	from := rec.Header
	sc := scanner{ctx: m.ctx, p: m.src.p, f: m.f, size: m.had, step: headerBytes, buf: m.old[:0]}
	if h, ok, err := parseHeader(sc.read, from, m.had, m.src.p.salt); err != nil {
		return err
	} else if ok && h.skip { // Reclaim made a hole behind it
		from += fixedSize
	}
	for off, end := from, min(rec.Offset+rec.Length, m.had); off < end; {
		b := m.old[:min(uint64(len(m.old)), end-off)]
		if _, err := readAt(m.f, b, off); err != nil {
			return err
		}
		if len(bytes.TrimLeft(b, "\x00")) > 0 {
			same := m.buf[:len(b)]
			if _, err := readAt(m.src.f, same, off+shift); err != nil {
				return err
			}
			for i := range b {
				if b[i] == 0 || b[i] == same[i] {
					continue
				}
				sc.buf = nil // b is its buffer
				if h, ok, err := parseHeader(sc.read, off+uint64(i), m.had, m.src.p.salt); err != nil {
					return err
				} else if !ok || !h.skip {
					return ErrTaken
				}
				b = b[:i]
				off += fixedSize
				break
			}
		}
		off += uint64(len(b))
	}
	return nil
}

// publish makes copied payloads visible to readers.
func (m *importer) publish() Info {
	s := m.s
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.lookup(m.id)
	if m.grows {
		return p.info()
	}
	if p == nil {
		p = newPack(s, m.id, m.size)
		s.used(m.id)
	}
	p.mu.Lock()
	p.setTail(max(p.tail, m.size))
	p.durable = max(p.durable, m.size)
	p.missing, p.named = false, true
	p.mu.Unlock()
	if fi, err := s.fs.Stat(s.path(m.id)); err == nil {
		p.onDisk.Store(allocated(fi))
	}
	if gone := p.gone.Load(); gone != nil {
		slices.SortFunc(m.runs, func(a, b Extent) int { return cmp.Compare(a.From, b.From) })
		left := Subtract(*gone, m.runs)
		p.gone.Store(&left)
	}
	p.drop()
	s.setPack(m.id, p)
	return p.info()
}

// Subtract returns the parts of a that are not in b. Both ascend; the extents
// of a do not overlap.
func Subtract(a, b []Extent) []Extent {
	var out []Extent
	for _, e := range a {
		for len(b) > 0 && b[0].To <= e.From {
			b = b[1:]
		}
		for _, x := range b {
			if x.From >= e.To {
				break
			}
			if x.From > e.From {
				out = append(out, Extent{e.From, x.From})
			}
			e.From = max(e.From, x.To)
			if e.From >= e.To {
				break
			}
		}
		if e.From < e.To {
			out = append(out, e)
		}
	}
	return out
}
