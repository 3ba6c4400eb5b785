package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// target is a parsed TARGET: a place in a database, or a URL.
type target struct {
	db, rev, path string
	url           string // set if it is no database
	failed        error  // why it could not be found out whether a remote is at a URL
}

// rootURL matches the beginning of a URL pipeline. A single letter is a Windows
// drive.
var rootURL = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`)

// parseTarget reads DB[@REV][:PATH], a URL pipeline, or a bare path. The prefix
// that is a database is found on disk, so that file names may contain @ and :.
func parseTarget(s string) target { return parseTargetOf(s, true) }

// parseTargetOf is parseTarget. Without ask, a URL is a remote only if the cache has that: among many sources a request for each one takes too long.
func parseTargetOf(s string, ask bool) target {
	if strings.Contains(s, "|") {
		return target{url: s}
	}
	if engine.IsRemote(s) {
		return remoteTarget(s, ask)
	}
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '@' && s[i] != ':' {
			continue
		}
		if i > 0 && mayBeDatabase(s[:i]) {
			return targetAt(s, i)
		}
	}
	return target{url: s}
}

// targetAt reads a target of a database whose name has n bytes.
func targetAt(s string, n int) target {
	t := target{db: s[:n]}
	rest := s[n:]
	if rev, ok := strings.CutPrefix(rest, "@"); ok {
		n := revEnd(rev)
		t.rev, rest = rev[:n], rev[n:]
	}
	t.path = strings.Trim(strings.TrimPrefix(rest, ":"), "/")
	return t
}

// askedRemotes has the answers whether remotes are at URLs, as far as this process has asked.
var askedRemotes sync.Map

type remoteAnswer struct {
	is  bool
	err error
}

// remoteTarget reads URL[@REV][:PATH] where a remote is at the URL: one that the cache has, or else a request finds it out.
func remoteTarget(s string, ask bool) target {
	var ends []int
	for i := strings.Index(s, "://") + 3; i <= len(s); i++ {
		if i == len(s) || s[i] == '@' || s[i] == ':' {
			ends = append(ends, i)
		}
	}
	for _, i := range ends {
		if engine.RemoteCacheDir(s[:i]) != "" {
			return targetAt(s, i)
		}
	}
	t := target{url: s}
	for _, i := range ends {
		if !ask || source.Unreachable(t.failed) {
			break
		}
		asked, _ := askedRemotes.Load(s[:i])
		answer, ok := asked.(remoteAnswer)
		if !ok {
			answer.is, answer.err = engine.HasRemote(context.Background(), s[:i], nil) // a signal ends the process
			askedRemotes.Store(s[:i], answer)
		}
		if answer.is {
			return targetAt(s, i)
		}
		if t.failed == nil || source.Unreachable(answer.err) {
			t.failed = answer.err
		}
	}
	return t
}

// mayBeDatabase reports whether a directory holds a database, or this user may not look
// into it: opening it then says so.
func mayBeDatabase(dir string) bool {
	if engine.IsDatabase(dir) {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, txn.FormatFile))
	return errors.Is(err, fs.ErrPermission)
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

// wholeDB refuses a path where a command is about the whole database.
func (t target) wholeDB(cmd *cobra.Command) error {
	if t.path != "" {
		hint := ""
		if strings.ContainsAny(t.path, "~^") {
			hint = fmt.Sprintf("; a version is named %s@%s", t.db, t.path)
		}
		return usagef("%s: it is about the whole database, leave out :%s%s", cmd.CommandPath(), t.path, hint)
	}
	return nil
}

// parseDB is parseTarget for commands that only work on databases.
func parseDB(s string) (target, error) {
	t := parseTarget(s)
	if t.db != "" {
		return t, nil
	}
	if t.failed != nil {
		return t, t.failed
	}
	if err := t.noDatabase(); errors.Is(err, txn.ErrNotDatabase) {
		return t, err // a URL could look like "w.zdb:temp"
	}
	if err := notDatabase(s); err != nil {
		return t, err
	}
	if hint := nodeHint(s); hint != "" {
		return t, fmt.Errorf("%s: %w%s", s, txn.ErrNotDatabase, hint)
	}
	if rootURL.MatchString(t.url) || strings.Contains(t.url, "|") {
		return t, usagef("%s: this command needs a database, not a URL; \"zarrdb import NAME.zdb URL\" makes one of a store", zurl.Redact(s))
	}
	// Opening it returns the error.
	db, rest, _ := strings.Cut(t.url, ":")
	t.db, t.rev, _ = strings.Cut(db, "@")
	t.path, t.url = strings.Trim(rest, "/"), ""
	return t, nil
}

// notDatabase returns an error with the command to type if a target of a command
// for databases is a local store or lies in one, otherwise nil.
func notDatabase(s string) error {
	if s == "" {
		return nil
	}
	for i := range len(s) + 1 {
		if i < len(s) && s[i] != '@' && s[i] != ':' {
			continue
		}
		store := ""
		for p := filepath.Clean(s[:max(i, 1)]); ; p = filepath.Dir(p) {
			if isStore(p) && (p != "." || i == 1) {
				store = p // the outermost
			}
			if p == filepath.Dir(p) {
				break
			}
		}
		if store != "" {
			base := filepath.Base(store)
			if base == "." {
				base = "store"
			}
			return fmt.Errorf("%s: %w: %s is a store; \"zarrdb import %s %s\" makes a database of it",
				s, txn.ErrNotDatabase, store, shellWord(strings.TrimSuffix(base, filepath.Ext(base))+".zdb"), shellWord(store))
		}
	}
	return nil
}

// isStore reports whether a path looks like a Zarr store, or a node in one: a
// directory with metadata, or a file that may be an archive or a reference set.
func isStore(path string) bool {
	info, err := os.Stat(path)
	if err != nil || engine.IsDatabase(path) {
		return false
	}
	if info.Mode().IsRegular() {
		return engine.IsArchive(path) || strings.Contains(filepath.Base(path), ".json")
	}
	return slices.ContainsFunc([]string{"zarr.json", ".zgroup", ".zarray", ".zmetadata"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(path, name))
		return err == nil
	})
}

// otherVersion returns the right target if a path of a database is followed by a
// revision in git's syntax: w.zdb@main~1 for w.zdb~1.
func (t target) otherVersion() error {
	i := strings.IndexAny(t.url, "~^#")
	if i <= 0 || !engine.IsDatabase(t.url[:i]) {
		return nil
	}
	if _, err := os.Lstat(t.url); err == nil {
		return nil
	}
	rev := txn.MainBranch + t.url[i:]
	if t.url[i] == '#' {
		rev = t.url[i+1:]
	}
	return fmt.Errorf("%s: %w; this version is named %s@%s", t.url, txn.ErrNotDatabase, t.url[:i], rev)
}

// noDatabase returns the error of a missing database, if a target looks like
// one: DB@REV or DB:PATH without a file DB.
func (t target) noDatabase() error {
	if err := t.otherVersion(); err != nil {
		return err
	}
	drive := len(filepath.VolumeName(t.url)) // which has a colon
	i := strings.IndexAny(t.url[drive:], "@:") + drive
	if i < drive || strings.Contains(t.url, "|") || strings.HasPrefix(t.url[i:], "://") {
		return nil
	}
	if _, err := zurl.Parse(t.url); err != nil && strings.Contains(t.url, "::") {
		return err // a chain of fsspec
	}
	roots, _ := engine.DefaultAdapters().Schemes()
	if slices.Contains(roots, t.url[:i]) {
		return nil
	}
	if _, err := os.Lstat(t.url); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	switch _, err := os.Stat(t.url[:i]); {
	case errors.Is(err, fs.ErrNotExist) && engine.Elsewhere(t.url) && filepath.Ext(t.url[:i]) != ".zdb":
		return fmt.Errorf("%s: %w on this machine; mount the directory of the other one, or copy the database with rsync", t.url, txn.ErrNotDatabase)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", t.url[:i], txn.ErrNotDatabase)
	case err == nil:
		if t.url[i] == '@' {
			if err := notDatabase(t.url); err != nil {
				return err
			}
		}
		return fmt.Errorf("%s: %w; %s is not a database: an array in a directory is named %[3]s/ARRAY, in another store as in 'x.zip|zip:ARRAY'", t.url, fs.ErrNotExist, t.url[:i])
	}
	return nil
}

// sourceFlags are the flags of every command that reads a TARGET.
type sourceFlags struct {
	followFlags
	session string
	opened  *openOnce // if set, opens the databases of sources
	warned  sync.Map  // texts of warnings, which are told once: some commands open a source again
	warns   atomic.Int64
}

// maxWarnings bounds the warnings of a command, which may have thousands of sources.
const maxWarnings = 100

func (f *sourceFlags) warn(cmd *cobra.Command, text string) {
	if _, told := f.warned.LoadOrStore(text, true); told {
		return
	}
	switch n := f.warns.Add(1); {
	case n <= maxWarnings:
		warn(cmd, text)
	case n == maxWarnings+1:
		warn(cmd, "there are more warnings, which are not shown")
	}
}

func (f *sourceFlags) register(cmd *cobra.Command) {
	f.followFlags.register(cmd)
	cmd.Flags().StringVar(&f.session, "session", "", "read the open session with this `ID`")
}

// open opens what a target names for reading.
func (f *sourceFlags) open(cmd *cobra.Command, s string) (*engine.Source, error) {
	return f.openIn(cmd.Context(), cmd, s)
}

func (f *sourceFlags) openIn(ctx context.Context, cmd *cobra.Command, s string) (*engine.Source, error) {
	o, err := f.sourceOptions(cmd)
	if err != nil {
		return nil, err
	}
	// Of many sources, files of formats are no remotes.
	t := parseTargetOf(s, f.opened == nil || strings.Contains(s, "@") || path.Ext(s) == "")
	if t.url != "" {
		if f.session != "" {
			return nil, usagef("--session needs a database")
		}
		if err := t.noDatabase(); err != nil {
			return nil, err
		}
		if source.Unreachable(t.failed) {
			return nil, t.failed
		}
		src, err := engine.OpenSource(ctx, t.url, o)
		if err != nil && t.failed != nil {
			err = fmt.Errorf("%w (whether a remote is there is not known: %w)", err, t.failed)
		}
		return src, err
	}
	src, err := engine.OpenDatabaseSource(ctx, t.db, t.rev, f.session, t.path, o)
	if errors.Is(err, engine.ErrNoRemote) && engine.IsRemote(t.db) && f.session == "" {
		if plain, perr := engine.OpenSource(ctx, s, o); perr == nil {
			return plain, nil
		}
	}
	return src, err
}

// sourceOptions say how sources are opened.
func (f *sourceFlags) sourceOptions(cmd *cobra.Command) (*engine.SourceOptions, error) {
	follow, err := f.follow()
	if err != nil {
		return nil, err
	}
	return &engine.SourceOptions{
		Follow: follow, Warn: func(text string) { f.warn(cmd, text) },
		Open: func(_ context.Context, dir string, o *engine.Options) (*engine.DB, error) {
			if f.opened != nil {
				return f.opened.open(cmd, dir, o)
			}
			return openDB(cmd, dir, o)
		},
	}, nil
}

// expand returns the sources that arguments name: @FILE is a list of them, a line each, and
// names with "*" stand for all that fit, see [engine.ExpandSources].
func (f *sourceFlags) expand(cmd *cobra.Command, args []string) ([]string, error) {
	o, err := f.sourceOptions(cmd)
	if err != nil {
		return nil, err
	}
	var patterns []string
	for _, arg := range args {
		file, is := strings.CutPrefix(arg, "@")
		if !is || !isAbsent(arg) {
			patterns = append(patterns, arg)
			continue
		}
		in := cmd.InOrStdin()
		if file != "-" {
			list, err := os.Open(file)
			if err != nil {
				return nil, err
			}
			defer list.Close()
			in = list
		}
		n := len(patterns)
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if line := strings.TrimSpace(lines.Text()); line != "" && line[0] != '#' {
				patterns = append(patterns, line)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(patterns) == n {
			return nil, usagef("%s: the list names no source", file)
		}
	}
	var all []string
	for _, p := range patterns {
		list := []string{p}
		if parseTargetOf(p, false).db == "" { // nodes of a database have any name
			if list, err = engine.ExpandSources(cmd.Context(), list, o); err != nil {
				return nil, err
			}
		}
		all = append(all, list...)
	}
	return all, nil
}

// openOnce opens each database once, for commands with several sources in it. Safe for
// concurrent use.
type openOnce struct {
	mu  sync.Mutex
	dbs map[string]*engine.DB // by the name that each was opened by
}

// open returns a handle of a database, which the first call opens for reading.
func (s *openOnce) open(cmd *cobra.Command, dir string, o *engine.Options) (*engine.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, db := range s.dbs {
		if name == dir || sameFile(db.Dir(), dir) {
			return db.Handle(o)
		}
	}
	db, err := openDB(cmd, dir, &engine.Options{ReadOnly: true, CacheBytes: o.CacheBytes, Adapters: o.Adapters, Follow: o.Follow})
	if err != nil {
		return nil, err
	}
	if s.dbs == nil {
		s.dbs = map[string]*engine.DB{}
	}
	s.dbs[dir] = db
	return db.Handle(o)
}

// close closes the databases.
func (s *openOnce) close() error {
	var errs []error
	for _, db := range s.dbs {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}

// reads completes a command whose first argument names the store or version to read.
func (f *sourceFlags) reads(cmd *cobra.Command, run func(cmd *cobra.Command, s *engine.Source, args []string) error) *cobra.Command {
	f.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := f.open(cmd, args[0])
		if err != nil {
			return err
		}
		defer s.Close()
		return f.near(cmd, args[0], run(cmd, s, args))
	}
	return cmd
}

// node opens the array or group that a target names.
func (f *sourceFlags) node(cmd *cobra.Command, s string) (*engine.Source, *zarr.Node, error) {
	src, err := f.open(cmd, s)
	if err != nil {
		return nil, nil, err
	}
	n, err := src.Node(cmd.Context())
	if err != nil {
		err = f.near(cmd, s, err)
		src.Close()
		return nil, nil, rootless(parseTarget(s), err)
	}
	return src, n, nil
}

// near adds the paths that are like a mistyped one to the error of a node that is missing in a version.
func (f *sourceFlags) near(cmd *cobra.Command, s string, err error) error {
	t := parseTarget(s)
	if t.db == "" || t.path == "" || f.session != "" || !errors.Is(err, zarr.ErrNotFound) {
		return err
	}
	o, oerr := f.sourceOptions(cmd)
	if oerr != nil {
		return err
	}
	root, oerr := engine.OpenDatabaseSource(cmd.Context(), t.db, t.rev, "", "", o)
	if oerr != nil {
		return err
	}
	defer root.Close()
	if view, oerr := root.Hierarchy(cmd.Context()); oerr == nil {
		err = near(cmd.Context(), t, zarr.Walk(cmd.Context(), view, "", nil), err)
	}
	return err
}

// maxNear bounds the nodes that near looks at.
const maxNear = 10_000

// near adds the paths that are like the path of t to an error that says that there is no such node.
func near(ctx context.Context, t target, nodes iter.Seq2[*zarr.Node, error], err error) error {
	if t.path == "" || !errors.Is(err, zarr.ErrNotFound) {
		return err
	}
	var list []string
	n, least := 0, math.MaxInt
	for node, werr := range nodes {
		if n++; n > maxNear || werr != nil && ctx.Err() != nil {
			break
		}
		if werr != nil || node.Path() == "" {
			continue
		}
		if p := node.Path(); p == t.path {
			return err // something else is missing
		} else if d := distance(p, t.path); d <= least {
			if d < least {
				list, least = nil, d
			}
			list = append(list, shellWord(t.db+":"+p))
		}
	}
	if least > min(2, (len(t.path)-1)/2) || len(list) > 5 {
		return err
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(list, " or "))
}

// distance is the number of letters to insert, delete or change between two paths, 0 if they end with the same name.
func distance(a, b string) int {
	if strings.EqualFold(a, b) || path.Base(a) == path.Base(b) {
		return 0
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost = min(above, row[j], row[j+1]) + 1
			}
			above, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// rootless adds a hint to the error of a database without a node at its root,
// such as a new one.
func rootless(t target, err error) error {
	if t.db != "" && t.path == "" && errors.Is(err, zarr.ErrNotFound) {
		err = fmt.Errorf("%w: nothing is at the root (zarrdb create %s --group makes a group there)", err, shellWord(t.db))
	}
	return err
}

// writeFlags are the flags of every command that makes a commit.
type writeFlags struct {
	followFlags
	message string
	author  string
	session string
	json    bool
}

func (f *writeFlags) register(cmd *cobra.Command) {
	f.followFlags.register(cmd)
	commitFlags(cmd, &f.message, &f.author)
	cmd.Flags().StringVar(&f.session, "session", "", "write into the open session with this `ID` instead of committing")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the commit as JSON")
}

// commitFlags adds the flags that describe a commit.
func commitFlags(cmd *cobra.Command, message, author *string) {
	cmd.Flags().StringVarP(message, "message", "m", "", "what the commit does")
	cmd.Flags().StringVar(author, "author", "", "who did it (default user@host)")
}

// change writes to a session of a database.
type change = func(*engine.DB, *engine.Session) error

// writes completes a command that makes a commit on the branch of its first argument.
// plan returns the default message of the commit, and what it changes.
func (f *writeFlags) writes(cmd *cobra.Command, plan func(cmd *cobra.Command, t target, args []string) (message string, fn change, err error)) *cobra.Command {
	f.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := parseDB(args[0])
		if err != nil {
			return err
		}
		message, fn, err := plan(cmd, t, args)
		if err != nil {
			return err
		}
		return f.update(cmd, t, message, fn)
	}
	return cmd
}

// update runs fn on a session of the target's branch and commits, or leaves a
// savepoint if a session was named. It prints the result.
func (f *writeFlags) update(cmd *cobra.Command, t target, message string, fn change) error {
	if f.session != "" && (f.message != "" || f.author != "") {
		return usagef("%s: --message and --author belong to the commit of session %s", cmd.CommandPath(), f.session)
	}
	ctx := cmd.Context()
	follow, err := f.follow()
	if err != nil {
		return err
	}
	db, err := openDB(cmd, t.db, &engine.Options{Author: f.author, Follow: follow})
	if err != nil {
		return err
	}
	defer db.Close()
	if f.session != "" {
		err := f.inSession(ctx, db, t, fn)
		if err == nil && f.json {
			err = printJSON(cmd, map[string]string{"session": f.session})
		}
		return err
	}
	s, err := db.Begin(ctx, t.rev)
	if err != nil {
		return onlyBranches(db, t.rev, err)
	}
	defer s.Abort() // does nothing after the commit
	discarded.Add(1)
	defer discarded.Add(-1)
	if err := fn(db, s); err != nil {
		return near(ctx, t, s.Walk(ctx, ""), err)
	}
	if f.message != "" {
		message = f.message
	}
	base := s.Base()
	c, err := s.Commit(ctx, txn.CommitOptions{Message: message, Author: f.author})
	if err != nil && !f.json {
		return err
	}
	return (&choiceFlags{json: f.json, healed: s.Versions().Healed()}).told(cmd, s.Branch(), c, base, err)
}

// onlyBranches adds a hint to the error of a missing branch if the name is
// another kind of revision.
func onlyBranches(db *engine.DB, rev string, err error) error {
	if rev == "" || !errors.Is(err, txn.ErrNoRef) {
		return err
	}
	if _, rerr := db.Resolve(context.Background(), rev); rerr == nil {
		return fmt.Errorf("%s is not a branch, and only those can be written to: %w", rev, err)
	}
	return err
}

func (f *writeFlags) inSession(ctx context.Context, db *engine.DB, t target, fn change) error {
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
		return err // closing the database leaves the session at its last savepoint
	}
	return s.Detach(ctx)
}

// printResult prints the commit of a writing command, and how many damaged chunks it healed.
func printResult(cmd *cobra.Command, c *txn.Commit, base txn.CommitID, healed int64) {
	if healed > 0 {
		say(cmd, "%s healed: the bytes are stored again", count(healed, "damaged chunk"))
	}
	if c.ID == base {
		if healed == 0 {
			say(cmd, "nothing changed")
		}
		return
	}
	say(cmd, "%s %s", c.ID.Short(), firstLine(c.Message))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
