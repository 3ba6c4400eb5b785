package ome

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Every version says axes and transforms in another way, and one that is not known is named.
func TestParse(t *testing.T) {
	sets := `"datasets":[{"path":"./s0/image/","coordinateTransformations":[{"type":"scale","scale":[2,0.5]},{"type":"translation","translation":[-4,5]}]}]`
	axes := `"axes":[{"name":"y","type":"space","unit":"micrometer"},{"name":"x","type":"space"}]`
	for attrs, want := range map[string]string{
		`{"multiscales":[{"version":"0.1","datasets":[{"path":"0"}]}]}`:                            `0 [t c z y x] [] []`,
		`{"multiscales":[{"version":"0.3","axes":["y","x"],"datasets":[{"path":"0"}]}]}`:           `0 [y x] [] []`,
		`{"multiscales":[{"version":0.4,` + axes + `,` + sets + `}],"image-label":{}}`:             `s0/image [y x] [2 0.5] [-4 5] label`,
		`{"multiscales":[{` + axes + `,` + sets + `}],"ome":1}`:                                    `s0/image [y x] [2 0.5] [-4 5]`,
		`{"ome":{"version":"0.5.2","image-label":{},"multiscales":[{` + axes + `,` + sets + `}]}}`: `s0/image [y x] [2 0.5] [-4 5] label`,
		// Transforms of the image come after those of a dataset.
		`{"ome":{"multiscales":[{` + axes + `,` + sets + `,"coordinateTransformations":[{"type":"scale","scale":[10,1]},{"type":"translation","translation":[1,1]}]}]}}`:                 `s0/image [y x] [20 0.5] [-39 6]`,
		`{"ome":{"multiscales":[{` + axes + `,"datasets":[{"path":"0","coordinateTransformations":[{"type":"affine"},{"type":"scale","scale":[1]},{"type":"scale","scale":[0,1]}]}]}]}}`: `0 [y x] [] [] affine of 0 scale of 0 scale of 0`,
		`{"multiscales":{"layout":[]}}`:                                 "none",
		`{"multiscales":[{"datasets":[{"path":"0"}]}]}`:                 "none",
		`{"multiscales":[{"version":"0.6","datasets":[{"path":"0"}]}]}`: `version "0.6"`,
		`{"ome":{"version":"1.0","labels":["a"]}}`:                      `version "1.0"`,
	} {
		g, err := Parse(must.Get(meta.ParseAttributes([]byte(attrs)))(t))
		got := "none"
		if err != nil {
			got = err.Error()
			if errors.Is(err, ErrMetadata) && strings.Contains(got, want) {
				continue
			}
		}
		if g != nil && len(g.Images) == 1 {
			l := g.Images[0].Levels[0]
			if got = fmt.Sprint(l.Path, " ", l.Names(), " ", l.Scale, " ", l.Translation); l.Label {
				got += " label"
			}
			got = strings.TrimSpace(got + " " + strings.Join(l.Unread, " "))
			if g.Level(l.Path) == nil || g.Level("other") != nil {
				t.Errorf("%s: level by path", attrs)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", attrs, got, want)
		}
	}
}

// A pyramid has the levels of its first image, or those that another convention lists.
func TestPyramid(t *testing.T) {
	for attrs, want := range map[string]string{
		`{"ome":{"version":"0.5","multiscales":[{"axes":[{"name":"x"}],"datasets":[{"path":"0"},{"path":"/s1/image/"}]},{"axes":[{"name":"x"}],"datasets":[{"path":"b"}]}]}}`: "[0 s1/image]",
		`{"multiscales":[{"version":"0.1","datasets":[{"path":"0"},{"path":"1"}]}]}`:                                                                                          "[0 1]",
		`{"multiscales":[{"datasets":[{"path":"a"},{"path":1},{"path":"../b"},{}]}]}`:                                                                                         "[a]",
		`{"multiscales":{"layout":[{"asset":"r2"},{"asset":"../r1"},{"asset":7}]}}`:                                                                                           "[r2]",
		`{"multiscales":{"tile_matrix_set":{"tileMatrices":[{"id":"1"},{"id":"0"}]},"tile_matrix_limits":{"2":{}}}}`:                                                          "[1 0]",
		`{"multiscales":{"tile_matrix_set":"WebMercatorQuad","tile_matrix_limits":{"r1":{},"r0":{}}}}`:                                                                        "[r1 r0]",
		`{"multiscales":{"tile_matrix_set":"WebMercatorQuad"}}`:                                                                                                               "[]",
		`{"multiscales":[{"datasets":[` + strings.Repeat(`{"path":"a"},`, 40) + `{"path":"b"}]}]}`:                                                                            "[" + strings.Repeat("a ", 31) + "a]",
		`{"multiscales":[]}`: "[]", `{"multiscales":3}`: "[]", `{"ome":{"labels":[]}}`: "[]", `{"a":1}`: "[]",
		`{"multiscales":[{"version":"0.9","datasets":[{"path":"0"}]}]}`: `version "0.9" is not known`,
	} {
		paths, err := Pyramid(must.Get(meta.ParseAttributes([]byte(attrs)))(t))
		if got := fmt.Sprint(paths); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %s", attrs, got, err, want)
		}
	}
}

// Attributes of any form give levels, or an error.
func FuzzPyramid(f *testing.F) {
	f.Add([]byte(`{"multiscales":{"layout":[{"asset":"0"},{"asset":1}],"tile_matrix_set":{"tileMatrices":[{"id":"a"}]},"tile_matrix_limits":{"0":{}}}}`))
	f.Add([]byte(`{"multiscales":[{"datasets":[{"path":"0"},{"path":null}]}]}`))
	f.Add([]byte(`{"ome":{"version":"0.5","multiscales":[{"axes":[{"name":"y","type":"space"}],"datasets":[{"path":"0","coordinateTransformations":[{"type":"scale","scale":[2]}]}]}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		attrs, err := meta.ParseAttributes(b)
		if err != nil {
			return
		}
		if paths, err := Pyramid(attrs); err != nil && len(paths) > 0 {
			t.Errorf("%q beside %v", paths, err)
		}
	})
}
