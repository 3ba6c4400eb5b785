package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/serve"
)

// place is the parsed path of a request:
//
//	/                      the root: all databases and targets
//	/DB/                   a database: its branches and tags
//	/DB/v/REV/             the root of a version
//	/DB/v/REV/key          a value, or a directory if it ends in a slash
//	/-/…                   the server itself
//
// DB and REV are one segment each. A slash in REV is written ":", or %2F, which some
// proxies decode. Several slashes count as one.
type place struct {
	db   string
	form string // "v", or "v2" and "v3" for the keys of another format; "" above that
	rev  string
	key  string // without a slash at its end
	dir  bool   // the path ends in a slash, or names no key
}

var errPath = errors.New("bad path")

// parsePath reads an escaped path.
func parsePath(escaped string) (p place, err error) {
	rest, ok := strings.CutPrefix(mergeSlashes(escaped), "/")
	if !ok {
		return p, fmt.Errorf("%w: it does not begin with a slash", errPath)
	}
	p.dir = true
	for _, part := range []*string{&p.db, &p.form, &p.rev} {
		segment, after, more := strings.Cut(rest, "/")
		if *part, err = unescape(segment); err != nil {
			return p, err
		}
		switch {
		case segment == "":
			return p, nil
		case !serve.InPath(*part):
			return p, fmt.Errorf("%w: nothing has the name %q", errPath, *part)
		case part == &p.form && p.form != "v" && p.form != "v2" && p.form != "v3":
			return p, httpError{http.StatusNotFound, fmt.Errorf("%w: after the database comes v, v2 or v3, not %q", errPath, serve.Clip(p.form))}
		case part == &p.rev:
			p.rev = swapInNames(p.rev, ":", "/")
		}
		if rest = after; !more {
			p.dir = false
			return p, nil
		}
	}
	if p.key, err = unescape(rest); err != nil {
		return p, err
	}
	p.key = strings.TrimPrefix(mergeSlashes("/"+p.key), "/")
	if len(p.key) > serve.MaxKey {
		return p, fmt.Errorf("%w: a key of %d bytes; at most %d are served", errPath, len(p.key), serve.MaxKey)
	}
	p.key, p.dir = strings.CutSuffix(p.key, "/")
	if p.key == "" {
		p.dir = true
		return p, nil
	}
	for name := range strings.SplitSeq(p.key, "/") {
		if !serve.InPath(name) {
			return p, fmt.Errorf("%w: a key has no name %q", errPath, name)
		}
	}
	return p, nil
}

// mergeSlashes replaces each run of slashes by one, also with single dots between them,
// which some clients send.
func mergeSlashes(path string) string {
	for _, run := range []string{"//", "/./"} {
		for strings.Contains(path, run) {
			path = strings.ReplaceAll(path, run, "/")
		}
	}
	if dir, ok := strings.CutSuffix(path, "/."); ok {
		return dir + "/"
	}
	return path
}

func unescape(s string) (string, error) {
	text, err := url.PathUnescape(s)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", errPath, err)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", fmt.Errorf("%w: it is not UTF-8, or has a NUL", errPath)
	}
	return text, nil
}

// swapInNames replaces from by to in the name that a revision begins with. The names of
// branches and tags have slashes and no colons; a time behind them has colons.
func swapInNames(rev, from, to string) string {
	name, when, at := strings.Cut(rev, "@{")
	if name = strings.ReplaceAll(name, from, to); at {
		name += "@{" + when
	}
	return name
}

// forwardedPrefix is the path of a proxy below which it serves this server, if the proxy
// names it, escaped. Paths that begin with it do not lead to another host.
func forwardedPrefix(r *http.Request) string {
	u, err := url.Parse(mergeSlashes(r.Header.Get("X-Forwarded-Prefix")))
	if err != nil || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") {
		return ""
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}
