package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/zarrdb/zarrdb/engine"
)

// misspelledError is the error of a target STORE:PATH, STORE@VERSION or STORE/PATH,
// which is the spelling of databases or of files, and not of what is in the store.
type misspelledError struct {
	store, version, path string
	err                  error
}

func (e *misspelledError) Error() string { return e.err.Error() }
func (e *misspelledError) Unwrap() error { return e.err }

// misspelled finds out of an error whether a target of this machine has such a spelling.
func misspelled(from caller, s string, err error) *misspelledError {
	if e := (*misspelledError)(nil); errors.As(err, &e) {
		return e
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, engine.ErrNotFound) ||
		strings.Contains(s, "|") || rootURL.MatchString(s) || parseTarget(from, s).db != "" {
		return nil
	}
	for store := filepath.Clean(s); store != filepath.Dir(store); {
		store = filepath.Dir(store)
		if _, err := os.Lstat(from.path(store)); err == nil && store != "." {
			path, _ := filepath.Rel(store, s)
			return &misspelledError{store: store, path: filepath.ToSlash(path), err: err}
		}
	}
	return nil
}

// spelled adds to an error how a target is spelled, if it can be opened when it is
// spelled otherwise.
func spelled(ctx context.Context, from caller, s string, err error) error {
	e := misspelled(from, s, err)
	if e == nil {
		return err
	}
	versions := []string{""}
	if e.version != "" {
		versions = []string{"@" + e.version + "/", "@branch." + e.version + "/", "@tag." + e.version + "/"}
	}
	var names []string
	if e.version == "" {
		names = append(names, strings.TrimSuffix(e.store, "/")+"/"+e.path)
	}
	_, adapters := engine.DefaultAdapters().Schemes()
	// An adapter of one format is clearer than zarr:, which are all.
	slices.SortStableFunc(adapters, func(a, b string) int {
		return strings.Compare(strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789"))
	})
	for _, adapter := range adapters {
		for _, v := range versions {
			names = append(names, e.store+"|"+adapter+":"+v+e.path)
		}
	}
	for _, name := range names {
		src, openErr := engine.OpenSource(ctx, from.url(name), nil)
		if openErr != nil {
			continue
		}
		_, openErr = src.Node(ctx)
		src.Close()
		if openErr == nil && name != s {
			return fmt.Errorf("%w; what is in %s is named %s", err, e.store, shellWord(name))
		}
	}
	return err
}
