package local

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Resolve returns the commit that a revision names.
func (c *Client) Resolve(ctx context.Context, db, rev string) (*txn.Commit, error) {
	out, err := query[wire.Commit](ctx, c, wire.OpResolve, wire.Rev{Database: db, Rev: rev})
	if err != nil {
		return nil, err
	}
	return commitIn(&out), nil
}

// Refs returns the branches and tags, by name.
func (c *Client) Refs(ctx context.Context, db string) (branches, tags []txn.Ref, err error) {
	out, err := query[wire.Refs](ctx, c, wire.OpRefs, wire.Database{Database: db})
	return refsIn(out.Branches), refsIn(out.Tags), err
}

// MoveRef creates, deletes or moves a branch or tag.
func (c *Client) MoveRef(ctx context.Context, db string, m serve.RefMove) error {
	_, err := once[none](ctx, c, wire.OpMoveRef, wire.MoveRef{Database: db, Action: m.Action, Kind: m.Kind, Name: m.Name, To: m.To})
	return err
}

// Merge brings the changes of a revision onto a branch; see [txn.DB.Merge]. If the server
// ends before it has answered the error is [ErrUnknown].
func (c *Client) Merge(ctx context.Context, db, branch, rev string, o CommitOptions) (*txn.Commit, error) {
	out, err := once[wire.Commit](ctx, c, wire.OpMerge, wire.Merge{
		Database: db, Branch: branch, Rev: rev, Message: o.Message, Author: o.Author, Properties: o.Properties, DryRun: o.DryRun, Choices: choicesOut(o.Choices),
	})
	if err != nil {
		return nil, err
	}
	return commitIn(&out), nil
}

// raw is a reply that is parsed later.
type raw = json.RawMessage

// pages yields elements page by page.
func pages[In, T any](page func(skip int) (list []In, more bool, err error), convert func(*In) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for skip, more := 0, true; more; {
			list, next, err := page(skip)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for i := range list {
				if !yield(convert(&list[i]), nil) {
					return
				}
			}
			skip += len(list)
			more = next && len(list) > 0
		}
	}
}
