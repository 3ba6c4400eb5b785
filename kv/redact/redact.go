// Package redact removes secrets from URLs, so that errors, logs and audit
// records can show them.
//
//	https://joe:secret@host/a/b.nc?versionId=7&X-Amz-Signature=5f0c#part
//	        └── goes ──┘           └─ stays ─┘ └────── "…" ────────────┘
//
// It is for texts that people read, never for data: stored, exported and listed
// URLs are not redacted.
package redact

import "strings"

// URL prints a URL without user information. It prints "…" for its fragment and
// for all parameters of its query but the version of a file (see [Query]). The
// result still names the file. The URL may be malformed or relative, in which
// case its query goes too, or a chain ("zip://a::https://host/b.zip"), of which
// each link is redacted. A file of this machine ("/a?b", "file:///a?b") has none
// of these, and is printed as it is.
func URL(s string) string {
	if !strings.ContainsAny(s, "@?#") {
		return s
	}
	var b strings.Builder
	for {
		first, rest, more := cutLink(s)
		b.WriteString(link(first))
		if !more {
			return b.String()
		}
		b.WriteString("::")
		s = rest
	}
}

// Query prints the query of a URL, without its question mark: the version of
// the file stays ("versionId=7"), everything else is "…".
func Query(q string) string {
	if q == "" {
		return ""
	}
	var shown []string
	hidden := false
	for parameter := range strings.SplitSeq(q, "&") {
		if name, value, ok := strings.Cut(parameter, "="); ok && versions[strings.ToLower(name)] && plain(value) {
			shown = append(shown, parameter)
		} else {
			hidden = true
		}
	}
	if hidden {
		shown = append(shown, "…")
	}
	return strings.Join(shown, "&")
}

// versions are the parameters, in lower case, by which S3, Azure and GCS name a
// version of an object.
var versions = map[string]bool{"versionid": true, "snapshot": true, "generation": true}

// plain reports whether a value cannot hold another parameter: some servers take
// a semicolon for "&".
func plain(value string) bool {
	for _, x := range []byte(value) {
		if !letter(x) && !digit(x) && strings.IndexByte("._:-", x) < 0 {
			return false
		}
	}
	return true
}

// cutLink cuts off the first link of a chain. "::" joins two only before a
// scheme, because addresses and signatures may hold it.
func cutLink(s string) (first, rest string, more bool) {
	for i := range len(s) {
		if rest, ok := strings.CutPrefix(s[i:], "::"); ok {
			if scheme, _, ok := strings.Cut(rest, "://"); ok && isScheme(scheme) {
				return s[:i], rest, true
			}
		}
	}
	return s, "", false
}

func isScheme(s string) bool {
	for _, x := range []byte(s) {
		if !letter(x) && !digit(x) && strings.IndexByte("+.-", x) < 0 {
			return false
		}
	}
	return s != ""
}

func letter(x byte) bool { return x|0x20 >= 'a' && x|0x20 <= 'z' }
func digit(x byte) bool  { return x >= '0' && x <= '9' }

// link redacts a URL that is no chain.
func link(s string) string {
	if local(s) {
		return s
	}
	s = withoutUser(s)
	head, query, ok := strings.Cut(s, "?")
	if web(s) { // elsewhere "#" is a character of names
		if name, _, ok := strings.Cut(head, "#"); ok {
			return name + "#…"
		}
	}
	if ok {
		head += "?" + Query(query)
	}
	return head
}

// local reports whether a URL or path is absolute and of this machine.
func local(s string) bool {
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, `\`) {
		return true
	}
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok {
		return false
	}
	if len(scheme) == 1 && letter(scheme[0]) { // a drive
		return rest != "" && (rest[0] == '/' || rest[0] == '\\')
	}
	return Scheme(scheme) == "file"
}

func web(s string) bool {
	scheme, _, _ := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	return scheme == "http" || scheme == "https"
}

// withoutUser removes the user information of hosts: also of one in a path,
// where some proxies expect their target.
func withoutUser(s string) string {
	for i := 0; ; {
		at := strings.Index(s[i:], "://")
		if at < 0 {
			return s
		}
		i += at + len("://")
		host := s[i:]
		if end := strings.IndexAny(host, "/?#"); end >= 0 {
			host = host[:end]
		}
		user := strings.LastIndexByte(host, '@')
		if user < 0 && !portOrNone(host) {
			// A password that is not escaped may hold characters that seem to end the host.
			user = strings.LastIndexByte(s[i:], '@')
		}
		s = s[:i] + s[i+user+1:]
	}
}

// portOrNone reports whether what follows the name of a host is a port, or nothing.
func portOrNone(host string) bool {
	port := host[strings.LastIndexByte(host, ':')+1:]
	return port == host || strings.HasSuffix(host, "]") || port != "" && strings.Trim(port, "0123456789") == ""
}
