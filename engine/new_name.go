package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/zarrdb/zarrdb/engine/zurl"
)

// ErrName means that a text cannot name what is to be made, since it means something
// else: a URL, or a place in a database.
var ErrName = errors.New("engine: the name means something else")

// checkNew returns ErrName for what cannot be the directory of a new database. A database of
// such a name that is there already may be written.
func checkNew(dir string) error {
	if IsDatabase(dir) {
		return nil
	}
	return checkName(dir, "a database is a directory of this machine", "write the name of the database alone")
}

// checkExport returns ErrName for what cannot be the path of an export.
func checkExport(dest string) error {
	return checkName(dest, "nothing is exported to URLs of this kind", "an import copies into a database")
}

// checkName refuses a URL, and DB@REV and DB:PATH, where DB is a database or ends as the names of
// databases do. Other names may have the characters @ and :.
func checkName(text, noURL, noPlace string) error {
	if before, after, ok := strings.Cut(text, "://"); ok {
		scheme := before[strings.LastIndexAny(before, `/\`)+1:]
		if scheme == "zarrdb" {
			noURL = "write " + after
		}
		return fmt.Errorf("%s: %w: it is a URL; %s", zurl.Redact(scheme+"://"+after), ErrName, noURL)
	}
	base := filepath.Base(text)
	for i := range base {
		if db := filepath.Join(filepath.Dir(text), base[:i]); i > 0 && (base[i] == '@' || base[i] == ':') && (filepath.Ext(db) == ".zdb" || IsDatabase(db)) {
			return fmt.Errorf("%s: %w: it is a place in the database %s; %s", text, ErrName, db, noPlace)
		}
	}
	return nil
}
