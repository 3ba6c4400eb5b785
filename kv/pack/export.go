package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Whole has whole records of a pack, for a copy that [Store.ImportFrom] reads. Close it.
type Whole struct {
	// Extents ascend, and lie apart. They begin at headers of records and end where payloads end.
	Extents []Extent
	src     reclaimer
}

// Whole finds the records whose payloads overlap need, which ascend. It reads headers, not payloads:
// [Store.Verify] compares those. Damaged ranges are left out. An extent of more than most bytes has one record.
func (s *Store) Whole(ctx context.Context, id ID, need []Extent, most uint64) (*Whole, error) {
	src, err := s.source(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("pack: records of %v: %w", id, err)
	}
	w := &Whole{src: src}
	head := make([]byte, scanBytes)
	for _, e := range need {
		if err := src.eachRecord(e, head, func(rec Record, _ uint64) error {
			end := rec.Offset + rec.Length
			switch last := len(w.Extents) - 1; {
			case last >= 0 && end <= w.Extents[last].To:
			case last >= 0 && rec.Header <= roundUp(w.Extents[last].To, smallAlign) && end-w.Extents[last].From <= most:
				w.Extents[last].To = end
			default:
				w.Extents = append(w.Extents, Extent{rec.Header, end})
			}
			return nil
		}); err != nil {
			return nil, errors.Join(fmt.Errorf("pack: records of %v: %w", id, err), w.Close())
		}
	}
	return w, nil
}

// ReadAt implements [io.ReaderAt] at logical offsets of the pack, within Extents.
func (w *Whole) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) {
		// Records that follow each other may lie apart in a file that was rewritten.
		k := len(b) - n
		if lay := w.src.lay; lay != nil {
			list := lay.after(uint64(off)+uint64(n), lay.size)
			if len(list) == 0 || uint64(off)+uint64(n) < list[0].from {
				return n, io.ErrUnexpectedEOF
			}
			k = int(min(uint64(k), list[0].from+list[0].n-uint64(off)-uint64(n)))
		}
		at, ok := w.src.lay.find(uint64(off)+uint64(n), uint64(k))
		if !ok {
			return n, io.ErrUnexpectedEOF
		}
		m, err := readAt(w.src.f, b[n:n+k], at)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close closes the file.
func (w *Whole) Close() error { return w.src.f.Close() }
