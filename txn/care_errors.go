package txn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/care"
)

// Kinds of background work, for [CareError].
const (
	careCheckpoint = "checkpoint"
	careDelayed    = "delayed write"
	careLog        = "log of a session"
	careTables     = index.WorkTables
	careFiles      = index.WorkFiles
)

// CareError is the error of work that a database does by itself, which fails no
// operation of a user.
type CareError struct {
	// Work is "checkpoint", "delayed write", "log of a session", "tables of the index" or "remove files".
	Work string
	Err  error
}

// Error implements error.
func (e CareError) Error() string { return "background work failed: " + e.Work + ": " + e.Err.Error() }

// MarshalJSON writes the text of the cause.
func (e CareError) MarshalJSON() ([]byte, error) {
	return json.Marshal(careErrorForm{e.Work, care.Damage{Err: e.Err}})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (e *CareError) UnmarshalJSON(b []byte) error {
	var f careErrorForm
	err := json.Unmarshal(b, &f)
	*e = CareError{f.Work, f.Err.Known()}
	return err
}

type careErrorForm struct {
	Work string
	Err  care.Damage
}

// Unwrap returns the cause.
func (e CareError) Unwrap() error { return e.Err }

// careErrorFile in the directory of checkpoints has the error of the last attempt to make
// one, for later processes.
const careErrorFile = "ERROR"

// careErrors are the last errors by their work.
type careErrors struct {
	mu   sync.Mutex
	last map[string]CareError
}

// CareErrors returns the errors of background work that has not succeeded since. Those of
// checkpoints are remembered by the directory. It works after Close too.
func (db *DB) CareErrors() []CareError {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	list, _ := asked(ctx, db, "care errors", none{}, db.careErrors.list)
	return list
}

func (c *careErrors) list(context.Context, none) ([]CareError, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.last), func(a, b CareError) int { return cmp.Compare(a.Work, b.Work) }), nil
}

// note takes the outcome of background work, and reports whether it failed after a
// success, or the other way. It may be called with locks of the index held.
func (db *DB) note(work string, err error) (changed bool) {
	c := &db.careErrors
	c.mu.Lock()
	_, failed := c.last[work]
	if err == nil {
		delete(c.last, work)
	} else {
		if c.last == nil {
			c.last = map[string]CareError{}
		}
		c.last[work] = CareError{work, err}
	}
	c.mu.Unlock()
	if err != nil && !failed && db.opts.CareFailed != nil {
		db.opts.CareFailed(CareError{work, err})
	}
	return failed != (err != nil)
}

// noteCheckpoint takes the outcome of an attempt to make a checkpoint. Where the error
// cannot be stored, later processes do not know of it.
func (db *DB) noteCheckpoint(err error) {
	if !db.note(careCheckpoint, err) || errors.Is(err, index.ErrFailed) || db.Here() != nil {
		return
	}
	fs, dir := db.opts.FS, db.opts.FS.PathJoin(db.dir, checkpointDir)
	if err == nil {
		_ = fs.Remove(fs.PathJoin(dir, careErrorFile))
	} else if index.MakeDir(fs, dir) == nil {
		_ = index.ReplaceSmall(fs, dir, careErrorFile, []byte(strings.ReplaceAll(err.Error(), "\n", " ")))
	}
}

// loadCareErrors notes the error that an earlier process stored.
func (db *DB) loadCareErrors() error {
	text, err := index.ReadSmall(db.opts.FS, db.opts.FS.PathJoin(db.dir, checkpointDir, careErrorFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		db.note(careCheckpoint, errors.New(strings.TrimSpace(string(text))))
	}
	return err
}
