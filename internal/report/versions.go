package report

import (
	"context"
	"iter"
	"math"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Commit is a line of log, and the answer of show.
type Commit struct {
	ID         string            `json:"id"`
	Parents    []string          `json:"parents"`
	Author     string            `json:"author"`
	Time       time.Time         `json:"time"`
	Message    string            `json:"message"`
	Properties map[string]string `json:"properties,omitempty"`
	Path       string            `json:"path,omitempty"`       // of a history that follows renames
	OrExpired  bool              `json:"or_expired,omitempty"` // an earlier, expired commit may have made the change
}

// NewCommit describes a commit.
func NewCommit(c *txn.Commit) Commit {
	return Commit{ID: c.ID.String(), Parents: texts(c.Parents), Author: c.Author, Time: c.Time, Message: c.Message, Properties: c.Properties}
}

// texts returns the ids as text; never nil.
func texts(ids []txn.CommitID) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = id.String()
	}
	return list
}

// Log yields up to n of a commit and its ancestors, newest first: all of them or, with a path, the
// commits that changed something at or below it. With follow, renames of the path are followed.
func Log(ctx context.Context, db *engine.DB, head txn.CommitID, path string, follow bool, n int) iter.Seq2[Commit, error] {
	if path == "" {
		return first(n, db.Versions().Log(ctx, head), NewCommit)
	}
	return first(n, db.Versions().History(ctx, head, path, follow), func(c txn.PathCommit) Commit {
		out := NewCommit(c.Commit)
		if follow {
			out.Path = c.Path
		}
		out.OrExpired = c.OrExpired
		return out
	})
}

// SourceLog yields up to n versions of a store in a foreign format, newest first.
func SourceLog(ctx context.Context, s *engine.Source, n int) iter.Seq2[Commit, error] {
	return first(n, s.History(ctx), func(v engine.SourceVersion) Commit {
		return Commit{ID: v.ID, Parents: append([]string{}, v.Parents...), Author: v.Author, Time: v.Time, Message: v.Message}
	})
}

// first yields the first n elements of a sequence, up to its first error. It does not ask for the
// element behind them, for which the history of a path may have to be read to its end.
func first[T, R any](n int, seq iter.Seq2[T, error], of func(T) R) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		if n <= 0 {
			return
		}
		left := n
		for v, err := range seq {
			var out R
			if err == nil {
				out = of(v)
			}
			if left--; !yield(out, err) || err != nil || left == 0 {
				return
			}
		}
	}
}

// Ref is a line of branch and of tag.
type Ref struct {
	Commit string `json:"commit"`
	Name   string `json:"name"`
}

// Refs yields a line for each branch or tag, or the error.
func Refs(refs []txn.Ref, err error) iter.Seq2[Ref, error] {
	return func(yield func(Ref, error) bool) {
		if err != nil {
			yield(Ref{}, err)
		}
		for _, r := range refs {
			if !yield(Ref{r.Commit.String(), r.Name}, nil) {
				return
			}
		}
	}
}

// Change is a line of diff: a node that differs.
type Change struct {
	engine.NodeChange
	FromCommit string `json:"from_commit"`
	ToCommit   string `json:"to_commit"`
}

// Values is a line of diff: a part of an array whose values differ.
type Values struct {
	engine.ValueChange
	FromCommit string `json:"from_commit"`
	ToCommit   string `json:"to_commit"`
}

// Diff yields a [Change] for each node at or below a path that differs between two commits, each
// followed by its [Values] if values are wanted. It ends after the first error.
func Diff(ctx context.Context, db *engine.DB, from, to txn.CommitID, path string, values bool) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		changes, err := db.NodeChanges(ctx, from, to, path)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, c := range changes {
			if !yield(Change{c, from.String(), to.String()}, nil) {
				return
			}
			if !values {
				continue
			}
			for v, err := range db.ValueChanges(ctx, from, to, c) {
				if !yield(Values{v, from.String(), to.String()}, err) || err != nil {
					return
				}
			}
		}
	}
}

// BlamedChunks is a line of blame: neighbouring chunks that one commit changed last.
type BlamedChunks struct {
	Author  string    `json:"author"`
	Chunk   []int64   `json:"chunk"`  // the first one
	Chunks  []int64   `json:"chunks"` // their number along each dimension
	Commit  string    `json:"commit"`
	Key     string    `json:"key"` // of the first chunk
	Message string    `json:"message"`
	Shape   []int64   `json:"shape"`
	Start   []int64   `json:"start"`
	Time    time.Time `json:"time"`
}

// Blame yields for the chunks of an array that sel touches the commits that changed them last;
// see [engine.DB.Blame].
func Blame(ctx context.Context, db *engine.DB, at txn.CommitID, path string, sel zarr.Selection) iter.Seq2[BlamedChunks, error] {
	return first(math.MaxInt, db.Blame(ctx, at, path, sel), func(c engine.BlamedChunks) BlamedChunks {
		return BlamedChunks{
			Author: c.Commit.Author, Chunk: c.Coords, Chunks: c.Counts, Commit: c.Commit.ID.String(), Key: c.Key,
			Message: c.Commit.Message, Shape: c.Shape, Start: c.Start, Time: c.Commit.Time,
		}
	})
}
