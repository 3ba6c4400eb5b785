package txntest_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/txntest"
)

// answers are the same for all arguments, but for one kind of question.
type answers struct {
	other string // the kind that is answered otherwise
	err   error  // of that kind
}

// about returns one of two answers to a kind of question.
func about[T any](a answers, kind string, usual, other T) (T, error) {
	if a.other != kind {
		return usual, nil
	}
	return other, a.err
}

func items[T any](v T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) { yield(v, err) }
}

var c1, c2 = &catalog.Commit{ID: catalog.CommitID{1}}, &catalog.Commit{ID: catalog.CommitID{2}}

func (a answers) Resolve(context.Context, string) (catalog.CommitID, error) {
	return about(a, "revision", c1.ID, c2.ID)
}

func (a answers) Lookup(context.Context, catalog.CommitID) (*catalog.Commit, error) {
	return about(a, "commit", c1, c2)
}

func (a answers) Refs(context.Context) (branches, tags []catalog.Ref, err error) {
	branches, _ = about(a, "branches", []catalog.Ref{{Name: "main"}}, nil)
	tags, _ = about(a, "tags", []catalog.Ref{{Name: "v1"}}, []catalog.Ref{{Name: "v2"}})
	return branches, tags, nil
}

func (a answers) Head(context.Context, string) (catalog.CommitID, error) {
	return about(a, "head", c1.ID, c2.ID)
}

func (a answers) Reflog(context.Context, string) iter.Seq2[catalog.RefMove, error] {
	return items(about(a, "reflog", catalog.RefMove{Seq: 1}, catalog.RefMove{Seq: 2}))
}

func (a answers) TagReflog(context.Context, string) iter.Seq2[catalog.RefMove, error] {
	return items(about(a, "reflog of tag", catalog.RefMove{Op: "tag"}, catalog.RefMove{Op: "reset"}))
}

func (a answers) Log(context.Context, catalog.CommitID) iter.Seq2[*catalog.Commit, error] {
	return items(about(a, "log", c1, c2))
}

func (a answers) History(context.Context, catalog.CommitID, string, bool) iter.Seq2[history.PathCommit, error] {
	return items(about(a, "history", history.PathCommit{Commit: c1, Path: "a"}, history.PathCommit{Commit: c1, Path: "b"}))
}

func (a answers) Diff(context.Context, catalog.CommitID, catalog.CommitID, string) iter.Seq2[string, error] {
	return items(about(a, "changes", "a", "b"))
}

// Same accepts equal answers, and names the kind of question that is answered otherwise.
func TestSame(t *testing.T) {
	same := func(a, b answers) error {
		return txntest.Same[string](t.Context(), a, b, []string{"main"}, []catalog.CommitID{c1.ID, c2.ID})
	}
	if err := same(answers{}, answers{}); err != nil {
		t.Errorf("equal answers: %v", err)
	}
	for _, kind := range []string{"branches", "tags", "head", "reflog", "reflog of tag", "revision", "commit", "log", "history", "changes"} {
		for _, failed := range []error{nil, catalog.ErrNoRef, catalog.ErrExpired, context.Canceled} {
			if failed != nil && (kind == "branches" || kind == "tags") {
				continue // they have no error
			}
			if err := same(answers{}, answers{kind, failed}); err == nil || !strings.HasPrefix(err.Error(), kind) {
				t.Errorf("other %s, %v: %v", kind, failed, err)
			}
			if failed == nil {
				continue
			}
			if err := same(answers{kind, failed}, answers{kind, failed}); err != nil {
				t.Errorf("the same error about %s: %v", kind, err)
			}
		}
		if err := same(answers{kind, catalog.ErrNoRef}, answers{kind, catalog.ErrExpired}); err == nil && kind != "branches" && kind != "tags" {
			t.Errorf("another error about %s is taken as the same", kind)
		}
	}
}
