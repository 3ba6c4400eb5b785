package serve

import (
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/txn"
)

// RefMove is a change of a branch or a tag.
type RefMove struct {
	Action string // "create", "delete", or "reset", which moves a branch
	Kind   string // "branch", "tag"
	Name   string
	To     string // the revision, but for "delete"
}

// MoveRef creates, deletes or moves a branch or tag, for administrators.
func (t *Table) MoveRef(ctx context.Context, who *Principal, name string, m RefMove) error {
	if err := who.MayAdminister(m.Action + " the " + m.Kind + " " + m.Name); err != nil {
		return err
	}
	db, err := t.Database(name)
	if err != nil {
		return err
	}
	var to txn.CommitID
	if m.Action != "delete" {
		if to, err = db.Resolve(ctx, m.To); err != nil {
			return err
		}
	}
	switch m.Action + " " + m.Kind {
	case "create branch":
		err = db.CreateBranch(ctx, m.Name, to)
	case "create tag":
		err = db.CreateTag(ctx, m.Name, to)
	case "delete branch":
		err = db.DeleteBranch(m.Name)
	case "delete tag":
		err = db.DeleteTag(m.Name)
	case "reset branch":
		_, err = db.Reset(ctx, m.Name, to)
	default:
		return fmt.Errorf("serve: cannot %s a %s: create, delete a branch or tag, or reset a branch", m.Action, m.Kind)
	}
	if err == nil {
		t.o.Log.InfoContext(ctx, m.Action+" "+m.Kind, "database", name, "who", who.Name, "name", m.Name, "commit", to.String())
	}
	return err
}

// Answer does what a peer of a database asks for; see [txn.DB.Answer]. Requests that may
// change the database are for administrators.
func (t *Table) Answer(ctx context.Context, who *Principal, name, request string, in []byte, progress func(report []byte)) ([]byte, error) {
	changes := txn.Changes(request, in)
	if changes {
		if err := who.MayAdminister("ask for " + Clip(request)); err != nil {
			return nil, err
		}
	}
	db, err := t.Database(name)
	if err != nil {
		return nil, err
	}
	out, err := db.Answer(ctx, request, in, progress)
	if err == nil && changes {
		t.o.Log.InfoContext(ctx, request, "database", name, "who", who.Name)
	}
	return out, err
}
