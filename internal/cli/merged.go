package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/txn"
)

// mergedJSON is the result of a merge for --json.
type mergedJSON struct {
	Branch    string         `json:"branch"`
	Changed   bool           `json:"changed"`
	DryRun    bool           `json:"dry_run,omitempty"` // Changed has the changes that would be made
	Commit    *report.Commit `json:"commit,omitempty"`  // the branch's head now
	Conflicts []txn.Conflict `json:"conflicts"`
	Decided   []decision     `json:"decided,omitempty"` // conflicts that --ours and --theirs decided
	Healed    int64          `json:"healed,omitempty"`  // damaged chunks that were stored again
}

// listedError is a conflict whose parts were printed by the command.
type listedError struct{ error }

func (e listedError) Unwrap() error { return e.error }

// outcome returns the result of a merge onto a branch whose head was base, with
// its conflicts.
func (f *choiceFlags) outcome(branch string, c *txn.Commit, base txn.CommitID, err error) *mergedJSON {
	out := &mergedJSON{Branch: orMain(branch), DryRun: f.dryRun, Conflicts: []txn.Conflict{}}
	var conflict *txn.ConflictError
	switch {
	case errors.As(err, &conflict):
		out.Conflicts = append(out.Conflicts, conflict.Conflicts...)
	case err != nil:
		return nil
	default:
		out.Changed, out.Decided, out.Healed = c.ID != base, f.decided, f.healed
		if !f.dryRun {
			now := report.NewCommit(c)
			out.Commit = &now
		}
	}
	return out
}

// told prints the result of a merge onto a branch whose head was base.
func (f *choiceFlags) told(cmd *cobra.Command, branch string, c *txn.Commit, base txn.CommitID, err error) error {
	switch out := f.outcome(branch, c, base, err); {
	case out == nil:
		return err
	case f.json:
		return listed(err, printJSON(cmd, out))
	case err != nil:
		return err
	default:
		for i, d := range f.decided {
			if i == 20 {
				say(cmd, "and %d more; --json lists them", len(f.decided)-i)
				break
			}
			took := d.Take + " taken"
			if d.Kind == txn.ConflictAncestor && (d.Take == "ours" && d.Theirs == "put" || d.Take == "theirs" && d.Ours == "put") {
				took = "left out"
			}
			say(cmd, "%s: %v", took, d.Conflict)
		}
		if f.dryRun && out.Changed {
			say(cmd, "no conflicts")
		} else {
			printResult(cmd, c, base, f.healed)
		}
	}
	return nil
}

// listed returns an error whose conflicts were printed, joined with the error of
// printing.
func listed(err, printing error) error {
	if err != nil {
		err = listedError{err}
	}
	return errors.Join(err, printing)
}
