package meta_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

func TestConsolidatedV3(t *testing.T) {
	reg := builtin.Registry()
	bad := metatest.Edit(t, metatest.ArrayDoc, "data_type", `"int128"`)
	doc := metatest.Edit(t, metatest.GroupDoc, "attributes", `{"root":1}`, "consolidated_metadata", `{"kind":"inline","must_understand":false,"metadata":{
		"g": {"zarr_format": 3, "node_type": "group", "consolidated_metadata": {"kind":"inline","must_understand":false,"metadata":{"wrong":{}}}},
		"g/a": `+metatest.ArrayDoc+`, "g/bad": `+bad+`, "/b": `+metatest.GroupDoc+`, "g/../x": `+metatest.GroupDoc+`, "n": 1, "": `+metatest.GroupDoc+`}}`)
	m := must.Get(meta.ParseV3([]byte(doc), reg))(t)
	if got := slices.Sorted(maps.Keys(m.Consolidated)); !slices.Equal(got, []string{"b", "g", "g/a"}) {
		t.Errorf("nodes %q", got)
	}
	if got := slices.Sorted(maps.Keys(m.ConsolidatedErrors)); !slices.Equal(got, []string{"", "g/../x", "g/bad", "n"}) {
		t.Errorf("errors %q", got)
	}
	if err := m.ConsolidatedErrors["g/bad"]; !errors.Is(err, meta.ErrMetadata) || err.Error() != `g/bad/zarr.json: data_type: unknown data type "int128"` {
		t.Error(err)
	}
	if m.Consolidated["g"].Consolidated != nil {
		t.Error("what a nested group carries counts")
	}
	if got := printed(t, m)[meta.DocV3]; got != doc {
		t.Errorf("%s", got)
	}
	// A changed node is printed anew, the others keep their text, broken ones too.
	c := m.Clone()
	a := c.Consolidated["g/a"].Clone()
	a.Shape[0] = 100
	c.Consolidated["g/a"] = a
	delete(c.Consolidated, "b")
	if m.Equal(c) || m.Consolidated["b"] == nil {
		t.Error("a clone is not independent")
	}
	got := printed(t, c)[meta.DocV3]
	again, err := meta.ParseV3([]byte(got), reg)
	if err != nil || !again.Equal(c) || len(again.ConsolidatedErrors) != 4 {
		t.Errorf("%v: %s", err, got)
	}
	if !strings.Contains(got, `"wrong": {}`) || !strings.Contains(got, `"int128"`) {
		t.Errorf("text was lost: %s", got)
	}
	if d := m.Diff(c); !slices.Equal(d, []string{"consolidated_metadata"}) {
		t.Error(d)
	}
	c.Consolidated, c.ConsolidatedErrors = map[string]*meta.Meta{}, nil
	if got := printed(t, c)[meta.DocV3]; !strings.Contains(got, `"metadata": {}`) {
		t.Errorf("%s", got)
	}
	c.Consolidated = nil
	if got := printed(t, c)[meta.DocV3]; strings.Contains(got, "consolidated") {
		t.Errorf("%s", got)
	}
}

func TestConsolidatedFixtures(t *testing.T) {
	reg := testRegistry()
	found := 0
	for _, c := range readCases(t) {
		if c.Error != "" {
			continue
		}
		var nodes map[string]*meta.Meta
		var broken map[string]error
		if text, ok := c.Docs[meta.DocConsolidatedV2]; ok {
			var err error
			if nodes, broken, err = meta.ParseConsolidatedV2([]byte(text), reg); err != nil {
				t.Fatal(c.Name, err)
			}
		} else if m, _, err := c.open("", reg); err == nil && m.Consolidated != nil {
			nodes, broken = m.Consolidated, m.ConsolidatedErrors
		} else {
			continue
		}
		found++
		for path, m := range nodes {
			want, _, err := c.open(path, reg)
			if err != nil || !m.Equal(want) {
				t.Errorf("%s: %s differs from its own document: %v, %v", c.Name, path, m.Diff(want), err)
			}
		}
		for _, n := range c.Nodes {
			p := strings.Trim(n.Path, "/")
			if nodes[p] == nil && broken[p] == nil && (p != "" || c.Docs[meta.DocConsolidatedV2] != "") {
				t.Errorf("%s: %q is not in the consolidated metadata", c.Name, p)
			}
		}
		if text, ok := c.Docs[meta.DocConsolidatedV2]; ok && len(broken) == 0 {
			doc, err := meta.UpdateConsolidatedV2(nil, nil, nodes)
			if err != nil || strings.TrimSpace(string(jsontext.Canonical(doc))) != string(jsontext.Canonical([]byte(text))) {
				t.Errorf("%s: printed as %s, %v", c.Name, doc, err)
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d stores with consolidated metadata", found)
	}
}

func TestConsolidatedV2(t *testing.T) {
	reg := builtin.Registry()
	group := `{"zarr_format":2}`
	doc := `{"zarr_consolidated_format":1,"metadata":{".zgroup":` + group + `,".zattrs":{"t":NaN},"a/.zgroup":` + group + `,"a/.zarray":` + metatest.ArrayDocV2 +
		`,"b/.zarray":{},"c/.zattrs":{},"../d/.zgroup":` + group + `,"e/.zgroup":` + group + `,"e/.zattrs":[]}}`
	nodes, broken, err := meta.ParseConsolidatedV2([]byte(doc), reg)
	must.Do(t, err)
	if got := slices.Sorted(maps.Keys(nodes)); !slices.Equal(got, []string{"", "a"}) || !nodes["a"].Array {
		t.Errorf("nodes %q", got)
	}
	if got := slices.Sorted(maps.Keys(broken)); !slices.Equal(got, []string{"../d", "b", "e"}) {
		t.Errorf("broken %q", got)
	}
	out, err := meta.UpdateConsolidatedV2(nil, nil, nodes)
	if err != nil || !strings.Contains(string(out), `"t": NaN`) {
		t.Errorf("%s, %v", out, err)
	}
	again, broken, err := meta.ParseConsolidatedV2(out, reg)
	if err != nil || len(broken) > 0 || !maps.EqualFunc(again, nodes, (*meta.Meta).Equal) {
		t.Errorf("%v %v %v", again, broken, err)
	}
	for _, bad := range []string{``, `[]`, `{}`, `{"metadata":{}}`, `{"zarr_consolidated_format":2,"metadata":{}}`, `{"zarr_consolidated_format":1}`, `{"zarr_consolidated_format":1,"metadata":[]}`} {
		if nodes, _, err := meta.ParseConsolidatedV2([]byte(bad), reg); !errors.Is(err, meta.ErrMetadata) {
			t.Errorf("%s: %v, %v", bad, nodes, err)
		}
	}
	if _, err := meta.UpdateConsolidatedV2(nil, nil, map[string]*meta.Meta{"a": parseV3(t, metatest.GroupDoc)}); !errors.Is(err, meta.ErrNoForm) {
		t.Error(err)
	}
}
