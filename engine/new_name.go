package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/zarrdb/zarrdb/engine/zurl"
)

// ErrName means that a text cannot name a new file or node, since it means something
// else: a URL, or a place in a database.
var ErrName = errors.New("engine: the name means something else")

// checkNew returns ErrName for a text that cannot be the directory of a new database. It
// accepts the name of a database that exists.
func checkNew(dir string) error {
	if IsDatabase(dir) {
		return nil
	}
	if base := filepath.Base(dir); strings.HasPrefix(base, "-") {
		return fmt.Errorf("%s: %w: commands take it for an option; choose a name that does not begin with -", dir, ErrName)
	}
	if strings.Contains(dir, "|") {
		return fmt.Errorf("%s: %w: a path with | is a pipeline of URLs, which commands that open it would follow; choose a name without |", dir, ErrName)
	}
	return checkName(dir, "a database is a directory of this machine", "write the name of the database alone")
}

// otherMachine matches a path on another machine as ssh, scp and rsync write it: HOST:/PATH or USER@HOST:PATH.
var otherMachine = regexp.MustCompile(`^([^/\\@:|\s]+@[^/\\@:|\s]+:|[^/\\@:|\s]{2,}:/)`)

// Elsewhere reports whether a text is a path on another machine as ssh, scp and rsync write it, and
// nothing of that name is here.
func Elsewhere(text string) bool {
	if !otherMachine.MatchString(text) || strings.Contains(text, "://") {
		return false
	}
	first, _, _ := strings.Cut(text, "/")
	_, err := os.Lstat(first)
	return err != nil
}

// checkMachine refuses a path on another machine.
func checkMachine(text string) error {
	if host, _, _ := strings.Cut(text, ":"); Elsewhere(text) && filepath.Ext(strings.Split(host, "@")[0]) != ".zdb" {
		return fmt.Errorf("%s: %w: it is a path on %s, and only this machine's are written; mount that directory, or write here and copy the result with rsync (./%[1]s is a name here)", text, ErrName, host)
	}
	return nil
}

// checkExport returns ErrName for a text that cannot be the path of an export.
func checkExport(dest string) error {
	return checkName(dest, "nothing is exported to URLs of this kind", "an import copies into a database")
}

// checkName refuses a URL, and DB@REV and DB:PATH, where DB is a database or ends as the names of
// databases do, and USER@HOST:PATH; ./NAME is always a name. Other names may have the characters @ and :.
func checkName(text, noURL, noPlace string) error {
	if before, after, ok := strings.Cut(text, "://"); ok {
		scheme := before[strings.LastIndexAny(before, `/\`)+1:]
		if scheme == "zarrdb" {
			noURL = "write " + after
		}
		return fmt.Errorf("%s: %w: it is a URL; %s", zurl.Redact(scheme+"://"+after), ErrName, noURL)
	}
	base := filepath.Base(text)
	if err := checkMachine(text); err != nil {
		return err
	}
	for i := range base {
		if db := filepath.Join(filepath.Dir(text), base[:i]); i > 0 && (base[i] == '@' || base[i] == ':') && (filepath.Ext(db) == ".zdb" || IsDatabase(db)) {
			return fmt.Errorf("%s: %w: it is a place in the database %s; %s", text, ErrName, db, noPlace)
		}
	}
	return nil
}
