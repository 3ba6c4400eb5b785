package local

import (
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

func commitOut(c *txn.Commit) *wire.Commit {
	out := &wire.Commit{
		ID: c.ID.String(), Generation: c.Generation, Author: c.Author, Time: c.Time, Message: c.Message, Properties: c.Properties,
	}
	for _, p := range c.Parents {
		out.Parents = append(out.Parents, p.String())
	}
	return out
}

func commitIn(c *wire.Commit) *txn.Commit {
	out := &txn.Commit{
		ID: commitID(c.ID), Generation: c.Generation, Author: c.Author, Time: c.Time, Message: c.Message, Properties: c.Properties,
	}
	for _, p := range c.Parents {
		out.Parents = append(out.Parents, commitID(p))
	}
	return out
}

func sessionOut(s txn.SessionInfo) *wire.Session {
	by := s.By.Named()
	return &wire.Session{
		ID: s.ID.String(), Branch: s.Branch, Base: s.Base.String(), Created: s.Created, Saved: s.Saved, Open: s.Open, Label: s.Label, Used: s.Used,
		Program: by.Program, Host: by.Host, PID: by.PID, User: by.User,
	}
}

func sessionIn(s *wire.Session) txn.SessionInfo {
	id, _ := txn.ParseSessionID(s.ID) // zero if invalid
	return txn.SessionInfo{
		ID: id, Branch: s.Branch, Base: commitID(s.Base), Created: s.Created, Saved: s.Saved, Open: s.Open, Label: s.Label, Used: s.Used,
		By: txn.Origin{Program: s.Program, Host: s.Host, PID: s.PID, User: s.User},
	}
}

func refsOut(refs []txn.Ref) []wire.Ref {
	out := make([]wire.Ref, len(refs))
	for i, r := range refs {
		out[i] = wire.Ref{Name: r.Name, Commit: r.Commit.String()}
	}
	return out
}

func refsIn(refs []wire.Ref) []txn.Ref {
	out := make([]txn.Ref, len(refs))
	for i, r := range refs {
		out[i] = txn.Ref{Name: r.Name, Commit: commitID(r.Commit)}
	}
	return out
}
