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

// Sessions lists the sessions that can be resumed or are open, oldest first.
func (c *Client) Sessions(ctx context.Context, db string) ([]txn.SessionInfo, error) {
	out, err := query[wire.Sessions](ctx, c, wire.OpSessions, wire.Database{Database: db})
	list := make([]txn.SessionInfo, len(out.Sessions))
	for i := range out.Sessions {
		list[i] = sessionIn(&out.Sessions[i])
	}
	return list, err
}

// Log yields the version that a revision names and its ancestors, as [txn.DB.Log];
// with a path, those alone that changed something at or below it.
func (c *Client) Log(ctx context.Context, db, rev, path string) iter.Seq2[*txn.Commit, error] {
	return func(yield func(*txn.Commit, error) bool) {
		in := wire.Log{Database: db, Rev: rev, Path: path, Limit: pageKeys}
		for more := true; more; {
			out, err := query[wire.Commits](ctx, c, wire.OpLog, &in)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range out.Commits {
				if !yield(commitIn(&out.Commits[i]), nil) {
					return
				}
			}
			if in.Skip == 0 && path == "" && len(out.Commits) > 0 {
				in.Rev = out.Commits[0].ID // a branch may move before the next page
			}
			in.Skip += len(out.Commits)
			more = out.More && len(out.Commits) > 0
		}
	}
}

// Diff yields the keys below prefix that differ between two versions, as
// [txn.DB.Diff].
func (c *Client) Diff(ctx context.Context, db string, from, to txn.CommitID, prefix string) iter.Seq2[txn.Change, error] {
	return pages(func(skip int) (wire.Changes, error) {
		return query[wire.Changes](ctx, c, wire.OpDiff, wire.Diff{
			Database: db, From: from.String(), To: to.String(), Prefix: prefix, Skip: skip, Limit: pageKeys,
		})
	})
}

// raw is a reply that is parsed later.
type raw = json.RawMessage

// pages yields changes page by page.
func pages(page func(skip int) (wire.Changes, error)) iter.Seq2[txn.Change, error] {
	return func(yield func(txn.Change, error) bool) {
		for skip, more := 0, true; more; {
			out, err := page(skip)
			if err != nil {
				yield(txn.Change{}, err)
				return
			}
			for i := range out.Changes {
				if !yield(changeIn(&out.Changes[i]), nil) {
					return
				}
			}
			skip += len(out.Changes)
			more = out.More && len(out.Changes) > 0
		}
	}
}

// Report answers a question about a database with the JSON that a command prints, one
// value on each line where it prints lines; see [serve.Table.Report]. A server of another
// build may not know the request: errors.ErrUnsupported.
func (c *Client) Report(ctx context.Context, db string, r serve.Report) (answer []byte, err error) {
	meta, err := json.Marshal(wire.Report{Database: db, Kind: r.Kind, Rev: r.Rev, To: r.To, Path: r.Path, Number: r.Number, Values: r.Values})
	if err != nil {
		return nil, err
	}
	err = c.again(ctx, func(l *link) error {
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpReport, Meta: meta}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		answer = f.Body
		return nil
	})
	return answer, err
}
