package metrics

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A line has who, when, what, and no secret.
func TestAccessLog(t *testing.T) {
	var out strings.Builder
	s := New()
	h := Log(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Sender(r.Context(), "loader")
		s.Observe(r.Context(), "value", 206, 5, time.Second)
	}), &out)
	r := httptest.NewRequest("GET", "/w.zdb/v/main/a%0ab%22?X-Amz-Signature=secret&token=secret", nil)
	r.Header.Set("Authorization", "Bearer secret")
	r.SetBasicAuth("loader", "secret")
	h.ServeHTTP(httptest.NewRecorder(), r)
	line := regexp.MustCompile(`^192\.0\.2\.1 - loader \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET /w\.zdb/v/main/a%0ab%22\?… HTTP/1\.1" 206 5\n$`)
	if !line.MatchString(out.String()) {
		t.Errorf("%q", out.String())
	}
}

func TestPrint(t *testing.T) {
	s := New()
	s.Observe(t.Context(), "value", 200, 100, 3*time.Millisecond)
	s.Observe(t.Context(), "value", 200, 50, 3*time.Second)
	s.Observe(t.Context(), "value", 404, 5, time.Hour)
	w := httptest.NewRecorder()
	s.Handler(func(put func(name, help, database string, value float64)) {
		put("zarrdb_commits_total", "Commits.", "a\"b\\c\n\xff", 7)
		put("zarrdb_commits_total", "Commits.", "other", 1)
	}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	b := w.Body
	for _, want := range []string{
		`zarrdb_requests_total{route="value",status="200"} 2`,
		`zarrdb_requests_total{route="value",status="404"} 1`,
		`zarrdb_sent_bytes_total{route="value",status="200"} 150`,
		`zarrdb_request_seconds_bucket{route="value",status="200",le="0.0025"} 0`,
		`zarrdb_request_seconds_bucket{route="value",status="200",le="0.005"} 1`,
		`zarrdb_request_seconds_bucket{route="value",status="200",le="5"} 2`,
		`zarrdb_request_seconds_bucket{route="value",status="404",le="+Inf"} 1`,
		`zarrdb_request_seconds_sum{route="value",status="200"} 3.003`,
		`zarrdb_request_seconds_count{route="value",status="404"} 1`,
		`zarrdb_commits_total{database="a\"b\\c\n�"} 7`,
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("no line %s in\n%s", want, b)
		}
	}
	if strings.Count(b.String(), "# TYPE zarrdb_commits_total") != 1 {
		t.Errorf("types:\n%s", b)
	}
}
