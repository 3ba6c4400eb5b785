package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestPrint(t *testing.T) {
	s := New()
	s.Observe("value", 200, 100, 3*time.Millisecond)
	s.Observe("value", 200, 50, 3*time.Second)
	s.Observe("value", 404, 5, time.Hour)
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
