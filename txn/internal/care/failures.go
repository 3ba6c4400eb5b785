package care

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/kv/index"
)

// Kinds of background work, for [Failure].
const (
	workCheckpoint = "checkpoint"
	WorkDelayed    = "delayed write"
	WorkLog        = "log of a session"
)

// Failure is the error of work that a database does by itself, which fails no
// operation of a user.
type Failure struct {
	// Work is "checkpoint", "delayed write", "log of a session", "tables of the index" or "remove files".
	Work string
	Err  error
}

// Error implements error.
func (e Failure) Error() string { return "background work failed: " + e.Work + ": " + e.Err.Error() }

// MarshalJSON writes the text of the cause.
func (e Failure) MarshalJSON() ([]byte, error) {
	return json.Marshal(failureForm{e.Work, Damage{Err: e.Err}})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (e *Failure) UnmarshalJSON(b []byte) error {
	var f failureForm
	err := json.Unmarshal(b, &f)
	*e = Failure{f.Work, f.Err.Known()}
	return err
}

type failureForm struct {
	Work string
	Err  Damage
}

// Unwrap returns the cause.
func (e Failure) Unwrap() error { return e.Err }

// failureFile in the directory of checkpoints has the error of the last attempt to make
// one, for later processes.
const failureFile = "ERROR"

// Failures are the errors of background work that has not succeeded since, the last for each work.
type Failures struct {
	// Noted, if not nil, is called when work fails that did not fail before.
	Noted func(Failure)

	mu   sync.Mutex
	last map[string]Failure
}

// List returns the errors, in the order of their work.
func (f *Failures) List() []Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Values(f.last), func(a, b Failure) int { return cmp.Compare(a.Work, b.Work) })
}

// Note takes the outcome of background work, and reports whether it failed after a
// success, or the other way. It may be called with locks of the index held.
func (f *Failures) Note(work string, err error) (changed bool) {
	f.mu.Lock()
	_, failed := f.last[work]
	if err == nil {
		delete(f.last, work)
	} else {
		if f.last == nil {
			f.last = map[string]Failure{}
		}
		f.last[work] = Failure{work, err}
	}
	f.mu.Unlock()
	if err != nil && !failed && f.Noted != nil {
		f.Noted(Failure{work, err})
	}
	return failed != (err != nil)
}

// note takes the outcome of an attempt to make a checkpoint. Where the error
// cannot be stored, later processes do not know of it.
func (c *Checkpoints) note(err error) {
	if !c.p.Failures.Note(workCheckpoint, err) || errors.Is(err, index.ErrFailed) || c.p.DB.Here() != nil {
		return
	}
	fs, dir := c.p.FS, c.p.FS.PathJoin(c.p.Dir, CheckpointDir)
	if err == nil {
		_ = fs.Remove(fs.PathJoin(dir, failureFile))
	} else if index.MakeDir(fs, dir) == nil {
		_ = index.ReplaceSmall(fs, dir, failureFile, []byte(strings.ReplaceAll(err.Error(), "\n", " ")))
	}
}

// loadError notes the error that an earlier process stored.
func (c *Checkpoints) loadError() error {
	text, err := index.ReadSmall(c.p.FS, c.p.FS.PathJoin(c.p.Dir, CheckpointDir, failureFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		c.p.Failures.Note(workCheckpoint, errors.New(strings.TrimSpace(string(text))))
	}
	return err
}
