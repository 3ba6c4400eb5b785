package zurl

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// maxAdapters bounds the length of a pipeline: each adapter may be a file to
// open.
const maxAdapters = 64

// Parse reads an absolute pipeline. A root without a scheme is a path on this
// machine; a relative one is relative to the working directory.
func Parse(s string) (URL, error) { return parseIn("", s) }

// parseIn is Parse with dir, an absolute path on this machine, in place of the
// working directory.
func parseIn(dir, s string) (URL, error) {
	if here, ok := unchained(s); ok {
		return URL{}, &Error{URL: s, Err: fmt.Errorf("a chain of fsspec, which is written %s here", quote(here))}
	}
	text, adapters, more := strings.Cut(s, "|")
	root, err := parseRoot(dir, text)
	if err != nil {
		return URL{}, &Error{URL: s, Part: text, Err: err}
	}
	u := URL{[]Part{root}}
	if !more {
		return u, nil
	}
	return u.extend(s, adapters)
}

// chains are the first links of chains of fsspec by their adapter here; caches have none.
var chains = map[string]string{"zip": "zip:", "reference": "kerchunk:", "simplecache": "", "filecache": "", "blockcache": "", "cached": ""}

// unchained returns the pipeline that a chain of fsspec stands for, as "b.zip|zip:a" for
// zip://a::b.zip.
func unchained(s string) (here string, ok bool) {
	first, rest, more := strings.Cut(s, "::")
	if !more || rest == "" {
		return "", false
	}
	scheme, path, _ := strings.Cut(first, "://")
	adapter, ok := chains[scheme]
	if !ok {
		return "", false
	}
	if inner, ok := unchained(rest); ok {
		rest = inner
	}
	if adapter != "" {
		rest += "|" + adapter + path
	}
	return rest, true
}

// IsPath reports whether a text that Parse takes is a path of this machine, not a
// URL or a pipeline.
func IsPath(s string) bool {
	_, _, ok := cutScheme(s)
	return (!ok || isDrive(s)) && !strings.Contains(s, "|")
}

// File returns the URL of a path on this machine, in which "|" and "%" mean
// nothing.
func File(path string) (URL, error) {
	p, err := fileRoot("", path)
	if err != nil {
		return URL{}, &Error{URL: path, Err: err}
	}
	return URL{[]Part{p}}, nil
}

// Normalize returns the canonical form of a pipeline.
func Normalize(s string) (string, error) {
	u, err := Parse(s)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// extend appends the adapters of the text, which stand behind a "|" of whole,
// and carries out "..:".
func (u URL) extend(whole, text string) (URL, error) {
	for sub := range strings.SplitSeq(text, "|") {
		var err error
		if rest, ok := strings.CutPrefix(sub, parent); ok && (rest == "" || rest[0] == ':') {
			u, err = u.up(strings.TrimPrefix(rest, ":"))
		} else {
			u, err = u.with(sub)
		}
		if err == nil && len(u.parts) > maxAdapters+1 {
			err = fmt.Errorf("more than %d adapters", maxAdapters)
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
		return URL{}, fmt.Errorf("%w: there is no adapter left to leave", errAboveRoot)
	}
	return u.Prefix(len(u.parts) - 2).apply(path)
}

// with appends one adapter.
func (u URL) with(sub string) (URL, error) {
	name, rest, ok := cutScheme(sub)
	if !ok {
		if !isScheme(sub) {
			return URL{}, errors.New("it does not begin with the name of an adapter")
		}
		name = strings.ToLower(sub) // the colon may be left out
		rest = ""
	}
	p, err := parseAdapter(name, rest)
	if err != nil {
		return URL{}, err
	}
	next := u.Append(p)
	before := next.parts[len(next.parts)-2]
	switch needs, is := schemes[name].needs, before.Kind(); {
	case is == kindDataset:
		return URL{}, fmt.Errorf("%w: nothing can follow %s:, which is a dataset", errKind, before.Scheme)
	case needs != kindUnknown && is != kindUnknown && needs != is:
		return URL{}, fmt.Errorf("%w: %s: needs a %s, and %s is a %s", errKind, name, needs, quote(before.String()), is)
	}
	return next, nil
}

func parseRoot(dir, text string) (Part, error) {
	name, rest, ok := cutScheme(text)
	known := schemes[name]
	_, isKnown := schemes[name]
	switch {
	case strings.HasPrefix(text, parent+":"):
		return Part{}, errors.New("it begins with ..: and is not absolute")
	case !ok, isDrive(text):
		return fileRoot(dir, text)
	case isKnown && !known.root:
		return Part{}, fmt.Errorf("%s: is an adapter and cannot come first", name)
	case name == "file":
		return parseFile(dir, rest)
	}
	p := Part{Scheme: name}
	host, hasHost := strings.CutPrefix(rest, "//")
	if hasHost {
		i := strings.IndexAny(host+"/", "/?#")
		host, rest = host[:i], host[i:]
	}
	var err error
	switch {
	case known.host && !hasHost:
		return Part{}, fmt.Errorf("%s: is followed by //", name)
	case isKnown && !known.host && hasHost:
		return Part{}, fmt.Errorf("%s: has no host", name)
	case known.host && host == "":
		return Part{}, errors.New("no host or bucket")
	case hasHost:
		if p.Host, err = parseHost(name, host); err != nil {
			return Part{}, err
		}
	}
	if known.web {
		rest, p.Query, _ = strings.Cut(rest, "?")
		if p.Query, err = reescape(p.Query, inQuery, "#"); err != nil {
			return Part{}, err
		}
	}
	if p.Host != "" && rest == "" {
		rest = "/"
	}
	return p, p.set(rest)
}

// parseFile reads the part after "file:" (RFC 8089, and relative paths).
func parseFile(dir, rest string) (Part, error) {
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		i := strings.IndexByte(after, '/')
		if i < 0 {
			return Part{}, errors.New("no path; a relative one is written without //")
		}
		if host := after[:i]; host != "" && strings.ToLower(host) != "localhost" {
			return Part{}, fmt.Errorf("files of another host (%s) cannot be read", host)
		}
		rest = after[i:]
	}
	p := Part{Scheme: "file"}
	if strings.HasPrefix(rest, "/") {
		return p, p.set(rest)
	}
	path, err := p.decode(rest)
	if err != nil {
		return Part{}, err
	}
	return fileRoot(dir, path)
}

// fileRoot makes a root of a path on this machine.
func fileRoot(dir, path string) (Part, error) {
	switch {
	case path == "":
		return Part{}, errors.New("it is empty")
	case strings.IndexByte(path, 0) >= 0:
		return Part{}, errNUL
	case isDrive(path):
		path = "/" + strings.ReplaceAll(path, `\`, "/")
	case filepath.Separator == '\\':
		path = filepath.ToSlash(path)
	}
	if !strings.HasPrefix(path, "/") {
		abs, err := absolute(dir)
		if err != nil {
			return Part{}, err
		}
		path = strings.TrimSuffix(abs, "/") + "/" + path
	}
	p := Part{Scheme: "file"}
	clean, err := p.clean("/", path[1:], true)
	p.Path = escape(clean, inPath)
	return p, err
}

// absolute returns the working directory, or dir in its place, with slashes and
// a leading one.
func absolute(dir string) (string, error) {
	if dir == "" {
		var err error
		if dir, err = filepath.Abs("."); err != nil {
			return "", err
		}
	}
	if isDrive(dir) {
		return "/" + strings.ReplaceAll(dir, `\`, "/"), nil
	}
	if dir = filepath.ToSlash(dir); !strings.HasPrefix(dir, "/") {
		return "", fmt.Errorf("the directory %q is not absolute", dir)
	}
	return dir, nil
}

// isDrive reports whether a path begins with a drive of Windows, which is not a
// scheme.
func isDrive(s string) bool {
	return len(s) > 2 && isLetter(s[0]) && s[1] == ':' && (s[2] == '/' || s[2] == '\\')
}

// parseHost checks a host or bucket. In hosts case does not count, and neither
// does the default port.
func parseHost(scheme, text string) (string, error) {
	for i := range len(text) {
		if !mayStand(text[i], inHost) {
			return "", fmt.Errorf("%q in the host or bucket", text[i])
		}
	}
	text, err := reescape(text, inHost, "")
	if err != nil || !schemes[scheme].domain {
		return text, err
	}
	user := text[:strings.LastIndexByte(text, '@')+1]
	name, port := strings.ToLower(text[len(user):]), ""
	if i := strings.LastIndexByte(name, ':'); i >= 0 && strings.IndexByte(name[i:], ']') < 0 {
		name, port = name[:i], name[i+1:]
	}
	inside := name
	if len(name) > 2 && name[0] == '[' && name[len(name)-1] == ']' {
		inside = strings.ReplaceAll(name[1:len(name)-1], ":", "") // an IPv6 address
	}
	if name == "" || strings.ContainsAny(inside, ":[]") {
		return "", errors.New("no host that could be one") // it may be a part of a password
	}
	n, err := strconv.ParseUint("0"+port, 10, 16)
	if err != nil {
		return "", errors.New("the port is not a number below 65536") // it may be a part of a password
	}
	if n != 0 && n != defaultPort[scheme] {
		name += ":" + strconv.FormatUint(n, 10)
	}
	return user + name, nil
}

var defaultPort = map[string]uint64{"http": 80, "https": 443, "s3+http": 80, "s3+https": 443}

func parseAdapter(name, rest string) (Part, error) {
	p := Part{Scheme: name}
	known := schemes[name]
	if known.root {
		return Part{}, fmt.Errorf("%s: is not an adapter and can only come first", name)
	}
	switch known.syntax {
	case noPath:
		if rest != "" {
			return Part{}, fmt.Errorf("%s: takes no path", name)
		}
		return p, nil
	case byteRange:
		return p, p.setByteRange(rest)
	case pointer:
		return p, p.set(rest)
	case versioned:
		if version, ok := strings.CutPrefix(rest, "@"); ok {
			version, rest, _ = strings.Cut(version, "/")
			var err error
			if p.Version, err = parseVersion(name, version); err != nil {
				return Part{}, err
			}
			return p, p.set(rest)
		}
	}
	return p, p.set(strings.TrimPrefix(rest, "/"))
}

func (p *Part) setByteRange(text string) error {
	from, to, ok := strings.Cut(text, "-")
	start, err1 := strconv.ParseUint(from, 10, 63)
	end, err2 := strconv.ParseUint(to, 10, 63)
	if !ok || err1 != nil || err2 != nil {
		return fmt.Errorf("a byte range is two numbers, start-end, and not %s", quote(text))
	}
	if start > end {
		return fmt.Errorf("the byte range %d-%d ends before it begins", start, end)
	}
	p.Path = strconv.FormatUint(start, 10) + "-" + strconv.FormatUint(end, 10)
	return nil
}
