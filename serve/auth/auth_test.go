package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	secretA = "secret-of-a-with-length"
	secretB = "secret-of-b-with-length"
	secretC = "secret-of-c-with-length"
)

func sumOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func write(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	must.Do(t, os.WriteFile(file, []byte(text), mode))
	return file
}

func TestAuthenticate(t *testing.T) {
	k := must.Get(Load(write(t, "# keys\n\na read "+secretA+"\nb write:main,write:exp/* "+sumOf(secretB)+"\nb admin "+secretC+"\n", 0o600), nil))(t)
	for _, c := range []struct {
		header string
		basic  string
		want   string
	}{
		{"Bearer " + secretA, "", "a false []"},
		{"bearer  " + secretA, "", "a false []"},
		{"Bearer " + secretB, "", "b false [main exp/*]"},
		{"Bearer " + secretC, "", "b true []"},
		{"", "a:" + secretA, "a false []"},
		{"", "b:" + secretC, "b true []"},
		{"", "b:" + secretA, "refused"},
		{"Bearer wrong", "", "refused"},
		{"Bearer ", "", "refused"},
		{"Bearer " + sumOf(secretA), "", "refused"},
		{"Digest " + secretA, "", "refused"},
		{secretA, "", "refused"},
		{"", "", "none"},
	} {
		r, _ := http.NewRequest("GET", "/", nil)
		if c.header != "" {
			r.Header.Set("Authorization", c.header)
		}
		if name, secret, ok := strings.Cut(c.basic, ":"); ok {
			r.SetBasicAuth(name, secret)
		}
		got := "none"
		who, err := k.Authenticate(r)
		switch {
		case err != nil:
			got = "refused"
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the secret: %v", err)
			}
		case who != nil:
			got = fmt.Sprint(who.Name, " ", who.Admin, " ", who.Write)
		}
		if got != c.want {
			t.Errorf("%q %q: %s, want %s", c.header, c.basic, got, c.want)
		}
	}
	if secrets, _ := k.Secrets("b"); len(secrets) != 1 || secrets[0] != secretC {
		t.Errorf("secrets of b: %d", len(secrets))
	}
}

func TestAnonymous(t *testing.T) {
	k := must.Get(Load(write(t, "anonymous read -\n", 0o644), nil))(t)
	r, _ := http.NewRequest("GET", "/", nil)
	if who, err := k.Authenticate(r); err != nil || who == nil || who.Name != "anonymous" {
		t.Errorf("%v, %v", who, err)
	}
	r.Header.Set("Authorization", "Bearer wrong-secret-wrong")
	if _, err := k.Authenticate(r); !errors.Is(err, errUnknown) {
		t.Errorf("a wrong key: %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "no keys",
		"a read":                        "line 1: want NAME",
		"a read x y":                    "line 1: want NAME",
		"\n\na read short":              "line 3: the secret has fewer",
		"a read sha256:00":              "line 1: after sha256:",
		"a write " + secretA:            "the scopes are",
		"a write: " + secretA:           "the scopes are",
		"a write:[ " + secretA:          "pattern",
		"a/b read " + secretA:           "a name has",
		"anonymous write:* -":           "cannot write",
		"anonymous read " + secretA:     "cannot write",
		"a read,delete " + secretA + "": "the scopes are",
	} {
		_, err := Load(write(t, text, 0o600), nil)
		if !errors.Is(err, errKeys) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
			continue
		}
		if strings.Contains(err.Error(), secretA) {
			t.Errorf("%q: the error quotes the secret: %v", text, err)
		}
	}
	if _, err := Load(write(t, "a read "+secretA, 0o644), nil); !errors.Is(err, errKeys) {
		t.Errorf("a file that everybody may read: %v", err)
	}
	if _, err := Load(write(t, "a read "+sumOf(secretA), 0o644), nil); err != nil {
		t.Errorf("a file of sums that everybody may read: %v", err)
	}
}

// Keys come and go with the file; one that is not valid changes nothing.
func TestReload(t *testing.T) {
	file := write(t, "a read "+secretA, 0o600)
	var log bytes.Buffer
	k := must.Get(Load(file, slog.New(slog.NewTextHandler(&log, nil))))(t)
	known := func(secret string) bool {
		k.mu.Lock()
		k.looked = time.Time{} // as if a second had passed
		k.mu.Unlock()
		r, _ := http.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		who, err := k.Authenticate(r)
		return err == nil && who != nil
	}
	step := func(text, want string) {
		t.Helper()
		if text == "" {
			must.Do(t, os.Remove(file))
		} else if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(known(secretA), known(secretB)); got != want {
			t.Errorf("after %q: %s, want %s", text, got, want)
		}
	}
	step("a read "+secretA, "true false")
	step("a read "+secretB, "false true") // the same size, perhaps in the same tick
	step("a read "+secretA+"\na read "+secretB, "true true")
	step("a read", "true true")
	step("", "true true")
	step("a read "+secretB, "false true")
	if !strings.Contains(log.String(), "line 1") || strings.Contains(log.String(), secretA) {
		t.Errorf("log: %s", &log)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		l    Listen
		want string
	}{
		{Listen{Address: "localhost:80", ReadOnly: true}, ""},
		{Listen{Address: "127.0.0.1:80", ReadOnly: true}, ""},
		{Listen{Address: "[::1]:80", ReadOnly: true}, ""},
		{Listen{Address: "unix:/run/z.sock", ReadOnly: true}, ""},
		{Listen{Address: "localhost:80"}, "--read-only"},
		{Listen{Address: ":80", ReadOnly: true}, "--keys"},
		{Listen{Address: "0.0.0.0:80", ReadOnly: true}, "--keys"},
		{Listen{Address: "[::]:80", ReadOnly: true, TLS: true}, "--keys"},
		{Listen{Address: "example.org:80", ReadOnly: true}, "--keys"},
		{Listen{Address: "nonsense", ReadOnly: true}, "HOST:PORT"},
		{Listen{Address: "", ReadOnly: true}, "HOST:PORT"},
		{Listen{Address: "unix:", ReadOnly: true}, "path of a socket"},
		{Listen{Address: "localhost:80", ReadOnly: true}.On(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}), ""},
		{Listen{Address: "localhost:80", ReadOnly: true}.On(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}), "--keys"},
		{Listen{Address: "localhost:80", ReadOnly: true}.On(&net.TCPAddr{IP: net.IPv6unspecified, Port: 80}), "--keys"},
		{Listen{Address: "localhost:80", ReadOnly: true}.On(&net.UnixAddr{Name: "/run/z.sock", Net: "unix"}), ""},
		{Listen{Address: "8080", ReadOnly: true}, "such as localhost:8080"},
		{Listen{Address: "localhost:80", Keys: true}, ""},
		{Listen{Address: ":80", Keys: true}, "--behind-tls-proxy"},
		{Listen{Address: ":80", Keys: true, TLS: true}, ""},
	} {
		err := c.l.Check()
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, errOpen) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.l, err, c.want)
		}
	}
}

// A key file is valid or an error, and the error quotes no secret.
func FuzzKeys(f *testing.F) {
	f.Add("viewer read sha256:" + strings.Repeat("9f", 32) + "\nloader write:main,write:exp/* 2mJc0Fq-longer-than-16\nanonymous read -\n")
	f.Add("ops admin 0123456789abcdef\n# a remark\n\nops admin short\n")
	f.Fuzz(func(t *testing.T, text string) {
		keys, anonymous, err := parse([]byte(text))
		if err != nil {
			return
		}
		if anonymous != nil && (anonymous.Admin || len(anonymous.Write) > 0) {
			t.Errorf("a request without a key may write: %q", text)
		}
		for _, k := range keys {
			if k.secret != "" && len(k.secret) < minSecret {
				t.Errorf("a secret of %d bytes", len(k.secret))
			}
		}
	})
}
