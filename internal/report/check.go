package report

import (
	"errors"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// Fsck is the answer of fsck.
type Fsck struct {
	AwayPages     int64     `json:"away_pages,omitempty"` // of a lazy clone, in the remote
	AwayPayloads  int64     `json:"away_payloads,omitempty"`
	CareErrors    []string  `json:"care_errors"`
	Commits       int64     `json:"commits"`
	Found         int64     `json:"found"`
	OrphanBytes   int64     `json:"orphan_bytes"`
	OrphanCommits int64     `json:"orphan_commits"`
	OrphanPages   int64     `json:"orphan_pages"`
	Pages         int64     `json:"pages"`
	PayloadBytes  int64     `json:"payload_bytes"`
	Payloads      int64     `json:"payloads"`
	Problems      []Problem `json:"problems"`
	Record        *string   `json:"record,omitempty"` // of a repair
	Refs          int64     `json:"refs"`
	Repaired      *[]string `json:"repaired,omitempty"` // by a repair
	Sessions      int64     `json:"sessions"`
	Values        int64     `json:"values"`
}

// Problem is a problem that fsck found.
type Problem struct {
	Kind     string   `json:"kind"`
	What     string   `json:"what"`
	Error    string   `json:"error"`
	Key      string   `json:"key,omitempty"`
	Array    string   `json:"array,omitempty"`
	Chunk    []int64  `json:"chunk,omitempty"`
	Versions int64    `json:"versions,omitempty"`
	Commits  []string `json:"commits,omitempty"`
	Refs     []string `json:"refs,omitempty"`
	Pack     string   `json:"pack,omitempty"`
	Offset   uint64   `json:"offset,omitempty"`
	Length   uint64   `json:"length,omitempty"`
	Page     string   `json:"page,omitempty"`
}

// NewFsck describes the findings of a check of a database. fixed is nil without a repair.
func NewFsck(db *engine.DB, r *txn.CheckReport, fixed *txn.RepairReport) Fsck {
	out := Fsck{
		AwayPages: r.AwayPages, AwayPayloads: r.AwayPayloads, CareErrors: []string{}, Commits: r.Commits, Found: r.Found,
		OrphanBytes: r.OrphanBytes, OrphanCommits: r.OrphanCommits, OrphanPages: r.OrphanPages,
		Pages: r.Pages, PayloadBytes: r.PayloadBytes, Payloads: r.Payloads, Problems: []Problem{},
		Refs: r.Refs, Sessions: r.Sessions, Values: r.Values,
	}
	if fixed != nil {
		out.Record, out.Repaired = &fixed.Record, &fixed.Done
	}
	for _, e := range db.CareErrors() {
		out.CareErrors = append(out.CareErrors, e.Error())
	}
	for _, p := range r.Problems {
		in := Problem{
			Kind: p.Kind, What: p.What, Error: p.Err.Error(), Key: p.Key, Array: p.Array, Chunk: p.Chunk, Versions: p.Versions,
			Commits: texts(p.Commits), Refs: p.Refs, Offset: p.Address.Offset, Length: p.Address.Length, Page: p.Page,
		}
		if p.Kind == txn.ProblemPayload || p.Kind == txn.ProblemPack {
			in.Pack = p.Address.Pack.String()
		}
		out.Problems = append(out.Problems, in)
	}
	return out
}

// RefCheck is the answer of refs check.
type RefCheck struct {
	Problems  []RefProblem `json:"problems"`
	Found     int64        `json:"found"`
	Forbidden int64        `json:"forbidden"` // of the problems found
	Checked   int64        `json:"checked"`   // references
	Next      int64        `json:"next"`      // where a check that was stopped goes on
}

// RefProblem is a reference that cannot be read.
type RefProblem struct {
	Key   string `json:"key"`
	URL   string `json:"url"`
	Kind  string `json:"kind"` // unreachable, changed, forbidden or failed
	Error string `json:"error"`
}

// Add counts a problem, and returns its kind. The problem is not kept in r.Problems: there may be
// millions.
func (r *RefCheck) Add(p engine.RefProblem) (kind string) {
	r.Found++
	switch {
	case errors.Is(p.Err, engine.ErrForbidden):
		r.Forbidden++
		return "forbidden"
	case errors.Is(p.Err, kv.ErrChanged):
		return "changed"
	case errors.Is(p.Err, engine.ErrUnreachable):
		return "unreachable"
	}
	return "failed"
}
