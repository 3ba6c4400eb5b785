package web

import (
	"encoding/json"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// Start has what the requests that it stands for answer.
func TestStart(t *testing.T) {
	s := newSite(t, Options{Targets: map[string]string{"w": "dir/w.zdb"}})
	var out struct {
		Names, Branches, Tags, Colours []any
		DB, Target                     string
		Versions                       bool
		Head                           struct{ ID string }
		Info, Axes                     map[string]any
	}
	must.Do(t, json.Unmarshal([]byte(body(t, s.do("GET", "/-/api/start?path=t"))), &out))
	same := func(kind string, got any) {
		t.Helper()
		var want any
		must.Do(t, json.Unmarshal([]byte(body(t, s.do("GET", "/-/api/"+kind))), &want))
		if a, b := string(must.Get(json.Marshal(got))(t)), string(must.Get(json.Marshal(want))(t)); a != b {
			t.Errorf("%s: %s, alone %s", kind, a, b)
		}
	}
	if !out.Versions || out.DB != "w" || out.Target != "dir/w.zdb" || len(out.Head.ID) != 40 {
		t.Errorf("%+v", out)
	}
	same("names", out.Names)
	same("branch?db=w", out.Branches)
	same("tag?db=w", out.Tags)
	same("colours", out.Colours)
	same("info?db=w&path=t", out.Info["t"])
	same("axes?db=w&path=t", out.Axes["t"])
	for query, status := range map[string]int{"path=none": 200, "rev=none": 404, "db=none": 404} {
		if r := s.do("GET", "/-/api/start?"+query); r.StatusCode != status {
			t.Errorf("%s: %d", query, r.StatusCode)
		}
	}
}
