package icechunk

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
)

func (s *Set) Version() formats.Version { return s.version }

// Names implements [formats.Versioned]. Of version 1 the directory must be listable.
func (s *Set) Names(ctx context.Context) ([]formats.Name, error) { return s.repo.names(ctx) }

func (s *Set) At(ctx context.Context, id string) (formats.Versioned, error) {
	known, ok := parseID(id)
	if !ok {
		return nil, fmt.Errorf("icechunk: %w: %q is not an id of a snapshot", formats.ErrNoVersion, id)
	}
	set, err := s.repo.at(ctx, known)
	if err != nil {
		return nil, err // and no *Set that is nil
	}
	return set, nil
}

// History implements [formats.Versioned]. In version 1 it reads every snapshot. An
// expired version ends the history.
func (s *Set) History(ctx context.Context) iter.Seq2[formats.Version, error] {
	return func(yield func(formats.Version, error) bool) {
		seen := map[string]bool{}
		for v := s.version; ; {
			if seen[v.ID] {
				yield(v, fmt.Errorf("icechunk: %w", formats.Invalid("snapshot %s is its own ancestor", v.ID)))
				return
			}
			seen[v.ID] = true
			var next formats.Version
			if len(v.Parents) > 0 {
				id, _ := parseID(v.Parents[0])
				var err error
				next, err = s.repo.version(ctx, id)
				if errors.Is(err, formats.ErrNoVersion) {
					v.Parents = nil
				} else if err != nil {
					yield(v, err)
					return
				}
			}
			if !yield(v, nil) || len(v.Parents) == 0 {
				return
			}
			v = next
		}
	}
}

// changeLog is the changes of a snapshot, from its transaction log.
type changeLog map[nodeID][][]uint32 // chunks that were written or deleted, by array

func logKey(id objectID) string { return "transactions/" + id.String() }

// readLogs reads the changes between a snapshot and its parent; nil if they are not
// known. Logs of snapshots between that expired belong to it. A snapshot whose parent
// is the initial one may have lost such logs, so its own are not relied on.
func (r *repository) readLogs(ctx context.Context, id, parent objectID) (changeLog, error) {
	if parent == initialID {
		return nil, nil
	}
	ids := []objectID{id}
	if r.info != nil {
		if s := r.info.find(id); s != nil {
			ids = append(s.pruned[:len(s.pruned):len(s.pruned)], id)
		}
	}
	log := changeLog{}
	for _, id := range ids {
		_, body, err := readFile(ctx, r.files, logKey(id), kindLog)
		if errors.Is(err, kv.ErrNotFound) {
			return nil, nil
		}
		if err == nil {
			if err = parseLog(body, log); err != nil {
				err = fmt.Errorf("icechunk: %s: %w", logKey(id), err)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return log, nil
}

// parseLog adds the chunks of a transaction log.
func parseLog(body []byte, log changeLog) error {
	f := &buffer{b: body}
	list := f.root().need(7, 4, "chunks of the transaction log")
	total := 0
	for i := range list.n {
		t := list.table(i)
		id, chunks := t.id8(0, "the id of an array"), t.need(1, 4, "chunks of an array")
		if total += chunks.n; total > len(body)/4 {
			f.fail("chunks are shared by arrays")
		}
		if f.err != nil {
			return f.err
		}
		numbers := make([]uint32, 0, 3*chunks.n) // of all chunks
		for j := range chunks.n {
			v := chunks.table(j).need(0, 4, "coordinates of a chunk")
			if v.n > maxDims {
				f.fail("a chunk has %d coordinates", v.n)
			}
			if f.err != nil {
				return f.err
			}
			from := len(numbers)
			for d := range v.n {
				numbers = append(numbers, v.u32(d))
			}
			log[id] = append(log[id], numbers[from:len(numbers):len(numbers)])
		}
	}
	return f.err
}
