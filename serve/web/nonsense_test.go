package web

import (
	"strings"
	"testing"
)

// Paths, queries and bodies that make no sense are errors of the client, in plain words and
// readable for web pages.
func TestNonsenseIsTheClients(t *testing.T) {
	s := newSite(t, Options{Authenticate: named})
	long := strings.Repeat("x", 3000)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/w/v/main@%7B/x", ""}, {"GET", "/w/v/main@%7Bx%7D/x", ""}, {"GET", "/w/v/@%7B0%7D/x", ""}, {"GET", "/w/v/main@%7B99999999999999999999%7D/x", ""},
		{"GET", "/w/v/main~x/x", ""}, {"GET", "/w/v/main~99999999999999999999/x", ""}, {"GET", "/w/v/%00/x", ""}, {"GET", "/w/v/..%2F/x", ""}, {"GET", "/w/v/" + long + "/x", ""},
		{"GET", "/w/v/~/x", ""}, {"GET", "/w/v/~zz/x", ""}, {"GET", "/w/v/main/" + "a%0Ab", ""}, {"GET", "/w/v/main/%ff", ""}, {"GET", "/w/x/main/", ""},
		{"GET", "/w/v/main/?limit=x", ""}, {"GET", "/w/v/main/?limit=-1", ""}, {"GET", "/w/v/main/?after=%ff", ""}, {"GET", "/w/v/main/?limit=99999999999999999999", ""},
		{"GET", "/w/v2/main/keys/small/x", ""}, {"GET", "/w/v3/main/t/c/-1/0", ""}, {"GET", "/w/v3/main/t/c/99999999999999999999/0", ""}, {"GET", "/w/v2/main/t/9.9.9", ""},
		{"PROPFIND", "/w/v/main/", "<"}, {"PUT", "/w/v/main/" + long + "?commit=x", "b"}, {"PUT", "/w/v/main/a%00?commit=x", "b"},
		{"PUT", "/w/v/main/keys/small/below?commit=x", "b"}, {"PUT", "/w/v/" + long + "/x?commit=x", "b"}, {"PUT", "/w/v/main~1/x?commit=x", "b"}, {"PUT", "/w/v/bad%20name/x?commit=x", "b"},
		{"GET", "/-/api/read?db=w&path=t&select=zzz", ""}, {"GET", "/-/api/read?db=w&path=t&select=99999999999999999999", ""}, {"GET", "/-/api/read?db=w&path=t&select=-9223372036854775808:", ""},
		{"GET", "/-/api/read?db=w&path=..%2F..&select=0", ""}, {"GET", "/-/api/read?db=w&path=t&select=y='2020'", ""}, {"GET", "/-/api/read?db=w&path=a//b", ""}, {"GET", "/-/api/read?db=w&rev=%ff&path=t", ""},
		{"POST", "/-/api/sessions", "{"}, {"POST", "/-/api/sessions", `{"db":5}`}, {"POST", "/-/api/sessions", `{"db":"w","branch":"..//"}`}, {"POST", "/-/api/sessions", `{"db":"w","branch":"` + long + `"}`}, {"POST", "/-/api/sessions", `{"db":"w","branch":"a\u0000"}`},
		{"GET", "/-/api/sessions/w/zz", ""}, {"POST", "/-/api/sessions/w/0000000000000000/commit", "[]"}, {"DELETE", "/-/api/sessions/w/..%2f", ""}, {"GET", "/-/api/sessions?db=..", ""},
	} {
		r := s.send(c.method, c.path, strings.NewReader(c.body), "Authorization: Bearer writer", "Origin: https://example.org")
		text := body(t, r)
		path := c.path[:min(len(c.path), 80)]
		if r.StatusCode >= 500 {
			t.Errorf("%s %s: status %d, %.300s", c.method, path, r.StatusCode, text)
		}
		for _, word := range []string{"kv: ", "txn: ", "zarr: ", "http: ", "strconv", "auth: ", "url: ", "json: ", "struct"} {
			if strings.Contains(text, word) {
				t.Errorf("%s %s: %.300s", c.method, path, text)
			}
		}
		if r.Header.Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("%s %s: no CORS headers", c.method, path)
		}
	}
}
