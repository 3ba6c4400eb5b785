// Package cli is the command line of zarrdb. A command runs in the process in which it was
// typed; where another process has the database open, the command joins that process.
//
//	Main ─▶ run ─▶ newRoot ─▶ one xxxCmd function a command
//	         │                   │
//	         │                   ├─▶ openDB, sourceFlags.open: a database or any target
//	         │                   └─▶ package report: what --json and text print
//	         └─▶ exit code, one line of error
//
// Files named cmd_*.go have the commands; the others have shared code.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/internal/table"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Exit codes, as the help of the root command lists them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitConflict    = 3
	exitNotFound    = 4
	exitCorrupt     = 5
	exitInterrupted = 130
)

// Main is the program: it runs the command line of the process and ends it with
// the exit code. Signals end a command cleanly, a second one at once. tables are the formats of tables that
// the program is linked with.
func Main(tables table.Formats) {
	os.Exit(run(WithTables(interruptible(), tables), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs a command line, prints its error on one line, and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	root := newRoot()
	root.SetArgs(args)
	if stdin != nil {
		if err := closedInput(stdin); err != nil {
			stdin = failing{err}
		}
		root.SetIn(&blockingReader{blocking: blocking{ctx: ctx}, r: stdin})
	}
	out := &stdoutWriter{w: &blockingWriter{blocking: blocking{ctx: ctx}, w: stdout}}
	root.SetOut(out)
	root.SetErr(stderr)
	before := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		err := before(cmd, args)
		if err == nil {
			page(cmd, out, cancel)
		}
		return err
	}
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		addCompleters(root)
	}
	misnamed := strictHelp(root)
	err := root.ExecuteContext(ctx)
	_ = out.flush() // it remembers the error
	if p, ok := out.w.w.(*pager); ok {
		if p.end(); p.left {
			return exitOK
		}
	}
	if err == nil {
		err = cmp.Or(*misnamed, out.err)
	}
	if err == nil {
		return exitOK
	}
	code := exitCode(ctx, err)
	var conflict *txn.ConflictError
	if errors.As(err, &conflict) && !errors.As(err, &listedError{}) {
		for _, c := range conflict.Conflicts {
			say(root, "%s", c)
		}
		_ = out.flush() // the message below comes after it
	}
	// Some messages begin with the typed command.
	text := message(err, code) + mapHint(err)
	fmt.Fprintln(stderr, "zarrdb: "+strings.TrimPrefix(report.Escape(text, ""), "zarrdb "))
	return code
}

// message is an error on one line, for people.
func message(err error, code int) string {
	var locked *engine.LockedError
	switch {
	case code == exitInterrupted && errors.Is(err, engine.ErrResumable):
		return "interrupted; what was copied is kept: the same command with --resume goes on"
	case code == exitInterrupted && errors.As(err, &againError{}):
		return "interrupted; what was copied is kept: the same command goes on"
	case code == exitInterrupted:
		return "interrupted"
	case errors.As(err, &locked) && errors.Is(err, serve.ErrDenied):
		return fmt.Sprintf("%s is in use by %s, which lets only its own user write; commands that only read work meanwhile", filepath.Dir(locked.Dir), holder(locked))
	case errors.As(err, &locked) && errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, local.ErrUnknown) && !errors.Is(err, txn.ErrLost):
		return fmt.Sprintf("%s is in use by %s, which does not answer; if it was stopped, kill -CONT %d lets it go on", filepath.Dir(locked.Dir), holder(locked), locked.Holder.PID)
	case errors.As(err, &locked) && !errors.Is(err, local.ErrGone):
		why := "that process keeps others out"
		if locked.Holder.PID == 0 || locked.Reader {
			why = "it did not give the database up"
		} else if !locked.Holder.Here() {
			why = "a database is open on one host at a time"
		} else if locked.Holder.Socket != "" {
			why = "no process listens on its socket " + locked.Holder.Socket
		}
		return fmt.Sprintf("%s is in use by %s: %s; see --wait", filepath.Dir(locked.Dir), holder(locked), why)
	}
	text := fault.OneLine(err)
	var missing *fs.PathError
	if errors.As(err, &missing) { // it is named twice, first as a URL
		text = strings.Replace(text, "file://"+missing.Path+": "+missing.Op+" "+missing.Path, missing.Path, 1)
		text = strings.Replace(text, "file://"+missing.Path+"/: "+missing.Op+" "+missing.Path, missing.Path, 1)
		if code == exitNotFound {
			text += nodeHint(missing.Path)
		}
	}
	if errors.Is(err, txn.ErrNoRef) && strings.Contains(text, `"HEAD"`) {
		text += " (the newest version is named by its branch: main, and main~1 is the one before)"
	}
	if errors.Is(err, zarr.ErrExists) && strings.HasSuffix(text, "choose another path or overwrite it") {
		text += " (--to, --overwrite)"
	}
	if errors.Is(err, engine.ErrResumable) {
		text += " with --resume"
	}
	if source.IsForbidden(err) && (!errors.Is(err, engine.ErrForbidden) || strings.Contains(text, ": to follow it, allow ")) {
		text += " (--allow; for a database once for all: zarrdb refs allow)"
	}
	if errors.Is(err, engine.ErrNotHere) {
		text += " (--validate none links it all the same)"
	}
	return text + report.Undecoded(err)
}

// mapHint spells the --url-map that helps if a file is missing which a set names relative
// to the current folder.
func mapHint(err error) string {
	var missing *engine.MissingError
	if !errors.As(err, &missing) {
		return ""
	}
	u, uerr := source.ReferredURL(missing.Place.URL())
	if uerr != nil {
		return ""
	}
	path, uerr := u.Root().OSPath()
	here, herr := filepath.Abs(".")
	if uerr != nil || herr != nil {
		return ""
	}
	folder, name := "", ""
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		below, _ := filepath.Rel(dir, path)
		if _, err := os.Stat(filepath.Join(here, below)); err == nil {
			folder, name = dir, below // the longest name counts
		}
	}
	if name == "" {
		return ""
	}
	if rel, err := filepath.Rel(here, folder); err == nil && filepath.IsLocal(rel) {
		folder = rel
	}
	return fmt.Sprintf(" (relative URLs begin at the folder of the set, and %s is below the current folder: --url-map %s=./ reads it there)",
		name, shellWord(filepath.ToSlash(folder)+"/"))
}

// nodeHint returns the target of a node, if a path looks for it among the files
// of the database.
func nodeHint(path string) string {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if engine.IsDatabase(dir) {
			node, _ := filepath.Rel(dir, path)
			return fmt.Sprintf(" (%s is a database: write %s:%s)", filepath.Base(dir), dir, filepath.ToSlash(node))
		}
	}
	return ""
}

// usageError is a mistake in how the program was called.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func exitCode(ctx context.Context, err error) int {
	switch {
	case errors.As(err, &usageError{}), errors.Is(err, engine.ErrName):
		return exitUsage
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, engine.ErrConflict):
		return exitConflict
	case errors.Is(err, engine.ErrCorrupt):
		return exitCorrupt
	case errors.Is(err, engine.ErrLocked): // its socket may be missing
		return exitFailed
	case errors.Is(err, engine.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	}
	return exitFailed
}

// shellWord spells an argument as a shell takes it.
func shellWord(arg string) string {
	if arg != "" && !strings.ContainsFunc(arg, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+,=~^", r) || r >= 0x80)
	}) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// failing is an input that cannot be read.
type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }
