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

	"github.com/zarrdb/zarrdb/kv/dirkv"
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

// granted returns the stored grants; a missing file is no error.
func (db *DB) granted() (f Follow, err error) {
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
// database may be followed there, in addition to earlier grants.
func (db *DB) Grant(f Follow) error {
	if err := f.Check(); err != nil {
		return err
	}
	had, err := db.granted()
	if err != nil {
		return err
	}
	all := f.With(had)
	if len(all.Allow) == len(had.Allow) && slices.Equal(all.Map, had.Map) {
		return nil
	}
	path, err := db.grantsPath()
	if err != nil {
		return err
	}
	g := grants{Allow: all.Allow}
	if g.Database, err = filepath.Abs(db.Dir()); err != nil {
		return err
	}
	for _, m := range all.Map {
		g.Map = append(g.Map, grantedMap(m))
	}
	b, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("engine: remember what references may follow: %w", err)
	}
	if err := replaceFile(path, append(b, '\n')); err != nil {
		return fmt.Errorf("engine: remember what references may follow: %w", err)
	}
	return nil
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
