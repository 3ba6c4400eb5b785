package web

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/serve"
)

// Owners see what a collection would free and who holds the rest, without a right to write.
func TestGarbage(t *testing.T) {
	s := newSite(t, Options{Anonymous: serve.Owner("me"), Owner: true, ReadOnly: true})
	resp := s.do(http.MethodGet, "/-/api/garbage?db=w")
	type holder struct{ Kind, Name string }
	var out struct {
		Live    int64 `json:"live_bytes"`
		Holders []holder
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.StatusCode, err)
	}
	if out.Live < int64(len(s.big)) || !slices.ContainsFunc(out.Holders, func(h holder) bool { return h == holder{"branch", "main"} }) {
		t.Errorf("%+v", out)
	}
	for _, request := range [][2]string{{http.MethodPost, "/-/api/sessions"}, {http.MethodPut, "/w/v/~" + "0123456789abcdef" + "/x"}, {http.MethodDelete, "/w/v/main/t/zarr.json"}} {
		if resp := s.do(request[0], request[1]); resp.StatusCode != http.StatusForbidden {
			t.Error(request, resp.StatusCode)
		}
	}
	if resp := s.do(http.MethodGet, "/-/api/garbage?db=none"); resp.StatusCode != http.StatusNotFound {
		t.Error(resp.StatusCode)
	}
}

// Others do not.
func TestGarbageForbidden(t *testing.T) {
	for _, o := range []Options{{Anonymous: reader}, {Anonymous: serve.Owner("me"), ReadOnly: true}} {
		s := newSite(t, o)
		if resp := s.do(http.MethodGet, "/-/api/garbage?db=w"); resp.StatusCode != http.StatusForbidden {
			t.Error(resp.StatusCode)
		}
	}
}
