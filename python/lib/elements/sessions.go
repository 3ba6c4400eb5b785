package elements

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// sessionOut is a session.
type sessionOut struct {
	ID      string    `json:"id"`
	Branch  string    `json:"branch"`
	Base    string    `json:"base"`
	Created time.Time `json:"created"`
	Saved   time.Time `json:"saved"`
	Open    bool      `json:"open"`
	Label   string    `json:"label,omitempty"`
	Used    time.Time `json:"used,omitzero"`
	// The process that began it; "unknown" and 0 if it is not known.
	Program string `json:"program,omitempty"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	User    string `json:"user,omitempty"`
}

func sessionOf(s txn.SessionInfo) *sessionOut {
	by := s.By.Named()
	return &sessionOut{
		ID: s.ID.String(), Branch: s.Branch, Base: s.Base.String(), Created: s.Created, Saved: s.Saved, Open: s.Open, Label: s.Label,
		Used: s.Used, Program: by.Program, Host: by.Host, PID: by.PID, User: by.User,
	}
}

func sessions(ctx context.Context, db *engine.DB, _ none) ([]*sessionOut, error) {
	list, err := db.Sessions(ctx)
	out := []*sessionOut{}
	for _, s := range list {
		out = append(out, sessionOf(s))
	}
	return out, err
}

// opened opens the handle of a session, which is the integer.
func (r *Request) opened(d *database, s *engine.Session, err error) (*sessionOut, error) {
	if err != nil {
		return nil, err
	}
	r.add(&view{db: d, session: s})
	return sessionOf(s.Info()), nil
}

// beginIn describes a session to begin: one with an id was begun before, and was never stored.
type beginIn struct{ Branch, Label, ID, Base string }

func (in *beginIn) options() (o txn.BeginOptions, err error) {
	o.Branch, o.Label = in.Branch, in.Label
	if in.ID != "" {
		o.ID, err = txn.ParseSessionID(in.ID)
		base, _ := hex.DecodeString(in.Base)
		copy(o.Base[:], base)
	}
	return o, err
}

func begin(ctx context.Context, r *Request, in []byte) (any, error) {
	return with(func(ctx context.Context, d *database, in beginIn) (*sessionOut, error) {
		o, err := in.options()
		if err != nil {
			return nil, err
		}
		s, err := d.DB.BeginWith(ctx, o)
		return r.opened(d, s, err)
	})(ctx, r, in)
}

func resume(ctx context.Context, r *Request, in []byte) (any, error) {
	return with(func(ctx context.Context, d *database, name string) (*sessionOut, error) {
		id, err := txn.ParseSessionID(name)
		if err != nil {
			return nil, fmt.Errorf("%w: session %s", txn.ErrNoRef, name)
		}
		for {
			s, err := d.DB.Resume(ctx, id)
			if err == nil {
				// The transaction may have ended in another process, and begun again.
				_, err = s.Versions().Tx().Roots(ctx)
				if errors.Is(err, txn.ErrSessionClosed) && s.Abort() == nil {
					continue
				}
			}
			return r.opened(d, s, err)
		}
	})(ctx, r, in)
}

// onSession is a function about a session.
func onSession[In, Out any](fn func(ctx context.Context, s *engine.Session, in In) (Out, error)) func(ctx context.Context, r *Request, in []byte) (any, error) {
	return with(func(ctx context.Context, v *view, in In) (out Out, err error) {
		if v.session == nil {
			return out, fmt.Errorf("%w: a version cannot be written", engine.ErrReadOnly)
		}
		return fn(ctx, v.session, in)
	})
}

// choice takes a side of conflicts at and below a path.
type choice struct{ Path, Take string }

func choicesOf(list []choice) (out []txn.PathChoice) {
	for _, c := range list {
		take := txn.Ours
		if c.Take == "theirs" {
			take = txn.Theirs
		}
		out = append(out, txn.PathChoice{Path: c.Path, Choice: take})
	}
	return out
}

// fork opens a fork of a session. The integer is its handle.
func fork(ctx context.Context, r *Request, in []byte) (any, error) {
	return with(func(ctx context.Context, v *view, label string) (*sessionOut, error) {
		f, err := v.session.Fork(ctx)
		if err == nil && label != "" {
			f.SetLabel(label)
			if err = f.Savepoint(ctx); err != nil {
				err = errors.Join(err, f.Abort())
			}
		}
		return r.opened(v.db, f, err)
	})(ctx, r, in)
}

// join takes in the writes of a fork, and ends it.
func join(ctx context.Context, s *engine.Session, in struct {
	Fork    int64 // a handle
	Choices []choice
}) (none, error) {
	f, err := of[*view](in.Fork)
	if err != nil {
		return none{}, err
	}
	return none{}, s.Join(ctx, f.session, choicesOf(in.Choices))
}

func move(ctx context.Context, s *engine.Session, in struct{ From, To string }) (none, error) {
	return none{}, s.Rename(ctx, in.From, in.To)
}

func guard(ctx context.Context, s *engine.Session, paths []string) (none, error) {
	return none{}, s.Guard(ctx, paths...)
}

// appendGaps returns the gaps, as text, that values would make behind those of a coordinate.
func appendGaps(ctx context.Context, s *engine.Session, in struct {
	Path   string
	Values []byte
}) (out []string, err error) {
	gaps, all, err := s.AppendGaps(ctx, in.Path, in.Values, "the dataset")
	for _, g := range gaps {
		out = append(out, g.String())
	}
	if more := all - len(gaps); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out, err
}

func rebase(ctx context.Context, s *engine.Session, choices []choice) (*sessionOut, error) {
	err := s.Refresh(ctx, choicesOf(choices))
	return sessionOf(s.Info()), err
}

func changes(ctx context.Context, s *engine.Session, in struct {
	page
	Prefix string
}) (list[changeOut], error) {
	return part(in.page, s.Changes(ctx, in.Prefix), changeOf)
}

func savepoint(ctx context.Context, s *engine.Session, _ none) (*sessionOut, error) {
	err := s.Savepoint(ctx)
	return sessionOf(s.Info()), err
}

func commit(ctx context.Context, v *view, in struct {
	Message, Author string
	Properties      map[string]string
	AllowEmpty      bool `json:"allow_empty"`
	DryRun          bool `json:"dry_run"`
	Choices         []choice
}) (*commitOut, error) {
	if v.session == nil {
		return nil, fmt.Errorf("%w: a version cannot be written", engine.ErrReadOnly)
	}
	failed := v.db.DB.CareErrors()
	c, err := v.session.Commit(ctx, txn.CommitOptions{
		Message: in.Message, Author: in.Author, Properties: in.Properties, AllowEmpty: in.AllowEmpty, DryRun: in.DryRun, Choices: choicesOf(in.Choices),
	})
	if err != nil {
		return nil, err
	}
	out := commitOf(c)
	for _, e := range failed {
		out.Warnings = append(out.Warnings, e.Error())
	}
	return out, nil
}

func discard(_ context.Context, s *engine.Session, _ none) (none, error) { return none{}, s.Abort() }

func deletePrefix(ctx context.Context, s *engine.Session, prefix string) (none, error) {
	return none{}, s.DeletePrefix(ctx, prefix)
}
