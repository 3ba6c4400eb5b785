package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"net/url"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/npy"
)

func TestRead(t *testing.T) {
	s := newSite(t, Options{ReadBytes: 24 * 32})
	get := func(status int, query string) string {
		t.Helper()
		r := s.do("GET", "/-/api/read?db=w&"+query)
		text := body(t, r)
		if r.StatusCode != status {
			t.Fatalf("%s: status %d, want %d: %s", query, r.StatusCode, status, text)
		}
		return text
	}
	var out struct {
		Shape []int64
		Type  string `json:"data_type"`
		Data  []int
	}
	for query, want := range map[string]string{
		"path=t&select=1,::2":                           "[3] uint8 [6 8 10]",
		"path=t&select=" + url.QueryEscape("y=0:2,x=5"): "[2] uint8 [5 11]",
		"path=t&select=-1,-1&rev=main~0":                "[] uint8 [23]",
		"path=t&select=0:0":                             "[0 6] uint8 []",
	} {
		out.Data, out.Shape = nil, nil
		must.Do(t, json.Unmarshal([]byte(get(200, query)), &out))
		if got := fmt.Sprint(out.Shape, " ", out.Type, " ", out.Data); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if got := get(200, "path=t&select=2:,4:&format=raw"); got != "\x10\x11\x16\x17" {
		t.Errorf("raw: %q", got)
	}
	f, err := npy.Read(strings.NewReader(get(200, "path=t&format=npy")), 1<<20)
	if err != nil || fmt.Sprint(f.Shape) != "[4 6]" {
		t.Errorf("npy: %+v, %v", f, err)
	}
	img, err := png.Decode(strings.NewReader(get(200, "path=t&format=png")))
	if err != nil || img.Bounds().Dx() != 6 || img.Bounds().Dy() != 4 {
		t.Errorf("png: %v", err)
	}
	for query, status := range map[string]int{
		"path=t&select=99":             400,
		"path=t&select=x=1,z=2":        400,
		"path=t&select=(":              400,
		"path=t&format=gif":            400,
		"path=t&decode=x":              400,
		"path=":                        400,
		"path=none":                    404,
		"path=t&rev=none":              404,
		"path=../t":                    400,
		"path=t&select=0,0&format=png": 406,
	} {
		if r := s.do("GET", "/-/api/read?db=w&"+query); r.StatusCode != status {
			t.Errorf("%s: status %d, want %d: %s", query, r.StatusCode, status, body(t, r))
		}
	}
	s.h = New(s.table, Options{Anonymous: reader, ReadBytes: 23})
	get(413, "path=t&format=raw")
	get(413, "path=t&format=json&select=0,0")
	get(200, "path=t&format=raw&select=1:")
}

func TestReports(t *testing.T) {
	s := newSite(t, Options{})
	for path, want := range map[string]string{
		"/-/api/names":                       `200 ["w"]`,
		"/-/api/log?db=w&n=1":                `200 [{"id":"` + s.first.String() + `",`,
		"/-/api/log?db=w&n=0":                `400 {"error":"n=0: want a number`,
		"/-/api/log?db=w&path=none":          "200 []\n",
		"/-/api/diff?db=w&rev=none":          `404`,
		"/-/api/diff?db=w&rev=main~1&path=t": `200 [{"path":"t",`,
		"/-/api/diff?db=w&to=--values":       `404`,
		"/-/api/show?db=w&path=t":            `400 {"error":"show: it is about the whole version`,
		"/-/api/tag?db=w":                    "200 []\n",
		"/-/api/branch?db=w":                 `200 [{"commit":"` + s.first.String() + `","name":"feature/one"},` + "\n",
		"/-/api/info?db=w&path=t":            "200 {\n  \"node_type\": \"array\",",
		"/-/api/info?db=w&path=x":            `404 {"error":"open x: not found"}`,
		"/-/api/info?db=w&path=--help":       `404`,
		"/-/api/info?db=w&rev=main:t":        `404`,
		"/-/api/info?db=w&path=a%7Czip:":     `404`,
		"/-/api/info?db=w&path=a%00":         `404`,
		"/-/api/blame?db=w&path=t":           `200 [{"author":`,
		"/-/api/blame?db=w&path=keys":        `404`,
		"/-/api/stats?db=w":                  "200 {\n  \"branches\": 2,",
		"/-/api/ls?db=w":                     `200 [{"node_type":"array",`,
		"/-/api/tree?db=x":                   `404 {"error":"x: no such database`,
		"/-/api/gc?db=w":                     `404`,
		"/-/api/":                            `404`,
		"/-/":                                `404`,
	} {
		r := s.do("GET", path)
		if got := fmt.Sprintf("%d %s", r.StatusCode, body(t, r)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	endless := func(yield func(string, error) bool) {
		for yield(strings.Repeat("x", 1<<20), nil) {
		}
	}
	if _, err := list(endless); !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("an answer without end: %v", err)
	}
}

func TestMetrics(t *testing.T) {
	s := newSite(t, Options{Authenticate: named})
	s.ask(201, "PUT", "/w/v/main/keys/x?commit=x", "x", nil)
	s.do("GET", "/w/v/main/keys/small", asWriter)
	s.do("GET", "/w/v/main/none", asWriter)
	text := body(t, s.do("GET", "/-/metrics", asWriter))
	for _, want := range []string{
		`zarrdb_requests_total{route="value",status="200"} 1`, `zarrdb_sent_bytes_total{route="value",status="200"} 10`,
		`zarrdb_requests_total{route="value",status="404"} 1`, `zarrdb_requests_total{route="write",status="201"} 1`, "zarrdb_commits_total 1", "zarrdb_requests_active 1",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
