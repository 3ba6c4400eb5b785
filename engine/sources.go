package engine

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
)

// ExpandSources returns the sources that patterns name, in their order. In the root of a URL
// pipeline, or in a bare path, "*", "?" and "[…]" stand for names of files and folders, as
// [path.Match] has them, but "?" only in a path; the result is sorted by name. What such a
// pattern leads to must have a listing, as folders and buckets have; the error is fs.ErrNotExist
// if nothing matches. A path at which there is something is no pattern.
func ExpandSources(ctx context.Context, patterns []string, o *SourceOptions) ([]string, error) {
	var all []string
	for _, p := range patterns {
		list, err := expandSource(ctx, p, o)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

func expandSource(ctx context.Context, pattern string, o *SourceOptions) ([]string, error) {
	root, adapters := pattern, ""
	if i := strings.IndexByte(pattern, '|'); i >= 0 {
		root, adapters = pattern[:i], pattern[i:]
	}
	if !zurl.IsPath(root) {
		return expandURL(ctx, root, adapters, o)
	}
	if !strings.ContainsAny(root, "*?[") {
		return []string{pattern}, nil
	}
	if _, err := os.Lstat(root); err == nil {
		return []string{pattern}, nil
	}
	found, err := filepath.Glob(root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", root, err)
	}
	if len(found) == 0 {
		return nil, noMatch(root)
	}
	for i, name := range found {
		if found[i] = filepath.ToSlash(name) + adapters; strings.ContainsAny(name, "|%") {
			u, err := zurl.File(name)
			if err != nil {
				return nil, err
			}
			found[i] = u.String() + adapters
		}
	}
	return found, nil
}

func noMatch(pattern string) error {
	return fmt.Errorf("%s: %w: nothing has a name like this", zurl.Redact(pattern), fs.ErrNotExist)
}

// literal quotes the escaped characters of a URL that [path.Match] would take for a pattern.
var literal = strings.NewReplacer("%2a", `\*`, "%2A", `\*`, "%3f", `\?`, "%3F", `\?`, "%5b", `\[`, "%5B", `\[`, "%5c", `\\`, "%5C", `\\`)

// expandURL walks down from the last folder whose name is known, and lists each folder that
// fits once.
func expandURL(ctx context.Context, root, adapters string, o *SourceOptions) ([]string, error) {
	scheme, rest, _ := strings.Cut(root, "://")
	host, rest, _ := strings.Cut(rest, "/")
	rest, query, has := strings.Cut(rest, "?")
	if !strings.ContainsAny(rest, "*[") {
		return []string{root + adapters}, nil
	}
	if scheme == "http" || scheme == "https" {
		return nil, fmt.Errorf("%s: a web server has no listing: name the files one by one, or list them in a file, as @FILE", zurl.Redact(root))
	}
	if has {
		query = "?" + query
	}
	parts := strings.Split(rest, "/")
	first := slices.IndexFunc(parts, func(s string) bool { return strings.ContainsAny(s, "*[") })
	base := scheme + "://" + host + "/"
	for _, known := range parts[:first] {
		base += known + "/"
	}
	s, err := OpenSource(ctx, base+query, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	store, err := s.Store()
	if err != nil {
		return nil, err
	}
	dirs := []string{""}
	for i, part := range parts[first:] {
		var next []string
		last := first+i == len(parts)-1
		if last && part == "" { // a slash at the end: the folders
			break
		}
		if part, err = url.PathUnescape(literal.Replace(part)); err != nil {
			return nil, fmt.Errorf("%s: %w", zurl.Redact(root), err)
		}
		for _, dir := range dirs {
			for e, err := range kv.ListDir(ctx, store, dir) {
				if err != nil {
					return nil, err
				}
				ok, err := path.Match(part, e.Name)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", zurl.Redact(root), err)
				}
				switch {
				case !ok:
				case !last && e.Prefix:
					next = append(next, dir+e.Name+"/")
				case last && !slices.Contains(next[max(0, len(next)-1):], dir+e.Name):
					next = append(next, dir+e.Name) // a key and a folder of one name are one source
				}
			}
		}
		dirs = next
	}
	if len(dirs) == 0 {
		return nil, noMatch(root)
	}
	slices.Sort(dirs)
	for i, name := range dirs {
		dirs[i] = base + (&url.URL{Path: name}).EscapedPath() + query + adapters
	}
	return dirs, nil
}
