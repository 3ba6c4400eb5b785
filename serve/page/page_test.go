package page

import (
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func get(t *testing.T, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	Handler("/-/ui/").ServeHTTP(w, r)
	b := must.Get(io.ReadAll(w.Result().Body))(t)
	return w.Result(), string(b)
}

// The page comes with a policy that forbids scripts in its text and requests elsewhere.
func TestHandler(t *testing.T) {
	resp, body := get(t, "/-/ui/")
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, "main.js") {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	policy := resp.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
	tag := resp.Header.Get("ETag")
	if resp, _ := get(t, "/-/ui/", "If-None-Match: "+tag); resp.StatusCode != http.StatusNotModified {
		t.Error(resp.StatusCode)
	}
	resp, _ = get(t, "/-/ui/main.js", "Accept-Encoding: gzip")
	if resp.Header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/javascript") {
		t.Error(resp.Header)
	}
	for _, file := range []string{"/-/ui/none.js", "/-/ui/../page.go", "/-/ui/page.go", "/-/ui/lib"} {
		if resp, _ := get(t, file); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", file, resp.StatusCode)
		}
	}
}

// Every file that a file names is served, no file names another server, and all are small.
func TestFiles(t *testing.T) {
	total := 0
	for _, f := range loaded() {
		total += len(f.gzipped)
	}
	names := regexp.MustCompile(`(?m)(?:^import .* from |src=|href=)["']([^"'#]+)["']`)
	for _, name := range slices.Concat(must.Get(fs.Glob(files, "*.js"))(t), must.Get(fs.Glob(files, "*.css"))(t), []string{"index.html"}) {
		body := string(must.Get(files.ReadFile(name))(t))
		for _, m := range names.FindAllStringSubmatch(body, -1) {
			to := strings.TrimPrefix(m[1], "./")
			if strings.HasPrefix(to, "data:") {
				continue
			}
			if _, ok := loaded()[to]; !ok && (path.Ext(name) != ".js" || !strings.Contains(string(loaded()["main.js"].body), "// "+to+"\n")) {
				t.Errorf("%s names %s, which is not served", name, m[1])
			}
		}
		for _, word := range []string{"innerHTML", "dangerouslySetInnerHTML", "eval(", "document.write"} {
			if strings.Contains(body, word) {
				t.Errorf("%s has %s: texts of stores could become code", name, word)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(import|export).*`).FindAllString(string(loaded()["main.js"].body), -1) {
		t.Errorf("main.js has %q, a form that join does not know", m)
	}
	if most := 150 << 10; total > most {
		t.Errorf("%d bytes compressed, more than %d", total, most)
	}
}

// Texts have the contrast of WCAG AA on every background that they stand on, in both themes.
func TestContrast(t *testing.T) {
	css := string(loaded()["page.css"].body)
	block := regexp.MustCompile(`(?s)(:root[^{]*)\{([^}]*)\}`)
	colour := regexp.MustCompile(`--([a-z0-9-]+): #([0-9a-f]{3}|[0-9a-f]{6});`)
	themes := 0
	for _, b := range block.FindAllStringSubmatch(css, -1) {
		colours := map[string]float64{} // luminance
		for _, m := range colour.FindAllStringSubmatch(b[2], -1) {
			colours[m[1]] = luminance(m[2])
		}
		themes++
		for on, texts := range map[string][]string{
			"paper":     {"ink", "dim", "link", "bad"},
			"raised":    {"ink", "dim", "link", "bad"},
			"chosen":    {"ink", "dim", "link"},
			"bad-paper": {"ink"},
			"lane0":     {"paper"},
			"lane4":     {"paper"},
		} {
			for _, text := range texts {
				lo, hi := min(colours[on], colours[text]), max(colours[on], colours[text])
				if ratio := (hi + 0.05) / (lo + 0.05); ratio < 4.5 {
					t.Errorf("%s %s on %s: %.2f", strings.TrimSpace(b[1]), text, on, ratio)
				}
			}
		}
	}
	if themes != 3 {
		t.Errorf("%d themes", themes)
	}
}

// luminance is the relative luminance of a colour in hexadecimal digits.
func luminance(hex string) float64 {
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, _ := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
