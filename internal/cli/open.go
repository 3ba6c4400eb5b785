package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
)

// openDB opens the database that a command was given, or joins the process that has it
// open.
func openDB(cmd *cobra.Command, dir string, o *engine.Options) (*engine.DB, error) {
	failed := func(e txn.CareError) { warn(cmd, e.Error()) }
	to := shared(cmd, o)
	if !to.Engine.ReadOnly && to.Engine.CareFailed == nil {
		to.Engine.CareFailed = failed
	}
	db, err := local.Open(cmd.Context(), dir, to)
	if err == nil {
		noteOpen(db)
	}
	if err == nil && !to.Engine.ReadOnly {
		for _, e := range db.CareErrors() {
			if db.Versions().IsPeer() || e.Work == txn.WorkSpace { // others are told when they are found
				failed(e)
			}
		}
	}
	return db, err
}

// shared returns options for a database that is served to other processes while it is
// open. Opening waits as long as --wait.
func shared(cmd *cobra.Command, o *engine.Options) local.OpenOptions {
	to := local.OpenOptions{Serve: Serving(&local.Options{Hurry: cmd.Context().Done()}, nil)}
	if o != nil {
		to.Engine = *o
	}
	if to.Engine.Author == "" {
		set, _ := settings() // applySettings returns the error
		to.Engine.Author = set["author"]
	}
	to.Engine.Warn = func(text string) { warn(cmd, text) }
	wait(cmd, &to)
	return to
}

// alone returns the options of shared for a database that this process alone opens.
func alone(cmd *cobra.Command, o *engine.Options) *engine.Options {
	to := shared(cmd, o)
	to.Engine.Serve, to.Engine.Join = to.Serve, local.Join
	to.Engine.Locked = func(held *engine.LockedError) error {
		if to.Waiting != nil {
			to.Waiting(held)
		}
		return nil
	}
	return &to.Engine
}

// sameFile reports whether two paths lead to one file or directory.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// Serving is [engine.Options].Serve: other processes of this machine use the database while
// this one has it open. ended is as for [local.Serving].
func Serving(o *local.Options, ended func(error)) func(dir string) (*engine.Serving, error) {
	return func(dir string) (*engine.Serving, error) { return local.Serving(dir, o, ended) }
}
