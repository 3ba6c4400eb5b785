package care

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Kinds of problems.
const (
	ProblemPage    = "page"    // of the index
	ProblemPayload = "payload" // of a chunk or a large document
	ProblemCommit  = "commit"
	ProblemRef     = "ref"
	ProblemReflog  = "reflog"
	ProblemSession = "session"
	ProblemPack    = "pack"
)

// Problem is something that is not as it must be.
type Problem struct {
	Kind string
	// What names the damaged thing in one line: kind, key, pack and offset.
	What string
	Err  error

	// Key is the key of a damaged payload, or the directory that a damaged page
	// belongs to, with a slash at its end. Array is the path of the array that
	// a chunk belongs to, and Chunk its coordinates; nil for what is no chunk.
	Key   string
	Array string
	Chunk []int64

	// Versions is how many commits hold the damaged thing at Key; Commits are
	// the first [MaxProblemCommits] of them, Refs the branches and tags that
	// point at one ("heads/main").
	Versions int64
	Commits  []catalog.CommitID
	Refs     []string

	// Address of a payload; Page is the name of a page.
	Address pack.Address
	Page    string

	// Hole says that the payload is known to be damaged: see SkipDamaged of TransferOptions.
	Hole bool
	sum  digest.Sum // of the payload
}

// SumOf returns the hash of the right bytes of a damaged payload.
func SumOf(p Problem) digest.Sum { return p.sum }

// MaxProblemCommits bounds Problem.Commits.
const MaxProblemCommits = 100

// Error implements error. The text names the damaged object, the versions that have it, and the reason.
func (p Problem) Error() string { return p.What + p.in() + ": " + p.Err.Error() }

// in says which versions are affected.
func (p Problem) in() string {
	if p.Versions == 0 {
		return ""
	}
	var names []string
	for _, r := range p.Refs {
		_, name, _ := strings.Cut(r, "/")
		names = append(names, name)
	}
	for _, c := range p.Commits {
		if len(names) < 3 {
			names = append(names, c.Short())
		}
	}
	s := ""
	if p.Versions > 1 {
		s = "s"
	}
	return fmt.Sprintf(" in %d version%s (%s)", p.Versions, s, strings.Join(names, ", "))
}

// Unwrap returns what is wrong with the thing.
func (p Problem) Unwrap() error { return p.Err }

// DamageError says that payloads are damaged, and where they are. It is kv.ErrCorrupt.
type DamageError struct {
	// Problems has an entry for each key whose payload is damaged, with the versions
	// that have the key.
	Problems []Problem
	Err      error
}

// Error implements error.
func (e *DamageError) Error() string {
	if len(e.Problems) == 0 {
		return e.Err.Error()
	}
	more := ""
	if n := len(e.Problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return e.Problems[0].Error() + more +
		"; with --skip-damaged, the copy has all but damaged chunks; \"zarrdb fsck --full --repair --from COPY\" heals them from a copy that has them"
}

// Unwrap returns what is wrong with the first of them.
func (e *DamageError) Unwrap() error { return e.Err }

// Damage is an error as JSON: its text, whether it is kv.ErrCorrupt, and the
// *[pack.CorruptError] in it.
type Damage struct{ Err error }

// Known is the error, which is not nil.
func (d Damage) Known() error {
	if d.Err == nil {
		return &toldError{text: "unknown"}
	}
	return d.Err
}

type damageForm struct {
	Text    string
	Corrupt bool
	Payload *pack.CorruptError `json:",omitempty"`
}

// MarshalJSON implements [json.Marshaler]. No error is null.
func (d Damage) MarshalJSON() ([]byte, error) {
	if d.Err == nil {
		return []byte("null"), nil
	}
	f := damageForm{Text: d.Err.Error(), Corrupt: errors.Is(d.Err, kv.ErrCorrupt)}
	errors.As(d.Err, &f.Payload)
	return json.Marshal(f)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (d *Damage) UnmarshalJSON(b []byte) error {
	var f *damageForm
	if err := json.Unmarshal(b, &f); err != nil || f == nil {
		return err
	}
	e := &toldError{text: f.Text}
	if f.Corrupt {
		e.is = kv.ErrCorrupt
	}
	if f.Payload != nil {
		e.is = f.Payload
	}
	d.Err = e
	return nil
}

// toldError is an error of another process.
type toldError struct {
	text string
	is   error
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.is }

// MarshalJSON writes the problem with its error; see [Problem.UnmarshalJSON].
func (p Problem) MarshalJSON() ([]byte, error) {
	return json.Marshal(problemForm{plainProblem(p), Damage{p.Err}})
}

// UnmarshalJSON is the inverse of MarshalJSON. The error has its text, and is kv.ErrCorrupt
// and a *[pack.CorruptError] if it was one.
func (p *Problem) UnmarshalJSON(b []byte) error {
	var f problemForm
	err := json.Unmarshal(b, &f)
	*p = Problem(f.plainProblem)
	p.Err = f.Err.Known()
	return err
}

type plainProblem Problem // without methods

type problemForm struct {
	plainProblem
	Err Damage
}

// MarshalJSON writes the problems and the error; see [DamageError.UnmarshalJSON].
func (e *DamageError) MarshalJSON() ([]byte, error) {
	return json.Marshal(damageErrorForm{e.Problems, Damage{e.Err}})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (e *DamageError) UnmarshalJSON(b []byte) error {
	var f damageErrorForm
	err := json.Unmarshal(b, &f)
	e.Problems, e.Err = f.Problems, f.Err.Known()
	return err
}

type damageErrorForm struct {
	Problems []Problem
	Err      Damage
}

// Damages are payloads and packs that cannot be read.
type Damages struct {
	Payloads []DamagedAt
	Packs    map[pack.ID]*Damage
}

// DamagedAt is a payload that cannot be read.
type DamagedAt struct {
	Address pack.Address
	Damage  Damage
}
