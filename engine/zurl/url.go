package zurl

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ErrURL is matched by every [Error].
var ErrURL = errors.New("zurl: malformed URL")

// Error says what is wrong with which part of a pipeline.
type Error struct {
	URL, Part string
	Err       error
}

func (e *Error) Error() string {
	if e.Part == "" || e.Part == e.URL {
		return fmt.Sprintf("URL %q: %v", e.URL, e.Err)
	}
	return fmt.Sprintf("URL %q: %q: %v", e.URL, e.Part, e.Err)
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrURL) true.
func (e *Error) Is(target error) bool { return target == ErrURL }

// Part is one sub-URL: the root, or an adapter.
type Part struct {
	// Scheme is in lower case.
	Scheme string
	// Host is what stands between "//" and the path of a root: a host and port,
	// or a bucket.
	Host string
	// Version is the version of a versioned store, without its "@".
	Version string
	// Path is still percent-encoded. That of a root with a host begins with a
	// slash or is empty.
	Path string
}

// Key returns the decoded path without slashes at its beginning.
func (p Part) Key() (string, error) {
	s, err := unescape(p.Path)
	if err != nil {
		return "", &Error{URL: p.String(), Err: err}
	}
	return strings.TrimLeft(s, "/"), nil
}

// Directory reports whether the path says by itself that it is a directory: it
// is empty or ends in a slash.
func (p Part) Directory() bool { return p.Path == "" || strings.HasSuffix(p.Path, "/") }

// OSPath returns the path of a file: root on this machine.
func (p Part) OSPath() (string, error) {
	s, err := unescape(p.Path)
	if err != nil {
		return "", &Error{URL: p.String(), Err: err}
	}
	// file:///c:/x is c:\x where paths have drives.
	if filepath.Separator == '\\' && len(s) > 2 && s[0] == '/' && s[2] == ':' {
		s = s[1:]
	}
	return filepath.FromSlash(s), nil
}

// String prints the part.
func (p Part) String() string {
	var b strings.Builder
	b.WriteString(p.Scheme)
	b.WriteByte(':')
	if hosted(p.Scheme) {
		b.WriteString("//" + p.Host)
	}
	if p.Version != "" {
		b.WriteString("@" + p.Version)
		b.WriteByte('/')
	}
	b.WriteString(p.Path)
	return b.String()
}

// hosted reports whether a root scheme is written with "//".
func hosted(scheme string) bool {
	switch scheme {
	case "file", "http", "https", "s3", "gs", "s3+http", "s3+https", "az", "abfs":
		return true
	}
	return false
}

// versioned reports whether paths of a scheme may begin with "@version/".
func versioned(scheme string) bool {
	return scheme == "ocdbt" || scheme == "icechunk" || scheme == "zarrdb"
}

// inDirectory reports whether an adapter can only follow a directory.
func inDirectory(scheme string) bool {
	switch scheme {
	case "zarr", "zarr2", "zarr3", "n5", "ocdbt", "icechunk", "neuroglancer-precomputed", "zarrdb":
		return true
	}
	return false
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

// Append returns the pipeline with one more adapter.
func (u URL) Append(p Part) URL {
	if inDirectory(p.Scheme) {
		u = u.AsDirectory()
	}
	return URL{append(slices.Clone(u.parts), p)}
}

// AsDirectory returns the pipeline with a slash at its end, unless its last
// path is empty.
func (u URL) AsDirectory() URL {
	if u.Last().Directory() {
		return u
	}
	return u.withPath(u.Last().Path + "/")
}

func (u URL) withPath(path string) URL {
	parts := slices.Clone(u.parts)
	parts[len(parts)-1].Path = path
	return URL{parts}
}

// String prints the canonical spelling.
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

// scheme matches what begins a sub-URL.
var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*|\.\.)(:|$)`)

// drive matches a Windows path with a drive letter, which is no scheme.
var drive = regexp.MustCompile(`^[A-Za-z]:[\\/]`)

// Parse reads an absolute pipeline. A root without a scheme is a path on this
// machine; a relative one is relative to the working directory.
func Parse(s string) (URL, error) {
	subs := strings.Split(s, "|")
	root, err := parseRoot(subs[0])
	if err != nil {
		return URL{}, &Error{URL: s, Part: subs[0], Err: err}
	}
	return extend(URL{[]Part{root}}, subs[1:], s)
}

// extend adds adapters to a pipeline and resolves "..".
func extend(u URL, subs []string, whole string) (URL, error) {
	for _, sub := range subs {
		p, err := parseAdapter(sub)
		if err == nil {
			if p.Scheme == ".." {
				u, err = u.up(p.Path)
			} else {
				u = u.Append(p)
			}
		}
		if err != nil {
			return URL{}, &Error{URL: whole, Part: sub, Err: err}
		}
	}
	return u, nil
}

// up discards the last adapter and applies a path to the part before it.
func (u URL) up(path string) (URL, error) {
	if len(u.parts) < 2 {
		return URL{}, errors.New("there is no adapter left to leave")
	}
	return u.Prefix(len(u.parts) - 2).join(path)
}

func parseRoot(s string) (Part, error) {
	m := scheme.FindStringSubmatch(s)
	if m == nil || m[2] != ":" || drive.MatchString(s) {
		return fileRoot(s)
	}
	if m[1] == ".." {
		return Part{}, errors.New("an absolute URL does not begin with ..")
	}
	p := Part{Scheme: strings.ToLower(m[1])}
	rest := s[len(m[0]):]
	if host, ok := strings.CutPrefix(rest, "//"); ok {
		i := strings.IndexByte(host+"/", '/')
		p.Host, rest = host[:i], host[i:]
	} else if hosted(p.Scheme) && p.Scheme != "file" {
		return p, fmt.Errorf("%s: is followed by //", p.Scheme)
	}
	if p.Scheme == "file" {
		if p.Host != "" && p.Host != "localhost" {
			return p, fmt.Errorf("files of another host (%s) cannot be read", p.Host)
		}
		p.Host = ""
		if !strings.HasPrefix(rest, "/") {
			path, err := unescape(rest)
			if err != nil {
				return p, err
			}
			return fileRoot(path)
		}
	} else if hosted(p.Scheme) && p.Host == "" {
		return p, errors.New("no host or bucket")
	}
	var err error
	p.Path, err = canonical(rest)
	return p, err
}

// fileRoot makes a root of a path on this machine.
func fileRoot(path string) (Part, error) {
	if path == "" {
		return Part{}, errors.New("empty")
	}
	if strings.IndexByte(path, 0) >= 0 {
		return Part{}, errNUL
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Part{}, err
	}
	slashed := filepath.ToSlash(abs)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive
	}
	last := path[len(path)-1]
	if (last == '/' || last == filepath.Separator) && !strings.HasSuffix(slashed, "/") {
		slashed += "/"
	}
	return Part{Scheme: "file", Path: escape(slashed)}, nil
}

// File returns the URL of a path on this machine.
func File(path string) (URL, error) {
	p, err := fileRoot(path)
	if err != nil {
		return URL{}, &Error{URL: path, Err: err}
	}
	return URL{[]Part{p}}, nil
}

func parseAdapter(s string) (Part, error) {
	m := scheme.FindStringSubmatch(s)
	if m == nil {
		return Part{}, errors.New("it does not begin with a scheme")
	}
	p := Part{Scheme: strings.ToLower(m[1])}
	rest := s[len(m[0]):]
	if v, ok := strings.CutPrefix(rest, "@"); ok && versioned(p.Scheme) {
		p.Version, rest, _ = strings.Cut(v, "/")
		if p.Version == "" {
			return p, errors.New("@ without a version")
		}
	}
	var err error
	p.Path, err = canonical(rest)
	return p, err
}

// Normalize returns the canonical spelling of a pipeline.
func Normalize(s string) (string, error) {
	u, err := Parse(s)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// Resolve returns what a relative pipeline means beside an absolute base. An
// absolute one is returned as it is.
func Resolve(base, relative string) (string, error) {
	u, err := Parse(base)
	if err != nil {
		return "", err
	}
	subs := strings.Split(relative, "|")
	if m := scheme.FindStringSubmatch(subs[0]); m != nil && m[2] == ":" && m[1] != ".." {
		return Normalize(relative)
	}
	if !strings.HasPrefix(subs[0], "..:") {
		path, err := canonical(subs[0])
		if err == nil {
			u, err = u.join(path)
		}
		if err != nil {
			return "", &Error{URL: relative, Part: subs[0], Err: err}
		}
		subs = subs[1:]
	}
	u, err = extend(u, subs, relative)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}
