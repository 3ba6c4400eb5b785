package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Commands that only read work while a process of another user, or of another build,
// has the database open: that process runs no commands, but answers requests. So does
// a process that has one database of a command open while this one has the other.

// dialThrough connects to the process that has the database open, until the command ends.
func dialThrough(cmd *cobra.Command) (*local.Client, error) {
	return dialUntilEnd(cmd, here(cmd).through)
}

func dialUntilEnd(cmd *cobra.Command, socket string) (*local.Client, error) {
	c, err := local.Dial(cmd.Context(), socket, nil)
	if err == nil {
		context.AfterFunc(cmd.Context(), func() { _ = c.Close() })
	}
	return c, err
}

// openThrough opens a version for reading through a socket.
func openThrough(cmd *cobra.Command, socket string, t target, o *engine.SourceOptions) (*engine.Source, error) {
	c, err := dialUntilEnd(cmd, socket)
	if err != nil {
		return nil, err
	}
	v, err := c.View(cmd.Context(), "", t.rev)
	if err != nil {
		return nil, err
	}
	return engine.OpenViewSource(v, here(cmd).path(t.db), t.path, o)
}

// through lists the commits of a version and path.
func (f *logFlags) through(cmd *cobra.Command, t target) error {
	if f.followed {
		return fmt.Errorf("%s --follow: %w beside the process that has %s open, which is of another user or another build",
			cmd.CommandPath(), errors.ErrUnsupported, t.db)
	}
	c, err := dialThrough(cmd)
	if err != nil {
		return err
	}
	branches, tags, err := c.Refs(cmd.Context(), "")
	if err != nil {
		return err
	}
	return f.print(cmd, refNames(branches, tags), func(yield func(txn.PathCommit, error) bool) {
		for c, err := range c.Log(cmd.Context(), "", t.rev, t.path) {
			if !yield(txn.PathCommit{Commit: c}, err) {
				return
			}
		}
	})
}

// showThrough shows a commit and what it changed.
func showThrough(cmd *cobra.Command, t target, asJSON bool) error {
	client, err := dialThrough(cmd)
	if err != nil {
		return err
	}
	c, err := client.Resolve(cmd.Context(), "", t.rev)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(cmd, toJSON(c))
	}
	branches, tags, err := client.Refs(cmd.Context(), "")
	if err != nil {
		return err
	}
	printCommit(cmd, c, refNames(branches, tags)[c.ID])
	if len(c.Parents) == 0 {
		return nil
	}
	return diffFlags{}.printReport(cmd, client, c.Parents[0], c.ID, "")
}

// through compares two versions.
func (f diffFlags) through(cmd *cobra.Command, t target, revs []string) error {
	c, err := dialThrough(cmd)
	if err != nil {
		return err
	}
	var commits [2]*txn.Commit
	for i, rev := range revs {
		if commits[i], err = c.Resolve(cmd.Context(), "", rev); err != nil {
			return err
		}
	}
	from, to := commits[0].ID, commits[1].ID
	if !f.json {
		say(cmd, "from %s (%s) to %s (%s)", from.Short(), revs[0], to.Short(), revs[1])
	}
	return f.printReport(cmd, c, from, to, t.path)
}

// printReport is print for a database of another process.
func (f diffFlags) printReport(cmd *cobra.Command, c *local.Client, from, to txn.CommitID, path string) error {
	text, err := c.Report(cmd.Context(), "", serve.Report{Kind: "diff", Rev: from.String(), To: to.String(), Path: path, Values: f.values})
	if err != nil {
		return err
	}
	if f.json {
		_, err := cmd.OutOrStdout().Write(text)
		return err
	}
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		var node engine.NodeChange
		if err := json.Unmarshal(line, &node); err != nil {
			return err
		}
		sayChange(cmd, node)
		// Lines of values follow that of their array.
		values := func(yield func(engine.ValueChange, error) bool) {
			for len(text) > 0 {
				line, rest, _ := bytes.Cut(text, []byte("\n"))
				var v struct {
					engine.ValueChange
					Kind string `json:"kind"`
				}
				if err := json.Unmarshal(line, &v); err != nil {
					yield(engine.ValueChange{}, err)
					return
				}
				if v.Kind != "" { // the next node
					return
				}
				text = rest
				if !yield(v.ValueChange, nil) {
					return
				}
			}
		}
		err := f.sayValues(cmd, values, func() (*zarr.Array, error) {
			v, err := c.View(cmd.Context(), "", to.String())
			if err != nil {
				return nil, err
			}
			defer v.Close()
			return zarr.OpenArray(cmd.Context(), v, node.Path, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// refsThrough lists the branches or the tags.
func refsThrough(cmd *cobra.Command, kind string, asJSON bool) error {
	c, err := dialThrough(cmd)
	if err != nil {
		return err
	}
	branches, tags, err := c.Refs(cmd.Context(), "")
	if err != nil {
		return err
	}
	if kind == "tag" {
		return printRefs(cmd, tags, asJSON)
	}
	return printRefs(cmd, branches, asJSON)
}
