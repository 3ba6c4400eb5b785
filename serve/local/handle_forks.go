package local

import (
	"context"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// choicesIn returns the choices of a request.
func choicesIn(choices []wire.Choice) ([]txn.PathChoice, error) {
	var rules []txn.PathChoice
	for _, choice := range choices {
		rule := txn.PathChoice{Path: choice.Path}
		switch choice.Take {
		case "ours":
			rule.Choice = txn.Ours
		case "theirs":
			rule.Choice = txn.Theirs
		default:
			return nil, fmt.Errorf("%w: %q is not a side of a conflict: ours, theirs", ErrRequest, choice.Take)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func (c *conn) rebase(ctx context.Context, v *view, in *wire.Rebase) (*wire.Session, error) {
	decide, err := choicesIn(in.Choices)
	if err != nil {
		return nil, err
	}
	if err := v.Session.Engine().Refresh(ctx, decide); err != nil {
		return nil, err
	}
	return sessionOut(v.Session.Engine().Info()), nil
}

func (c *conn) fork(ctx context.Context, v *view, _ *wire.Fork) (*wire.View, error) {
	f, err := v.Session.Fork(ctx, c.origin())
	if err != nil {
		return nil, err
	}
	return c.opened(f.View())
}

func (c *conn) joinFork(ctx context.Context, v *view, in *wire.Join) (none, error) {
	decide, err := choicesIn(in.Choices)
	if err != nil {
		return none{}, err
	}
	f, err := c.s.t.Session(ctx, c.who, c.s.name, strings.TrimPrefix(in.Session, serve.SessionPrefix))
	if err != nil {
		return none{}, err
	}
	return none{}, v.Session.Join(ctx, f, decide)
}
