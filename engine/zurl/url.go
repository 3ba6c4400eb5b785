package zurl

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/kv/redact"
)

// Part is one sub-URL: the root, or an adapter.
type Part struct {
	// Scheme is in lower case.
	Scheme string
	// Host is the part between "//" and the path of a root: a host and port, or
	// a bucket.
	Host string
	// Version is the version of ocdbt, icechunk or zarrdb, decoded and without
	// its "@". [Part.At] returns its meaning.
	Version string
	// Path is percent-encoded. For file and for roots with a host it begins with
	// a slash, for adapters it does not; for json it is a JSON pointer.
	Path string
	// Query is the query of http and https, percent-encoded and without its "?".
	Query string
}

// String prints the part.
func (p Part) String() string {
	var b strings.Builder
	b.WriteString(p.Scheme)
	b.WriteByte(':')
	if p.Host != "" || p.Scheme == "file" {
		b.WriteString("//")
		b.WriteString(p.Host)
	}
	if p.Version != "" {
		b.WriteByte('@')
		b.WriteString(escape(p.Version, inVersion))
		b.WriteByte('/')
	}
	b.WriteString(p.Path)
	if p.Query != "" {
		b.WriteByte('?')
		b.WriteString(p.Query)
	}
	return b.String()
}

// Key returns the decoded path without slashes at its beginning: a key, or a
// prefix of keys.
func (p Part) Key() (string, error) {
	s, err := unescape(p.Path, "")
	if err != nil {
		return "", &Error{URL: p.String(), Err: err}
	}
	return strings.TrimLeft(s, "/"), nil
}

// Pointer returns the decoded path with its slashes: the JSON pointer of json.
func (p Part) Pointer() (string, error) {
	s, err := unescape(p.Path, "")
	if err != nil {
		return "", &Error{URL: p.String(), Err: err}
	}
	return s, nil
}

// OSPath returns the path of a file: root on this machine.
func (p Part) OSPath() (string, error) {
	s, err := p.Pointer()
	if err != nil {
		return "", err
	}
	// file:///c:/x is c:\x where paths have drives.
	if filepath.Separator == '\\' && len(s) > 2 && s[0] == '/' && s[2] == ':' {
		s = s[1:]
	}
	return filepath.FromSlash(s), nil
}

// ByteRange returns the bounds of a byte-range adapter, end being exclusive.
func (p Part) ByteRange() (start, end int64, ok bool) {
	if p.Scheme != "byte-range" {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(p.Path, "-")
	start, err1 := strconv.ParseInt(from, 10, 64)
	end, err2 := strconv.ParseInt(to, 10, 64)
	return start, end, err1 == nil && err2 == nil && start <= end
}

// At returns the meaning of the version.
func (p Part) At() Version {
	if p.Version == "" {
		return Version{}
	}
	return versionOf(p.Scheme, p.Version)
}

// Directory reports whether the path says by itself that it is a directory: it
// is empty or ends in a slash.
func (p Part) Directory() bool { return p.Path == "" || strings.HasSuffix(p.Path, "/") }

// Kind returns the kind of the part's resource, as far as the URL shows it.
func (p Part) Kind() Kind {
	known := schemes[p.Scheme]
	if known.byPath && p.Directory() {
		return kindDirectory
	}
	return known.kind
}

// hasPath reports whether a slash can be added to the path.
func (p Part) hasPath() bool {
	known, ok := schemes[p.Scheme]
	return !ok || known.syntax == keyPath || known.syntax == versioned
}

// URL is a parsed absolute pipeline. It is a value: its methods return changed
// copies. The zero URL is not valid.
type URL struct{ parts []Part }

// Root returns the first part.
func (u URL) Root() Part { return u.parts[0] }

// Adapters returns the parts after the root; they must not be changed.
func (u URL) Adapters() []Part { return u.parts[1:] }

// Last returns the innermost part.
func (u URL) Last() Part { return u.parts[len(u.parts)-1] }

// Prefix returns the root and the first n adapters.
func (u URL) Prefix(n int) URL { return URL{u.parts[: n+1 : n+1]} }

// Append returns the pipeline with one more adapter, without changes to it. Its
// path must be escaped as in [Part].
func (u URL) Append(p Part) URL {
	if schemes[p.Scheme].needs == kindDirectory {
		u = u.AsDirectory()
	}
	return URL{append(slices.Clone(u.parts), p)}
}

// AsDirectory returns the pipeline with a slash at its end, unless its last
// path is empty or has none.
func (u URL) AsDirectory() URL {
	if p := u.Last(); p.Directory() || !p.hasPath() {
		return u
	}
	return u.change(func(p *Part) { p.Path += "/" })
}

// change returns the pipeline with another last part.
func (u URL) change(fn func(*Part)) URL {
	parts := slices.Clone(u.parts)
	fn(&parts[len(parts)-1])
	return URL{parts}
}

// String prints the pipeline. [Parse] gives it back.
func (u URL) String() string {
	var b strings.Builder
	for i, p := range u.parts {
		if i > 0 {
			b.WriteByte('|')
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// Redacted prints the pipeline for messages and records: without the user
// information of hosts, and with queries redacted as by [redact.Query].
func (u URL) Redacted() string {
	var b strings.Builder
	for i, p := range u.parts {
		if i > 0 {
			b.WriteByte('|')
		}
		if schemes[p.Scheme].domain {
			p.Host = p.Host[strings.LastIndexByte(p.Host, '@')+1:]
		}
		p.Query = redact.Query(p.Query)
		b.WriteString(p.String())
	}
	return b.String()
}
