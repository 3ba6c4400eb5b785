package engine

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/redact"
)

// A database carries no permissions: a received one could otherwise refer to any
// file. The allowed targets of its references are stored outside of it, in the
// configuration of the importing user, under the random name of the database on
// this machine.

// grants is such a memory, as JSON:
//
//	{"database": "/data/w.zdb", "allow": ["file:///data/"], "map": [{"from": "s3://a", "to": "file:///a"}]}
type grants struct {
	// Database is where it was then; it is for people.
	Database string       `json:"database"`
	Allow    []string     `json:"allow,omitempty"`
	Map      []grantedMap `json:"map,omitempty"`
}

type grantedMap struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// grantsPath is the file of a database.
func (db *DB) grantsPath() (string, error) {
	dir := db.opts.ConfigDir
	if dir == "" {
		base, err := os.UserConfigDir()
		if err != nil {
			return "", fmt.Errorf("engine: no place to remember what references may follow: %w", err)
		}
		dir = filepath.Join(base, "zarrdb")
	}
	name := db.store.Incarnation()
	return filepath.Join(dir, "follow", hex.EncodeToString(name[:])+".json"), nil
}

// Granted returns the grants that [DB.Grant] remembers for the database on this machine,
// for this user.
func (db *DB) Granted() (f Follow, err error) {
	path, err := db.grantsPath()
	if err != nil {
		return f, nil // nothing can have been remembered
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	var g grants
	if err == nil {
		err = json.Unmarshal(b, &g)
	}
	if err == nil {
		f.Allow = g.Allow
		for _, m := range g.Map {
			f.Map = append(f.Map, Mapping(m))
		}
		err = f.Check()
	}
	if err != nil {
		return Follow{}, fmt.Errorf("engine: what the references of a database may follow: %s: %w", path, err)
	}
	return f, nil
}

// Grant remembers on this machine, for this user, that the references of the
// database may be followed there, in addition to earlier grants. Safe for concurrent
// use, of several processes too.
func (db *DB) Grant(f Follow) error {
	if err := f.Check(); err != nil {
		return err
	}
	if had, err := db.Granted(); err != nil || holds(had, f) {
		return err
	}
	return db.changeGrants(func(had Follow) (Follow, error) { return f.With(had), nil })
}

// holds reports whether g adds nothing to f.
func holds(f, g Follow) bool {
	all := g.With(f)
	return len(all.Allow) == len(f.Allow) && slices.Equal(all.Map, f.Map)
}

// Revoke takes back grants: prefixes of Allow, and prefixes from which mappings lead.
// Open files may still be read until the database is closed. If one of the prefixes
// was not granted, the error is ErrNotFound, and nothing is taken back.
func (db *DB) Revoke(prefixes ...string) error {
	return db.changeGrants(func(f Follow) (Follow, error) {
		for _, p := range prefixes {
			p = strings.TrimSuffix(p, "/")
			n := len(f.Allow) + len(f.Map)
			f.Allow = slices.DeleteFunc(f.Allow, func(a string) bool { return strings.TrimSuffix(a, "/") == p })
			f.Map = slices.DeleteFunc(f.Map, func(m Mapping) bool { return strings.TrimSuffix(m.From, "/") == p })
			if n == len(f.Allow)+len(f.Map) {
				return f, fmt.Errorf("engine: %w: references are not granted to follow %s", ErrNotFound, redact.URL(p))
			}
		}
		return f, nil
	})
}

// changeGrants applies change to the grants, while no other process does.
func (db *DB) changeGrants(change func(Follow) (Follow, error)) error {
	path, err := db.grantsPath()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("engine: remember what references may follow: %w", err)
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(filepath.Dir(path), "lock")).Lock()
	if err != nil {
		return fmt.Errorf("engine: remember what references may follow: %w", err)
	}
	defer unlock()
	f, err := db.Granted()
	if err != nil {
		return err
	}
	if f, err = change(f); err != nil {
		return err
	}
	g := grants{Allow: f.Allow}
	if g.Database, err = filepath.Abs(db.Dir()); err != nil {
		return err
	}
	for _, m := range f.Map {
		g.Map = append(g.Map, grantedMap(m))
	}
	b, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(path, append(b, '\n')); err != nil {
		return fmt.Errorf("engine: remember what references may follow: %w", err)
	}
	return nil
}

// grantLinked grants the references that a linking import may follow, and returns
// the prefixes in forbidden that are still forbidden, at most MaxForbidden.
func (db *DB) grantLinked(f Follow, forbidden []string) (still []string, notGranted error) {
	notGranted = db.Grant(f)
	had, _ := db.Granted() // Grant returns the same error
	now := f.With(db.opts.Follow).With(had).Rules()
	slices.Sort(forbidden)
	for _, prefix := range slices.Compact(forbidden) {
		sample := prefix
		if strings.HasSuffix(prefix, "/") {
			sample += "x"
		}
		if _, err := now.Resolve(sample); errors.Is(err, ErrForbidden) && len(still) < MaxForbidden {
			still = append(still, prefix)
		}
	}
	return still, notGranted
}

// replaceFile writes a private file whole or not at all.
func replaceFile(path string, b []byte) error {
	store, err := dirkv.Open(filepath.Dir(path), nil)
	if err != nil {
		return err
	}
	defer store.Close()
	return store.Set(context.Background(), filepath.Base(path), b)
}
