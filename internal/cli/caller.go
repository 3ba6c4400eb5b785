package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
)

// caller is the process in which a command was typed. A process that has
// databases open runs commands of other processes, whose working directories
// differ. So every path of a command goes through path or url before a file is
// opened; messages show the typed path.
type caller struct {
	dir  string       // working directory; "" is that of this process
	env  []string     // as os.Environ; nil is that of this process
	held []*engine.DB // databases that this process has open
	// apart says that databases which other processes have open are read through their
	// sockets: those processes do not run the command, or have passed it on to this one.
	apart  bool
	joined *joined // those processes
	// view is what targets name, and node a path in it, for reports about what a server
	// has open; nil for all other commands.
	view kv.ReadLister
	node string
}

type callerKey struct{}

// here is the caller of a command.
func here(cmd *cobra.Command) caller { return callerOf(cmd.Context()) }

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// path returns how this process reaches a file.
func (c caller) path(name string) string {
	if c.dir == "" || name == "" || filepath.IsAbs(name) {
		return name
	}
	return c.dir + string(filepath.Separator) + name
}

// url is path for a URL pipeline, which may begin with a path.
func (c caller) url(u string) string {
	root, _, _ := strings.Cut(u, "|")
	if rootURL.MatchString(root) {
		return u
	}
	return c.path(u)
}

// environ is the environment for programs that the command runs.
func (c caller) environ() []string {
	if c.env == nil {
		return os.Environ()
	}
	return slices.Clip(c.env)
}

// shown returns a message with typed paths. URLs are not changed.
func (c caller) shown(text string) string {
	if c.dir == "" {
		return text
	}
	dir := c.dir + string(filepath.Separator)
	parts := strings.Split(text, "file://"+dir)
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], dir, "")
	}
	return strings.Join(parts, "file://"+dir)
}

// database returns the open database in a directory, nil if this process does not
// have it open.
func (c caller) database(dir string) *engine.DB {
	if len(c.held) == 0 {
		return nil
	}
	want, err := os.Stat(c.path(dir))
	if err != nil {
		return nil
	}
	for _, db := range c.held {
		if have, err := os.Stat(db.Dir()); err == nil && os.SameFile(want, have) {
			return db
		}
	}
	return nil
}

// openDB opens the database that a command was given, or another handle of it if
// this process has it open. While it is open it is served to other processes.
func openDB(cmd *cobra.Command, dir string, o *engine.Options) (*engine.DB, error) {
	failed := func(e txn.CareError) { warn(cmd, e.Error()) }
	if db := here(cmd).database(dir); db != nil {
		h, err := db.Handle(o)
		if err == nil && (o == nil || !o.ReadOnly) {
			for _, e := range db.CareErrors() {
				failed(e)
			}
		}
		return h, err
	}
	to := shared(cmd, o)
	if !to.ReadOnly && to.CareFailed == nil {
		to.CareFailed = failed
	}
	db, err := engine.Open(cmd.Context(), here(cmd).path(dir), to)
	if held := here(cmd).through(err, o == readOnly); held != nil && o != nil && o.ReadOnly {
		if o == wholeIndex {
			return openCopy(cmd, dir, held, o)
		}
		peer, failed := here(cmd).joined.peer(cmd.Context(), held, o)
		return peer, here(cmd).unless(failed, err)
	}
	return db, err
}

// through decides whether a command reads a database, which err says is locked, through the
// process that has the database open: if the command is run apart, or needs versions alone.
// It returns the lock that err holds, or nil.
func (c caller) through(err error, versions bool) *engine.LockedError {
	var held *engine.LockedError
	if (c.apart || versions) && errors.As(err, &held) && local.Reachable(held) {
		return held
	}
	return nil
}

// unless returns the error of a command that could not join the process that has a database
// open: held, with which the command begins again, or failed if the command is run apart.
func (c caller) unless(failed, held error) error {
	if failed != nil && !c.apart {
		return held
	}
	return failed
}

// shared returns options for a database that is served while it is open. Opening
// waits as long as --wait.
func shared(cmd *cobra.Command, o *engine.Options) *engine.Options {
	var c engine.Options
	if o != nil {
		c = *o
	}
	wait(cmd, &c)
	c.Serve = serveLocally(cmd.Context())
	return &c
}

// sameFile reports whether two paths lead to one file or directory.
func (c caller) sameFile(a, b string) bool {
	x, errX := os.Stat(c.path(a))
	y, errY := os.Stat(c.path(b))
	return errX == nil && errY == nil && os.SameFile(x, y)
}
