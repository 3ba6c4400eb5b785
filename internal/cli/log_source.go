package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/txn"
)

// logFlags are those of "log".
type logFlags struct {
	n                               int
	json, oneline, followed, values bool
	sel                             string // of values
}

// source lists the versions of a store in a foreign format, and their names.
func (f *logFlags) source(cmd *cobra.Command, src *engine.Source, named []engine.SourceName) error {
	names := map[string]string{}
	for _, r := range named {
		if r.Tag {
			names[r.ID] += "(tag " + r.Name + ") "
		} else {
			names[r.ID] += "(" + r.Name + ") "
		}
	}
	commits := report.SourceLog(cmd.Context(), src, f.n)
	return printCommits(cmd, f, commits, func(v report.Commit) { printSourceVersion(cmd, v, names[v.ID]) }, func(v report.Commit) string {
		line := firstLine(v.Message)
		if line == "" { // as in OCDBT
			line = v.Time.In(time.Local).Format(time.RFC1123Z)
		}
		return v.ID + " " + names[v.ID] + line
	})
}

func printSourceVersion(cmd *cobra.Command, v report.Commit, names string) {
	say(cmd, "version %s", strings.TrimRight(v.ID+" "+names, " "))
	if v.Author != "" {
		say(cmd, "Author: %s", v.Author)
	}
	say(cmd, "Date:   %s\n", v.Time.In(time.Local).Format(time.RFC1123Z))
	if v.Message != "" {
		printIndented(cmd, v.Message)
		say(cmd, "")
	}
}

// openVersions opens the target of "log" if it is a URL, or a local directory in
// a foreign format; else src is nil.
func openVersions(cmd *cobra.Command, s string) (src *engine.Source, named []engine.SourceName, err error) {
	t := parseTarget(s)
	if t.url == "" || t.noDatabase() != nil {
		return nil, nil, nil
	}
	if src, err = new(sourceFlags).open(cmd, s); err == nil {
		if named, err = src.VersionNames(cmd.Context()); err == nil {
			return src, named, nil
		}
		_, unknown := src.Detect(cmd.Context())
		_ = src.Close()
		if !rootURL.MatchString(s) && !strings.Contains(s, "|") {
			base := filepath.Base(filepath.Clean(s))
			switch {
			case unknown != nil:
				return nil, nil, fmt.Errorf("%s: %w: %w", s, txn.ErrNotDatabase, unknown)
			case !isStore(s): // parseDB returns the same error
				return nil, nil, fmt.Errorf("%s: %w: \"zarrdb import %s %s\" makes a database of it", s, txn.ErrNotDatabase,
					shellWord(strings.TrimSuffix(base, filepath.Ext(base))+".zdb"), shellWord(s))
			}
		}
	}
	if rootURL.MatchString(s) || strings.Contains(s, "|") {
		return nil, nil, err
	}
	return nil, nil, nil // parseDB returns the error
}
