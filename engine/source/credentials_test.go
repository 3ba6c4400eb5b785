package source

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
)

func TestNetrcLogin(t *testing.T) {
	text := "# machine c login no\nmachine a login u password p\nmacdef init\nmachine b login no password no\n\nmachine b account x password \"q \\\" #1\" login v machine\n\tB2\n  user w #c\n password #2\ndefault login d password e\nmachine last login z"
	for host, want := range map[string]string{"a": "u:p", "A": "u:p", "b": `v:q " #1`, "b2": "w:#2", "c": "", "d": "", "last": "z:", "": ""} {
		login, password, ok := netrcLogin(text, host)
		if got := login + ":" + password; ok != (want != "") || ok && got != want {
			t.Errorf("%q has %q, %v, want %q", host, got, ok, want)
		}
	}
	for i := range text { // cut anywhere
		netrcLogin(text[:i], "b")
		netrcLogin(text[i:], "b")
	}
}

func TestAuthorization(t *testing.T) {
	netrc := filepath.Join(t.TempDir(), "netrc")
	must.Do(t, os.WriteFile(netrc, []byte("machine h.example login u password p\ndefault login d password d\n"), 0o600))
	t.Setenv("NETRC", netrc)
	t.Setenv("ZARRDB_TOKEN_a__b_example_org", " t1\n")
	t.Setenv("ZARRDB_TOKEN_A__B_EXAMPLE_ORG_8443", "t2")
	t.Setenv("ZARRDB_TOKEN___1_80", "t3")
	for at, want := range map[[2]string]string{
		{"https", "h.example"}: "Basic dTpw", {"https", "h.example:8443"}: "Basic dTpw",
		{"https", "a-b.example.org"}: "Bearer t1", {"https", "a-b.example.org:8443"}: "Bearer t2", {"http", "[::1]:80"}: "Bearer t3",
		// Not over plain http to another machine, to another port or to a host that others chose.
		{"http", "h.example"}: "", {"http", "a-b.example.org"}: "", {"https", "a-b.example.org:1"}: "", {"https", "other.example"}: "",
	} {
		if got := authorization(at[0], at[1]); got != want {
			t.Errorf("%s://%s: %q, want %q", at[0], at[1], got, want)
		}
	}
}

// Credentials of the process go to their host, and not where it redirects to. No error
// has them.
func TestCredentialsStay(t *testing.T) {
	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
		w.Write([]byte("there"))
	}))
	defer other.Close()
	var seen string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		switch {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, other.URL+"/x", http.StatusFound)
		case strings.HasSuffix(seen, "secret-token") && r.URL.Path == "/x":
			w.Write([]byte("here"))
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	variable := "ZARRDB_TOKEN_" + strings.NewReplacer(".", "_", ":", "_").Replace(host)
	adapters := DefaultAdapters()
	read := func(at string) (string, error) {
		u := must.Get(zurl.Parse(at))(t)
		e := &Env{Adapters: adapters}
		place, err := e.Open(t.Context(), u)
		if err != nil {
			return "", err
		}
		b, err := kv.Get(t.Context(), place.View, place.Path)
		return string(b), err
	}
	if _, err := read(server.URL + "/x"); err == nil || seen != "" {
		t.Errorf("without a token: %q, %v", seen, err)
	}
	t.Setenv(variable, "secret-token")
	if got, err := read(server.URL + "/x"); got != "here" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := read(strings.Replace(server.URL, "://", "://u:p@", 1) + "/x"); err == nil || !strings.HasPrefix(seen, "Basic ") {
		t.Errorf("a URL with a user: %q, %v", seen, err)
	}
	if _, err := read(server.URL + "/none"); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "401 Unauthorized; a token is read from the variable "+variable+", login") {
		t.Errorf("an answer 401: %v", err)
	}
	_, err := read(server.URL + "/moved") // the rule for redirects refuses an address of this machine
	if err == nil || strings.Contains(err.Error(), "secret") || len(elsewhere) > 0 {
		t.Errorf("a redirect to another address: %v, %q", err, elsewhere)
	}
	follows := remote.Options{Redirect: func(*url.URL) error { return nil }}
	adapters.ReplaceRoot("http", RemoteRoots(&RemoteOptions{Requests: follows})["http"])
	if got, err := read(server.URL + "/moved"); got != "there" || err != nil || strings.Join(elsewhere, "") != "" || seen == "" {
		t.Errorf("a redirect that is followed: %q, %v, %q", got, err, elsewhere)
	}
}
