package httpkv

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
)

// Options say how a server is read. nil and the zero value work.
type Options struct {
	// Remote says how requests are sent, tried again and merged.
	Remote remote.Options

	// Forbidden takes answer 403 for a missing key. Buckets whose keys may be
	// read but not listed give it for keys that they do not have. They give it
	// for wrong or outdated credentials too, and then existing chunks would be
	// read as the fill value. Default false: answer 403 is an error.
	Forbidden bool

	// Authorization is the header of this name that is sent to the host of the address, and
	// nowhere else, unless the address has a user.
	Authorization string

	// Spelled maps first names of keys to the escaped form that the server
	// expects, if it differs from Escape: {"a+b": "a%2Bb"}.
	Spelled map[string]string
}

// View is the keys below an address. Safe for concurrent use; it needs no Close.
type View struct {
	*remote.Objects
	c *remote.Client
	s *server
}

var (
	_ kv.Reader      = (*View)(nil)
	_ kv.Locator     = (*View)(nil)
	_ kv.BatchReader = (*View)(nil)
)

// Open returns the view of the keys below base, an http or https URL, without a
// request. A slash is added to a path that lacks one. The query, user and
// password of base are sent with every request.
func Open(base string, o *Options) (*View, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("httpkv: malformed URL") // the reason would quote it with its secrets
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("httpkv: %s is not an http or https URL", remote.Redact(u))
	}
	var c Options
	if o != nil {
		c = *o
	}
	s := &server{scheme: u.Scheme, host: u.Host, path: strings.TrimSuffix(u.EscapedPath(), "/") + "/", query: u.RawQuery, auth: c.Authorization, o: c}
	if u.User != nil {
		password, _ := u.User.Password()
		h := http.Request{Header: http.Header{}}
		h.SetBasicAuth(u.User.Username(), password)
		s.auth = h.Header.Get("Authorization")
	}
	client := remote.NewClient(&c.Remote)
	return &View{remote.NewObjects(client, s), client, s}, nil
}

// server is the remote.Protocol of one address.
type server struct {
	scheme, host, path, query, auth string
	o                               Options
}

var _ remote.Protocol = (*server)(nil)

func (s *server) Request(ctx context.Context, method, key string, pin remote.Version) (*http.Request, error) {
	if err := validKey(key); err != nil {
		return nil, err
	}
	req, err := s.request(ctx, method, key, s.query)
	if err != nil {
		return nil, err
	}
	pin.Condition(req.Header)
	return req, nil
}

// request makes the request of a key, or of a directory with a slash at its end.
func (s *server) request(ctx context.Context, method, key, query string) (*http.Request, error) {
	name, rest, more := strings.Cut(key, "/")
	escaped := s.o.Spelled[name]
	if escaped == "" {
		escaped = Escape(name)
	}
	if more {
		escaped += "/" + Escape(rest)
	}
	// Built by hand, so that the escapes of the URL are sent unchanged.
	u := s.scheme + "://" + s.host + s.path + escaped
	if query != "" {
		u += "?" + query
	}
	req, err := http.NewRequestWithContext(ctx, method, u, nil)
	if err != nil {
		return nil, fmt.Errorf("httpkv: %w: it makes no URL", kv.ErrInvalidKey)
	}
	if s.auth != "" {
		req.Header.Set("Authorization", s.auth)
	}
	return req, nil
}

func (s *server) Version(h http.Header) remote.Version { return remote.VersionOf(h) }

func (s *server) Missing(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		return true
	case http.StatusForbidden:
		return s.o.Forbidden
	}
	// A redirect to an address with a slash at its end leads to the page of a
	// directory, which is not the value of a key.
	first := resp.Request
	for first.Response != nil {
		first = first.Response.Request
	}
	return first != resp.Request && strings.HasSuffix(resp.Request.URL.Path, "/")
}

func (s *server) Code(*http.Response) string { return "" }

func validKey(key string) error {
	if err := kv.ValidKey(key); err != nil {
		return err
	}
	for name := range strings.SplitSeq(key, "/") {
		if name == "." || name == ".." {
			return fmt.Errorf("%w: %.200q: servers resolve the name %q", kv.ErrInvalidKey, key, name)
		}
	}
	return nil
}

// Escape escapes a key for the path of a URL. A plus sign is escaped too,
// because some servers decode it to a space.
func Escape(key string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~!$&'()*,;=:@/", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}
