package web

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/serve"
)

// place is the parsed path of a request:
//
//	/                      the root: what is served
//	/DB/                   a database: its branches and tags
//	/DB/v/REV/             the root of a version
//	/DB/v/REV/key          a value, or a directory if it ends in a slash
//	/-/…                   the server itself
//
// DB and REV are one segment each, so a slash in them is written %2F.
type place struct {
	db   string
	form string // "v", or "v2" and "v3" for the keys of another format; "" above that
	rev  string
	key  string // without a slash at its end
	dir  bool   // the path ends in a slash, or names no key
}

var errPath = errors.New("bad path")

// maxKey bounds the length of keys: four times that of S3.
const maxKey = 4096

// parsePath reads an escaped path.
func parsePath(escaped string) (p place, err error) {
	rest, ok := strings.CutPrefix(escaped, "/")
	if !ok {
		return p, fmt.Errorf("%w: it does not begin with a slash", errPath)
	}
	p.dir = true
	for _, part := range []*string{&p.db, &p.form, &p.rev} {
		segment, after, more := strings.Cut(rest, "/")
		if *part, err = unescape(segment); err != nil {
			return p, err
		}
		if segment == "" {
			if more {
				return p, fmt.Errorf("%w: empty name before %q", errPath, serve.Clip(after))
			}
			return p, nil
		}
		if part == &p.form && p.form != "v" && p.form != "v2" && p.form != "v3" {
			return p, fmt.Errorf("%w: after the database comes v, v2 or v3, not %q", errPath, serve.Clip(p.form))
		}
		if rest = after; !more {
			p.dir = false
			return p, nil
		}
	}
	if p.key, err = unescape(rest); err != nil {
		return p, err
	}
	if len(p.key) > maxKey {
		return p, fmt.Errorf("%w: a key of %d bytes; at most %d are served", errPath, len(p.key), maxKey)
	}
	p.key, p.dir = strings.CutSuffix(p.key, "/")
	if p.key == "" {
		if p.dir {
			return p, fmt.Errorf("%w: empty name", errPath)
		}
		p.dir = true
		return p, nil
	}
	for name := range strings.SplitSeq(p.key, "/") {
		if name == "." || name == ".." || name == "" {
			return p, fmt.Errorf("%w: a key has no name %q", errPath, name)
		}
	}
	return p, nil
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

// escape is a key as part of a path, slashes as they are.
func escape(key string) string {
	return (&url.URL{Path: key}).EscapedPath()
}

// segment is a name as one segment of a path.
func segment(name string) string { return url.PathEscape(name) }
