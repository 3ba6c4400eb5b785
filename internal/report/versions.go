package report

import (
	"context"
	"iter"
	"math"
	"slices"
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
	OrExpired  bool              `json:"or_expired,omitempty"` // an earlier commit that has expired, or whose values cannot be read, may have made the change
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

// ValueCommit is a line of a log of values: a commit that changed some, with the smallest box
// around them.
type ValueCommit struct {
	Commit
	Count int64   `json:"count"`
	Start []int64 `json:"start"`
	Shape []int64 `json:"shape"`
}

// ValueLog yields up to n commits that changed values of an array; see [engine.DB.ValueLog].
func ValueLog(ctx context.Context, db *engine.DB, at txn.CommitID, path string, sel zarr.Selection, n int) iter.Seq2[ValueCommit, error] {
	return first(n, db.ValueLog(ctx, at, path, sel), func(c engine.ValueCommit) ValueCommit {
		out := ValueCommit{NewCommit(c.Commit), c.Count, c.Start, c.Shape}
		out.Path, out.OrExpired = c.Path, c.OrExpired
		return out
	})
}

// LogAll yields up to n of all commits of branches and tags: children before parents, newest first among those
// that are not related.
func LogAll(ctx context.Context, db *engine.DB, n int) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		branches, tags, err := db.Refs(ctx)
		if err != nil {
			yield(Commit{}, err)
			return
		}
		var heads []txn.CommitID
		for _, r := range slices.Concat(branches, tags) {
			heads = append(heads, r.Commit)
		}
		first(n, txn.Ancestors(ctx, db.Versions().Lookup, heads), NewCommit)(yield)
	}
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
	Commit     string `json:"commit"`
	Name       string `json:"name"`
	Protection string `json:"protection,omitempty"` // protected or frozen
}

// Refs yields a line for each branch, or for each tag.
func Refs(ctx context.Context, db *engine.DB, tags bool) iter.Seq2[Ref, error] {
	return func(yield func(Ref, error) bool) {
		refs, tagged, err := db.Refs(ctx)
		var protected, others map[string]txn.Protection
		if err == nil {
			protected, others, err = db.Protections(ctx)
		}
		if err != nil {
			yield(Ref{}, err)
			return
		}
		if tags {
			refs, protected = tagged, others
		}
		for _, r := range refs {
			out := Ref{Commit: r.Commit.String(), Name: r.Name}
			if p := protected[r.Name]; p != txn.Unprotected {
				out.Protection = p.String()
			}
			if !yield(out, nil) {
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

// BlamedValues is a line of blame of values: a box of values that one commit changed last.
type BlamedValues struct {
	Author    string    `json:"author"`
	Commit    string    `json:"commit"`
	Message   string    `json:"message"`
	OrExpired bool      `json:"or_expired,omitempty"` // as in [Commit]
	Shape     []int64   `json:"shape"`
	Start     []int64   `json:"start"`
	Time      time.Time `json:"time"`
}

// ValueBlame yields for the values of an array that sel names the commits that changed them last;
// see [engine.DB.ValueBlame].
func ValueBlame(ctx context.Context, db *engine.DB, at txn.CommitID, path string, sel zarr.Selection) iter.Seq2[BlamedValues, error] {
	return first(math.MaxInt, db.ValueBlame(ctx, at, path, sel), func(b engine.BlamedValues) BlamedValues {
		c := b.Commit
		return BlamedValues{Author: c.Author, Commit: c.ID.String(), Message: c.Message, OrExpired: b.OrExpired, Shape: b.Shape, Start: b.Start, Time: c.Time}
	})
}
