package gather

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
)

// Part is a wanted part of a file.
type Part struct {
	File int // number of the file
	// Off and N are the offset and length; N is -1 for the whole file.
	Off, N int64
	// Limit, if positive, is the length above which a whole file is not read.
	Limit int64
	// Want is the caller's number of the part.
	Want int
}

// end is where the part ends.
func (p *Part) end() int64 { return p.Off + p.N }

// Files opens files and receives their parts. Several goroutines call its
// methods at a time.
type Files interface {
	// Open locates a file and may read rng of it, like [kv.LocateRange]. stale,
	// if not nil, is a value that Open returned before and whose file has
	// changed since.
	Open(ctx context.Context, file int, rng kv.Range, limit int64, stale kv.Value) (kv.Value, []byte, error)

	// Take receives the bytes of a part, which are valid until it returns, or
	// the error of reading them: kv.ErrRange if the file ends before. b is nil
	// for an empty part, and for a file that is longer than Part.Limit. An error
	// of Take ends Read.
	Take(ctx context.Context, p Part, file kv.Value, b []byte, err error) error
}

// Options say how parts are joined and read. There are no defaults: zero means
// zero.
type Options struct {
	// Gap is the largest gap, in bytes, between two parts that one request
	// reads; negative joins no parts.
	Gap int64
	// Most bounds the bytes of joined parts.
	Most int64
	// Parallel is how many requests are under way at a time.
	Parallel int
	// Memory bounds the bytes that are held at a time. A single larger run is
	// read alone.
	Memory *Memory
}

// run is a row of parts that is read at once: parts[lo:hi], bytes off to end.
type run struct {
	lo, hi   int
	off, end int64
}

// Read reads parts, which it sorts by file and offset. Options.Memory bounds its
// memory beside parts.
func Read(ctx context.Context, parts []Part, f Files, o Options) error {
	order(parts)
	runs := join(parts, o.Gap, o.Most)
	return Each(ctx, o.Parallel, len(runs), func(ctx context.Context, i int) error {
		r := runs[i]
		size := r.end - r.off
		if p := &parts[r.lo]; p.N < 0 {
			size = cmp.Or(max(p.Limit, 0), o.Most)
		}
		if err := o.Memory.Take(ctx, size); err != nil {
			return err
		}
		defer o.Memory.Give(size)
		return r.read(ctx, parts[r.lo:r.hi], f)
	})
}

// join cuts sorted parts into runs. A whole file, wanted once or several times,
// is a run of its own, and so is an empty part.
func join(parts []Part, gap, most int64) []run {
	var runs []run
	for i := range parts {
		p := &parts[i]
		if k := len(runs) - 1; k >= 0 && parts[runs[k].lo].File == p.File && runs[k].joins(&parts[runs[k].lo], p, gap, most) {
			runs[k].hi = i + 1
			runs[k].end = max(runs[k].end, p.end())
			continue
		}
		runs = append(runs, run{i, i + 1, p.Off, p.end()})
	}
	return runs
}

// joins reports whether p, which begins no earlier, belongs to the run.
func (r *run) joins(first, p *Part, gap, most int64) bool {
	if first.N < 0 || p.N < 0 {
		return first.N < 0 && p.N < 0
	}
	if first.N == 0 || p.N == 0 {
		return first.N == p.N && first.Off == p.Off
	}
	if gap < 0 {
		return false
	}
	if p.Off > r.end && p.Off-r.end > gap {
		return false
	}
	longer := max(r.end, p.end()) - r.off
	return longer <= r.end-r.off || longer <= most
}

// read reads the run of parts and hands them out.
func (r *run) read(ctx context.Context, parts []Part, f Files) error {
	rng, limit := kv.Span(r.off, r.end-r.off), int64(0)
	if parts[0].N < 0 {
		rng, limit = kv.All(), parts[0].Limit
	}
	var stale kv.Value
	for {
		file, b, err := f.Open(ctx, parts[0].File, rng, limit, stale)
		if err != nil {
			return f.Take(ctx, parts[0], nil, nil, err)
		}
		given := false
		give := func(b []byte) error {
			given = true
			return r.give(ctx, parts, f, file, b)
		}
		off, n := r.inside(file, parts[0].N < 0)
		switch {
		case n == 0 || limit > 0 && n > limit:
			return give(nil)
		case b != nil:
			return give(b)
		}
		err = file.View(ctx, kv.Span(off, n), give)
		switch {
		case given || err == nil:
			return err
		case stale == nil && errors.Is(err, kv.ErrChanged):
			stale = file
		default:
			return f.Take(ctx, parts[0], file, nil, err)
		}
	}
}

// inside returns the part of the run that lies inside the file.
func (r *run) inside(file kv.Value, whole bool) (off, n int64) {
	size := file.Size()
	if whole {
		return 0, size
	}
	return r.off, max(min(r.end, size)-r.off, 0)
}

// give cuts the bytes of a run into its parts.
func (r *run) give(ctx context.Context, parts []Part, f Files, file kv.Value, b []byte) error {
	for _, p := range parts {
		var own []byte
		var err error
		switch off := p.Off - r.off; {
		case p.N < 0:
			own = b
		case p.Off > file.Size() || p.N > file.Size()-p.Off:
			err = fmt.Errorf("%w: %d bytes from %d on, of a file of %d", kv.ErrRange, p.N, p.Off, file.Size())
		case p.N > 0 && off+p.N > int64(len(b)):
			err = fmt.Errorf("%w: %d of %d bytes came", kv.ErrChanged, len(b), r.end-r.off)
		case p.N > 0:
			own = b[off : off+p.N : off+p.N]
		}
		if err := f.Take(ctx, p, file, own, err); err != nil {
			return err
		}
	}
	return nil
}

// Rows sorts parts by file and offset, and cuts them into rows of one file each
// and at most n parts, for callers that read each part by itself. The rows share
// the memory of parts.
func Rows(parts []Part, n int) [][]Part {
	order(parts)
	var rows [][]Part
	for lo := 0; lo < len(parts); {
		hi := lo + 1
		for hi < len(parts) && hi-lo < n && parts[hi].File == parts[lo].File {
			hi++
		}
		rows = append(rows, parts[lo:hi:hi])
		lo = hi
	}
	return rows
}

func order(parts []Part) {
	slices.SortFunc(parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Off, b.Off), cmp.Compare(a.N, b.N), cmp.Compare(a.Want, b.Want))
	})
}
