package refs

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/kv/redact"
)

// Rules say which URLs of a set may be followed. The zero Rules allow none.
//
// A URL is followed if it lies, after mapping, below Base, below the target of
// a mapping, or below a prefix of Allow. Everything else is [ErrForbidden]. So a
// set from a stranger reads only those files and hosts that its reader allowed.
//
// URLs, here and in sets, are not percent-encoded: a file with a space has a
// space in its URL. A path without a scheme is a local one if it begins with "/"
// (or a drive), else relative to Base. Prefixes end between two segments:
// "s3://a" is a prefix of "s3://a/x" and not of "s3://ab". One without a user and
// password, such as "https://h/", is also a prefix of URLs with them.
type Rules struct {
	// Base is the URL of the folder that holds the set. Relative URLs are
	// resolved against it. Empty: they are forbidden.
	Base string

	// Map rewrites prefixes; of several matching ones the longest is used.
	Map []Mapping

	// Allow lists further prefixes. "s3://" and the like allow a whole scheme.
	Allow []string
}

// Mapping replaces the prefix From of a URL by To.
type Mapping struct{ From, To string }

// A Place is the target of a URL: a path below a root.
type Place struct {
	// Root is a URL that ends in "/", below which the rules allow to read. An
	// opener should follow no symbolic link out of it.
	Root string
	// Path has no name "." or "..", and is not empty.
	Path string
	// Mapped means that a [Mapping] changed the URL.
	Mapped bool
}

// URL is the whole URL.
func (p Place) URL() string { return p.Root + p.Path }

// forbidden makes an error that matches ErrForbidden.
func forbidden(u, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrForbidden, quoteURL(u), fmt.Sprintf(format, args...))
}

// resolver is Rules in normalized form.
type resolver struct {
	base  string // ends in "/", or is empty
	maps  []Mapping
	allow []string
}

// newResolver checks the rules.
func newResolver(r Rules) (*resolver, error) {
	out := &resolver{}
	prefix := func(what, s string) (string, error) {
		u, ok, err := absolute(s)
		if err == nil && !ok {
			err = fmt.Errorf("it is relative")
		}
		if err != nil {
			return "", fmt.Errorf("refs: %s %s: %w", what, quoteURL(s), err)
		}
		return u, nil
	}
	var err error
	if r.Base != "" {
		if out.base, err = prefix("base", r.Base); err != nil {
			return nil, err
		}
		out.base = slashed(out.base)
	}
	for _, m := range r.Map {
		if m.From, err = prefix("mapped URL", m.From); err != nil {
			return nil, err
		}
		if m.To, err = prefix("target of a mapping", m.To); err != nil {
			return nil, err
		}
		out.maps = append(out.maps, m)
	}
	sort.SliceStable(out.maps, func(i, j int) bool { return len(out.maps[i].From) > len(out.maps[j].From) })
	for _, a := range r.Allow {
		if a, err = prefix("allowed prefix", a); err != nil {
			return nil, err
		}
		out.allow = append(out.allow, a)
	}
	return out, nil
}

// Resolve applies the rules to a URL of a set.
func (r Rules) Resolve(u string) (Place, error) {
	rs, err := newResolver(r)
	if err != nil {
		return Place{}, err
	}
	return rs.resolve(u)
}

func (r *resolver) resolve(u string) (Place, error) {
	abs, ok, err := absolute(u)
	if err != nil {
		return Place{}, forbidden(u, "%v", err)
	}
	if !ok {
		if r.base == "" {
			return Place{}, forbidden(u, "it is relative, and the folder of the set is not known")
		}
		path, err := clean(abs)
		if err != nil {
			return Place{}, forbidden(u, "%v", err)
		}
		abs = r.base + path
	}
	if p, ok, err := r.mapped(u, abs); ok {
		return p, err
	}
	if r.base != "" && strings.HasPrefix(abs, r.base) {
		return place(u, r.base, abs[len(r.base):])
	}
	user, bare := cutUser(abs)
	for _, a := range r.allow {
		rest, ok := below(abs, a)
		if !ok && user != "" {
			if rest, ok = below(bare, a); ok {
				scheme, host, _ := strings.Cut(a, "://")
				a = scheme + "://" + user + host
			}
		}
		if !ok {
			continue
		}
		if strings.HasSuffix(a, "://") { // a whole scheme: the root is the host
			host, path, _ := strings.Cut(rest, "/")
			a, rest = a+host, path
		}
		return place(u, a, rest)
	}
	return Place{}, forbidden(u, "to follow it, allow %s", quoteURL(originOf(abs)))
}

// mapped applies the mappings to a URL of a set, which is abs as an absolute URL. ok is
// false if no mapping fits.
func (r *resolver) mapped(u, abs string) (p Place, ok bool, err error) {
	for _, m := range r.maps {
		if rest, ok := below(abs, m.From); ok {
			p, err = place(u, m.To, rest)
			p.Mapped = p.URL() != abs
			return p, true, err
		}
	}
	return p, false, nil
}

// Mapper returns a function that applies mappings to URLs; of several mappings that fit,
// the longest counts. It does not check whether the URL may be followed. A URL that no
// mapping fits is returned unchanged. The function is safe for concurrent use.
func Mapper(mappings []Mapping) (func(url string) string, error) {
	rs, err := newResolver(Rules{Map: mappings})
	if err != nil || len(mappings) == 0 {
		return func(url string) string { return url }, err
	}
	return func(url string) string {
		if abs, ok, err := absolute(url); err == nil && ok {
			if p, ok, err := rs.mapped(url, abs); ok && err == nil {
				return p.URL()
			}
		}
		return url
	}, nil
}

// Origin returns the widest prefix that is usually allowed for a URL which is not relative:
// everything of its host or bucket, and of a local file its folder, or only the file if
// that is all of a disk. It has no user and password.
func Origin(u string) string {
	if abs, ok, err := absolute(u); err == nil && ok {
		u = abs
	}
	return originOf(u)
}

func originOf(abs string) string {
	_, abs = cutUser(abs)
	scheme, rest, _ := strings.Cut(abs, "://")
	if scheme == "file" {
		folder := abs[:strings.LastIndexByte(abs, '/')+1]
		if disk := folder[len("file:///"):]; disk == "" || len(disk) == len("C:/") && disk[1] == ':' {
			return abs
		}
		return folder
	}
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host + "/"
}

// cutUser cuts the user and password out of a URL of a web server, which end in "@".
func cutUser(abs string) (user, bare string) {
	if !isWeb(abs) {
		return "", abs
	}
	start := strings.Index(abs, "://") + len("://")
	host, _, _ := strings.Cut(abs[start:], "/")
	user = host[:strings.LastIndexByte(host, '@')+1]
	return user, abs[:start] + abs[start+len(user):]
}

// below returns the rest of u behind prefix, without the slash between them.
func below(u, prefix string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(u, prefix)
	switch {
	case !ok:
		return "", false
	case rest == "" || prefix[len(prefix)-1] == '/':
		return rest, true
	}
	return strings.CutPrefix(rest, "/")
}

func slashed(s string) string {
	if strings.HasSuffix(s, "/") {
		return s
	}
	return s + "/"
}

// place makes a Place. If the root is the file itself, the folder becomes the
// root.
func place(u, root, path string) (Place, error) {
	if path == "" {
		i := strings.LastIndexByte(root, '/') + 1
		root, path = root[:i], root[i:]
		if path == "" || strings.HasSuffix(root, "://") {
			return Place{}, forbidden(u, "it names no file")
		}
	}
	if root = slashed(root); isWeb(root) {
		// Elsewhere "?" and "#" are part of a name: "..?x" is a file there, but
		// leads above the root on a web server.
		name := path
		if i := strings.IndexAny(path, "?#"); i >= 0 {
			name = path[:i]
		}
		if cleaned, err := clean(name); err != nil || cleaned != name {
			return Place{}, forbidden(u, "before its query it leads elsewhere")
		}
	}
	return Place{Root: root, Path: path}, nil
}

// absolute normalizes a URL for comparison: scheme and host in lower case, local
// paths as "file:///…", no "." and "..". A relative one is returned unchanged,
// with ok false.
func absolute(u string) (abs string, ok bool, err error) {
	if strings.IndexByte(u, 0) >= 0 {
		return "", false, fmt.Errorf("it has a NUL")
	}
	if strings.Contains(u, "::") && strings.Contains(u, "://") {
		return "", false, fmt.Errorf("a chain (a::b) is not followed: unpack the archive, and make the set of its files")
	}
	scheme, rest, found := strings.Cut(u, "://")
	switch {
	case len(u) > 2 && u[1] == ':' && (u[2] == '\\' || u[2] == '/') && letter(u[0]) && (!found || len(scheme) > 1):
		scheme, rest = "file", "/"+strings.ReplaceAll(u, `\`, "/")
	case strings.HasPrefix(u, "/"):
		scheme, rest = "file", u
	case !found && strings.HasPrefix(u, "file:/"):
		scheme, rest = "file", u[len("file:"):]
	case !found:
		return u, false, nil
	case !isScheme(scheme):
		return "", false, fmt.Errorf("bad scheme %s", quoteURL(scheme))
	}
	scheme = Scheme(scheme)
	if scheme == "file" {
		rest = strings.TrimPrefix(rest, "localhost")
		if rest != "" && rest[0] != '/' {
			return "", false, fmt.Errorf("a file URL with a host, or a relative one")
		}
		for strings.Contains(rest, "//") {
			rest = strings.ReplaceAll(rest, "//", "/")
		}
		path, err := clean(strings.TrimPrefix(rest, "/"))
		return "file:///" + path, true, err
	}
	host, path, hasPath := strings.Cut(rest, "/")
	query := ""
	if isWeb(scheme + "://") {
		if i := strings.IndexAny(rest, `?#\`); i >= 0 && i < len(host) {
			return "", false, fmt.Errorf("no path behind the host")
		}
		name := strings.LastIndexByte(host, '@') + 1 // before it, letters differ by case
		host = host[:name] + strings.ToLower(host[name:])
		if i := strings.IndexAny(path, "?#"); i >= 0 { // opaque: the query cannot change the path
			path, query = path[:i], path[i:]
		}
	}
	if host == "" && hasPath {
		return "", false, fmt.Errorf("no host")
	}
	if path, err = clean(path); err != nil {
		return "", false, err
	}
	if hasPath {
		host += "/"
	}
	return scheme + "://" + host + path + query, true, nil
}

// isWeb reports whether a URL is one of a web server, where "?" begins a query.
func isWeb(u string) bool {
	return strings.HasPrefix(u, "http://") || strings.HasPrefix(u, "https://")
}

// Scheme returns a URL's scheme in the normalized form of [Rules]: in lower
// case, with "s3", "gs" and "file" in place of other names such as s3a, gcs and local.
func Scheme(name string) string { return redact.Scheme(name) }

func letter(x byte) bool { return x|0x20 >= 'a' && x|0x20 <= 'z' }

func isScheme(s string) bool {
	for i := range len(s) {
		x := s[i]
		if !letter(x) && (i == 0 || (x < '0' || x > '9') && x != '+' && x != '-' && x != '.') {
			return false
		}
	}
	return s != ""
}

// clean removes "." and ".." from a path. A path that leads above its beginning
// is an error, and so is a segment that a lenient program might decode to "..".
func clean(path string) (string, error) {
	plain := true
	for rest, more := path, true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		if name == "." || name == ".." || strings.ContainsAny(name, `%\`) {
			plain = false
		}
	}
	if plain {
		return path, nil
	}
	var out []string
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == ".":
		case name == ".." && len(out) == 0:
			return "", fmt.Errorf("it leads out of the folder")
		case name == "..":
			out = out[:len(out)-1]
		case hidesDots(name):
			return "", fmt.Errorf("segment %s", quote(name))
		default:
			out = append(out, name)
		}
	}
	return strings.Join(out, "/"), nil
}

// hidesDots reports whether a program that decodes a segment, or reads
// backslashes as slashes, would get several segments, "." or "..".
func hidesDots(name string) bool {
	for range 4 {
		for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == '\\' }) {
			if part == "." || part == ".." {
				return true
			}
		}
		decoded := unescape(name)
		if decoded == name {
			return false
		}
		name = decoded
	}
	return true // encoded again and again: no honest writer does so
}

// unescape decodes percent-encoding as lenient programs do: a % without two hexadecimal digits
// stays.
func unescape(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if x, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(x))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}
