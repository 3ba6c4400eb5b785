package main

import (
	"context"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// target is a parsed TARGET: a place in a database, or a URL.
type target struct {
	db, rev, path string
	url           string // set if it is no database
}

// rootURL matches what begins a URL pipeline. A single letter is a Windows drive.
var rootURL = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`)

// parseTarget reads DB[@REV][:PATH], a URL pipeline, or a bare path. Which
// prefix of it is the database is looked up on disk, so that @ and : may stand
// in file names too.
func parseTarget(s string) target {
	if strings.Contains(s, "|") {
		return target{url: s}
	}
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '@' && s[i] != ':' {
			continue
		}
		if i == 0 || !engine.IsDatabase(s[:i]) {
			continue
		}
		t := target{db: s[:i]}
		rest := s[i:]
		if rev, ok := strings.CutPrefix(rest, "@"); ok {
			n := revEnd(rev)
			t.rev, rest = rev[:n], rev[n:]
		}
		t.path = strings.Trim(strings.TrimPrefix(rest, ":"), "/")
		return t
	}
	return target{url: s}
}

// revEnd finds the ":" that ends a revision; one inside @{…} does not.
func revEnd(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ':':
			if depth <= 0 {
				return i
			}
		}
	}
	return len(s)
}

// parseDB is parseTarget for commands that only work on databases.
func parseDB(s string) (target, error) {
	t := parseTarget(s)
	if t.db != "" {
		return t, nil
	}
	if rootURL.MatchString(t.url) || strings.Contains(t.url, "|") {
		return t, usagef("%s: this command needs a database, not a URL", s)
	}
	// Opening it says what is wrong with it.
	db, rest, _ := strings.Cut(t.url, ":")
	t.db, t.rev, _ = strings.Cut(db, "@")
	t.path, t.url = strings.Trim(rest, "/"), ""
	return t, nil
}

// sourceFlags are the flags of every command that reads a TARGET.
type sourceFlags struct {
	session string
}

func (f *sourceFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.session, "session", "", "look into the open session with this `ID`")
}

// open opens what a target names for reading.
func (f *sourceFlags) open(ctx context.Context, s string) (*engine.Source, error) {
	t := parseTarget(s)
	if t.url != "" {
		if f.session != "" {
			return nil, usagef("--session needs a database")
		}
		return engine.OpenSource(ctx, t.url, nil)
	}
	return engine.OpenDatabaseSource(ctx, t.db, t.rev, f.session, t.path, nil)
}

// node opens the array or group that a target names.
func (f *sourceFlags) node(ctx context.Context, s string) (*engine.Source, *zarr.Node, error) {
	src, err := f.open(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	n, err := src.Node(ctx)
	if err != nil {
		src.Close()
		return nil, nil, err
	}
	return src, n, nil
}

// writeFlags are the flags of every command that makes a commit.
type writeFlags struct {
	message string
	author  string
	session string
}

func (f *writeFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.message, "message", "m", "", "what the commit does")
	cmd.Flags().StringVar(&f.author, "author", "", "who did it (default user@host)")
	cmd.Flags().StringVar(&f.session, "session", "", "write into the open session with this `ID` instead of committing")
}

// update runs fn on a session of the target's branch and commits, or leaves a
// savepoint if a session was named. It returns the commit, nil for a session.
func (f *writeFlags) update(ctx context.Context, t target, message string, fn func(*engine.DB, *engine.Session) error) (*txn.Commit, error) {
	db, err := engine.Open(t.db, &engine.Options{Author: f.author})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if f.session != "" {
		return nil, f.inSession(ctx, db, t, fn)
	}
	s, err := db.Begin(ctx, t.rev)
	if err != nil {
		return nil, err
	}
	defer s.Abort() // does nothing after the commit
	if err := fn(db, s); err != nil {
		return nil, err
	}
	if f.message != "" {
		message = f.message
	}
	return s.Commit(ctx, txn.CommitOptions{Message: message, Author: f.author})
}

func (f *writeFlags) inSession(ctx context.Context, db *engine.DB, t target, fn func(*engine.DB, *engine.Session) error) error {
	id, err := txn.ParseSessionID(f.session)
	if err != nil {
		return err
	}
	s, err := db.Resume(ctx, id)
	if err != nil {
		return err
	}
	if t.rev != "" && t.rev != s.Branch() {
		return usagef("session %s is on branch %s, not %s", f.session, s.Branch(), t.rev)
	}
	if err := fn(db, s); err != nil {
		return err // the session stays at its last savepoint
	}
	return s.Detach(ctx)
}

// report prints what a writing command did.
func report(cmd *cobra.Command, c *txn.Commit) {
	if c != nil {
		cmd.Printf("%s %s\n", c.ID.Short(), firstLine(c.Message))
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
