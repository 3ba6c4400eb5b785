package pack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// Heal writes payloads of one pack again, where they were stored. payload returns the bytes of the
// payload at at[i], which must equal the bytes that were stored there, or nil to leave it out. A
// payload that cannot be written is left out too, and its error is returned. A sound block with
// other bytes is an error, because it belongs to another payload. Only blocks that differ are
// written, so a crash leaves the damage or the right bytes. Written payloads are durable when Heal
// returns their number; the Info is for the index. A header that is damaged is replaced by one
// without an owner.
//
// With grow, a file that is missing is made, and one that ends early gets its length
// back. All other bytes are then a hole, which reads as damaged. Without
// grow, such a payload is a [CorruptError], and so is every payload while [Store.Reclaim]
// runs: a reader that Reclaim waits for may call Heal.
func (s *Store) Heal(ctx context.Context, id ID, at []Address, grow bool, payload func(i int) ([]byte, error)) (Info, int, error) {
	if err := s.check(ctx); err != nil {
		return Info{}, 0, err
	}
	if s.o.ReadOnly {
		return Info{}, 0, kv.ErrReadOnly
	}
	if grow {
		s.reclaim.RLock()
	} else if !s.reclaim.TryRLock() {
		return Info{}, 0, &CorruptError{Pack: id, Reason: "space of packs is given back at this moment"}
	}
	defer s.reclaim.RUnlock()
	defer s.lockImport(id)()
	h := healer{s: s, id: id, salt: crc(id[:]), p: s.lookup(id), grow: grow}
	info, err := h.run(ctx, at, payload)
	if err != nil {
		err = fmt.Errorf("pack: heal %v: %w", id, err)
	}
	return info, h.n, err
}

// healer writes to one pack.
type healer struct {
	s    *Store
	id   ID
	salt uint32
	p    *pack // nil if the store does not know it
	grow bool

	f     vfs.File
	lay   *layout
	size  uint64 // of the file
	n     int
	fresh bool // the file was made
}

func (h *healer) corrupt(a Address, reason string) error {
	return &CorruptError{Pack: h.id, Offset: a.Offset, Length: a.Length, Reason: reason}
}

func (h *healer) run(ctx context.Context, at []Address, payload func(i int) ([]byte, error)) (info Info, err error) {
	if h.p == nil && !h.grow {
		return info, h.corrupt(Address{}, "there is no such pack")
	}
	if err := h.open(at); err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, h.f.Close()) }()
	var damage *CorruptError // of the first payload that cannot be written
	for i, a := range at {
		b, err := payload(i)
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && b != nil {
			err = h.one(a, b)
			if e := (*CorruptError)(nil); errors.As(err, &e) {
				damage, err = cmp.Or(damage, e), nil
			}
		}
		if err != nil {
			return info, err
		}
	}
	if h.grow && h.lay == nil && h.p != nil {
		end := h.p.info().End      // the table of the index has this length
		size, err := fileSize(h.f) // after End: appends and Sync go on meanwhile
		if err == nil && uint64(size) < end {
			_, err = h.f.WriteAt([]byte{0}, int64(end-1))
		}
		if err != nil {
			return info, err
		}
		h.size = max(h.size, end)
	}
	if err := h.f.Sync(); err != nil {
		return info, err
	}
	if h.fresh {
		if err := syncDir(h.s.fs, h.s.dir); err != nil {
			return info, err
		}
	}
	if info = h.publish(); damage != nil {
		return info, damage
	}
	return info, nil
}

func (h *healer) open(at []Address) (err error) {
	path := h.s.path(h.id)
	h.f, err = h.s.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if errors.Is(err, os.ErrNotExist) {
		if !h.grow {
			return h.corrupt(Address{}, "the file is missing")
		}
		if h.f, err = h.s.fs.Create(path, vfs.WriteCategoryUnspecified); err != nil {
			return err
		}
		h.fresh = true
	} else if err != nil {
		return err
	}
	n, err := fileSize(h.f)
	if h.size = uint64(n); err == nil && h.size > 0 {
		h.lay, err = readLayout(h.f, h.id, h.salt)
	}
	switch {
	case errors.Is(err, errFormat):
	case h.size < fileHeaderSize && h.grow, err != nil && (h.p != nil && h.p.inUse() || slices.ContainsFunc(at, h.plain)):
		// Only sealed packs are rewritten, so that a pack in use has the plain header.
		h.lay = nil
		_, err = h.f.WriteAt(appendFileHeader(nil, h.id), 0)
		h.size = max(h.size, fileHeaderSize)
	case err != nil:
		err = h.corrupt(Address{Length: fileHeaderSize}, err.Error())
	}
	if err != nil {
		return errors.Join(err, h.f.Close())
	}
	return nil
}

// plain reports whether a file whose own header is damaged has the header of a payload
// at its logical offset, so that the file was not rewritten.
func (h *healer) plain(a Address) bool {
	h.lay = nil
	_, ok, err := h.header(a)
	return ok && err == nil
}

func (h *healer) header(a Address) (header, bool, error) {
	p := h.p
	if p == nil {
		p = newPack(h.s, h.id, h.size)
	}
	r := reclaimer{ctx: context.Background(), s: h.s, p: p, f: h.f, lay: h.lay}
	head, ok, err := r.header(a.Offset)
	return head, ok && head.length == a.Length, err
}

// one writes a payload, with its header and sums.
func (h *healer) one(a Address, payload []byte) error {
	front := fixedSize + sumSize*blocks(min(a.Length, MaxPayloadBytes)) + backSize
	align := uint64(smallAlign)
	if a.Length >= largeFrom {
		align = largeAlign
	}
	switch {
	case uint64(len(payload)) != a.Length || a.Offset%align != 0 || a.Offset < fileHeaderSize+front:
		return h.corrupt(a, "no payload can be here")
	case h.p != nil && h.p.isGone(&a):
		return h.corrupt(a, errGone)
	}
	from := (a.Offset - front) &^ (smallAlign - 1)
	at, ok := h.lay.find(from, a.Offset-from+a.Length)
	if !ok {
		return h.corrupt(a, errGone)
	}
	if at+a.Offset-from+a.Length > h.size && !h.grow {
		return h.corrupt(a, "the file ends early")
	}
	b := make([]byte, a.Offset-from)
	putHeader(b, &header{at: from, length: a.Length}, h.salt)
	putSums(b, payload, a.Offset, h.salt)
	skip := 0
	if old, ok, err := h.header(a); ok && err == nil {
		// The header is right. Its distance from the payload is before the payload once more.
		distance := uint32(old.payload - old.at)
		binary.LittleEndian.PutUint32(b[len(b)-backSize:], distance)
		skip = len(b) - sumSize*int(blocks(a.Length)) - backSize
	}
	changed, err := false, h.same(a, b, at, payload)
	if err == nil {
		changed, err = h.write(b[skip:], at+uint64(skip))
	}
	for off := uint64(0); err == nil && off < a.Length; off += blockSize {
		var more bool
		more, err = h.write(payload[off:min(off+blockSize, a.Length)], at+a.Offset-from+off)
		changed = changed || more
	}
	if changed {
		h.n++
	}
	return err
}

// same returns an error if a block of the file is sound and differs from the payload: then another
// payload was stored there. front is the right content before the payload, from at on.
func (h *healer) same(a Address, front []byte, at uint64, payload []byte) error {
	n := sumSize * int(blocks(a.Length))
	sums, block := make([]byte, n), make([]byte, min(blockSize, a.Length))
	at += uint64(len(front))
	if _, err := readAt(h.f, sums, at-backSize-uint64(n)); err != nil {
		return nil // there is nothing
	}
	for off := uint64(0); off < a.Length; off += blockSize {
		b := block[:min(blockSize, a.Length-off)]
		if _, err := readAt(h.f, b, at+off); err != nil || bytes.Equal(b, payload[off:off+uint64(len(b))]) {
			continue
		}
		if blockSum(h.salt, b, a.Offset+off) == binary.LittleEndian.Uint32(sums[sumSize*(off/blockSize):]) {
			return h.corrupt(a, "another payload is here, and sound")
		}
	}
	return nil
}

// write writes bytes unless the file has them.
func (h *healer) write(b []byte, at uint64) (bool, error) {
	old := make([]byte, len(b))
	if _, err := readAt(h.f, old, at); err == nil && bytes.Equal(old, b) {
		return false, nil
	}
	_, err := h.f.WriteAt(b, int64(at))
	h.size = max(h.size, at+uint64(len(b)))
	return true, err
}

// publish makes a file that grew visible to readers.
func (h *healer) publish() Info {
	s := h.s
	s.mu.Lock()
	defer s.mu.Unlock()
	p := h.p
	if p == nil {
		p = newPack(s, h.id, h.size)
		s.used(h.id)
		s.setPack(h.id, p)
	}
	if !p.inUse() {
		p.mu.Lock()
		if h.lay == nil && p.failure == nil { // the bytes behind the end of a failed pack stay lost
			p.setTail(max(p.tail, h.size))
			p.durable = max(p.durable, h.size)
		}
		p.missing, p.named = false, true
		p.mu.Unlock()
	}
	p.drop() // blocks compared before may have changed
	return p.info()
}
