package redact

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "",
		"https://h/a%2Fb@c":                    "https://h/a%2Fb@c",
		"https://joe:pw@h:1/a%2Fb?sig=x&y=z#f": "https://h:1/a%2Fb?…",
		"HTTPS://token@h":                      "HTTPS://h",
		"http://h/a?":                          "http://h/a?",
		"http://h?pw":                          "http://h?…",
		"http://h/a#pw":                        "http://h/a#…",
		"http://h/a#b?pw":                      "http://h/a#…",
		"http://[::1]:8/a@b":                   "http://[::1]:8/a@b",
		"http://[::1]/a@b":                     "http://[::1]/a@b",
		"http://joe:pw@[::1]:8/a":              "http://[::1]:8/a",
		"http://a@b@h/c":                       "http://h/c",

		// Presigned, and with an Azure or Google token.
		"https://b.s3.amazonaws.com/k.nc?versionId=3HL4kqt&X-Amz-Credential=AKIA&X-Amz-Signature=5f0c&X-Amz-Security-Token=q": "https://b.s3.amazonaws.com/k.nc?versionId=3HL4kqt&…",
		"https://x.blob.core.windows.net/c/k?sv=1&se=2&sp=r&sig=x&snapshot=2026-01-02T03:04:05.6Z":                            "https://x.blob.core.windows.net/c/k?snapshot=2026-01-02T03:04:05.6Z&…",
		"https://storage.googleapis.com/b/k?access_token=x&generation=12":                                                     "https://storage.googleapis.com/b/k?generation=12&…",
		"s3://b/k?versionid=a.b-_c":   "s3://b/k?versionid=a.b-_c",
		"s3://b/k?versionId=a;sig=pw": "s3://b/k?…",
		"s3://b/k?versionId=a%26pw":   "s3://b/k?…",
		"s3://b/k?versionId=a#pw":     "s3://b/k?…",
		"s3://b/k?pw":                 "s3://b/k?…",

		// A name is not a secret.
		"s3://key:pw@b/k@1#2":    "s3://b/k@1#2",
		"s3://tenant:b/k":        "s3://tenant:b/k",
		"/data/a@b?c#d":          "/data/a@b?c#d",
		"file:///data/a@b?c#d":   "file:///data/a@b?c#d",
		"local:///data/a?c":      "local:///data/a?c",
		`c:\data\a?c`:            `c:\data\a?c`,
		"c:/data/a?c":            "c:/data/a?c",
		"a@b.nc":                 "a@b.nc",
		"a@b.nc?sig=pw&u=x://y":  "a@b.nc?…",
		"../a.nc?versionId=1":    "../a.nc?versionId=1",
		"{{u}}/{{name}}?sig={s}": "{{u}}/{{name}}?…",

		// Malformed: a password as somebody types it.
		"https://joe:p/w@h/a?b": "https://h/a?…",
		"https://joe:p?w@h/a":   "https://h/a",
		"https://joe:p#w@h/a":   "https://h/a",

		// Several URLs in one.
		"zip://a?b::https://joe:pw@h/c.zip?pw": "zip://a?…::https://h/c.zip?…",
		"filecache::s3://pw@b/c":               "filecache::s3://b/c",
		"zip::filecache::s3://pw@b/c":          "zip::filecache::s3://b/c",
		"https://h/a?x=pw::pw":                 "https://h/a?…",
		"https://proxy/https://joe:pw@h/a":     "https://proxy/https://h/a",
	} {
		if got := URL(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if again := URL(want); again != want {
			t.Errorf("%s: %s when it is redacted again", want, again)
		}
	}
}

func TestQuery(t *testing.T) {
	for in, want := range map[string]string{"": "", "&": "…", "a": "…", "versionId=": "versionId=", "a&versionId=1&b": "versionId=1&…", "versionId": "…"} {
		if got := Query(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestSecretsGo builds URLs with a secret in each place where one may stand, and
// looks for it in what is printed, which must still name the file.
func TestSecretsGo(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	one := func(of ...string) string { return of[rnd.IntN(len(of))] }
	for range 20000 {
		secret := "SECRET"
		for range rnd.IntN(4) {
			secret = one("+", "/", "=", "%2F", "::", ";", ":", "~", "!", ",") + secret
		}
		user := one("", "joe:"+secret+"@", secret+"@", "joe:"+secret+"@", "SECRET:x@")
		if strings.ContainsAny(user, "/") && !strings.HasPrefix(user, "joe:") {
			user = "" // that is a path
		}
		query := one("", "?sig="+secret, "?"+secret, "?versionId=1&token="+secret, "?a=b&"+secret+"=c&d", "?se="+secret+"&sp=r", "?versionId="+secret+"/x#y")
		fragment := one("", "#"+secret)
		in := one("", "zip://inner.nc::", "simplecache::") + one("https", "http", "HTTP") + "://" + user + one("host", "host:81", "[::1]", "[::1]:81") + "/dir/file.nc" + query + fragment
		got := URL(in)
		if strings.Contains(got, "SECRET") || !strings.Contains(got, "/dir/file.nc") {
			t.Fatalf("seed %d: %s is printed as %s", seed, in, got)
		}
	}
}
