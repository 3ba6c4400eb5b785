// Package txntest compares what two ways to a database answer about its versions.
package txntest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Versions is the part of a *txn.DB that tells about versions. C is the type of its changes.
type Versions[C any] interface {
	Resolve(ctx context.Context, rev string) (catalog.CommitID, error)
	Lookup(ctx context.Context, id catalog.CommitID) (*catalog.Commit, error)
	Refs(ctx context.Context) (branches, tags []catalog.Ref, err error)
	Head(ctx context.Context, branch string) (catalog.CommitID, error)
	Reflog(ctx context.Context, branch string) iter.Seq2[catalog.RefMove, error]
	TagReflog(ctx context.Context, tag string) iter.Seq2[catalog.RefMove, error]
	Log(ctx context.Context, from catalog.CommitID) iter.Seq2[*catalog.Commit, error]
	History(ctx context.Context, from catalog.CommitID, path string, follow bool) iter.Seq2[history.PathCommit, error]
	Diff(ctx context.Context, from, to catalog.CommitID, prefix string) iter.Seq2[C, error]
}

// Same asks a and b about refs, the given names of branches and the given commits, at least
// one, and returns an error that names the first question with different answers. Errors are
// equal if errors.Is finds the same of ErrNoRef and ErrExpired in both.
func Same[C any](ctx context.Context, a, b Versions[C], names []string, commits []catalog.CommitID) error {
	s := comparison[C]{a: a, b: b}
	s.ask("branches", func(v Versions[C]) (any, error) {
		branches, _, err := v.Refs(ctx)
		return append([]catalog.Ref(nil), branches...), err // an empty list is nil
	})
	s.ask("tags", func(v Versions[C]) (any, error) {
		_, tags, err := v.Refs(ctx)
		return append([]catalog.Ref(nil), tags...), err
	})
	for _, name := range append(names, "", "none") {
		s.ask("head of "+name, func(v Versions[C]) (any, error) { return v.Head(ctx, name) })
		s.ask("reflog of "+name, func(v Versions[C]) (any, error) { return all(v.Reflog(ctx, name)) })
		s.ask("reflog of tag "+name, func(v Versions[C]) (any, error) { return all(v.TagReflog(ctx, name)) })
		for _, rev := range []string{name, name + "~1", name + "^2", name + "@{1}", name + "@{"} {
			s.ask("revision "+rev, func(v Versions[C]) (any, error) { return v.Resolve(ctx, rev) })
		}
	}
	for i, id := range append(commits, catalog.CommitID{1}) {
		last := commits[max(i-1, 0)]
		first := commits[i/2%len(commits)]
		s.ask("commit "+id.Short(), func(v Versions[C]) (any, error) { return v.Lookup(ctx, id) })
		s.ask("revision "+id.Short(), func(v Versions[C]) (any, error) { return v.Resolve(ctx, id.Short()) })
		s.ask("log of "+id.Short(), func(v Versions[C]) (any, error) { return all(v.Log(ctx, id)) })
		s.ask("history of "+id.Short(), func(v Versions[C]) (any, error) { return all(v.History(ctx, id, "d1", true)) })
		for _, other := range []catalog.CommitID{last, first} {
			s.ask("changes from "+other.Short()+" to "+id.Short(), func(v Versions[C]) (any, error) { return all(v.Diff(ctx, other, id, "")) })
		}
	}
	return s.err
}

type comparison[C any] struct {
	a, b Versions[C]
	err  error
}

// ask compares one answer.
func (s *comparison[C]) ask(what string, of func(Versions[C]) (any, error)) {
	if s.err != nil {
		return
	}
	want, err := of(s.a)
	got, failed := of(s.b)
	for _, kind := range []error{catalog.ErrNoRef, catalog.ErrExpired} {
		if errors.Is(err, kind) != errors.Is(failed, kind) {
			s.err = fmt.Errorf("%s: %v, want %v", what, failed, err)
			return
		}
	}
	switch {
	case (err == nil) != (failed == nil):
		s.err = fmt.Errorf("%s: %v, want %v", what, failed, err)
	case err == nil && !reflect.DeepEqual(got, want):
		s.err = fmt.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func all[T any](items iter.Seq2[T, error]) (list []T, err error) {
	for it, err := range items {
		if err != nil {
			return nil, err
		}
		list = append(list, it)
	}
	return slices.Clip(list), nil
}
