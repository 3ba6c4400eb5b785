package web

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// window requests a window.
func (s *site) window(query string) (windowJSON, []float32) {
	s.t.Helper()
	resp := s.do(http.MethodGet, "/-/api/window?db=w&"+query)
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d %s %v", query, resp.StatusCode, b, err)
	}
	var about windowJSON
	if err := json.Unmarshal([]byte(resp.Header.Get("Zarrdb-Window")), &about); err != nil {
		s.t.Fatal(err)
	}
	values := make([]float32, len(b)/4)
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, values); err != nil {
		s.t.Fatal(err)
	}
	return about, values
}

func TestWindow(t *testing.T) {
	s := newSite(t, Options{})
	about, values := s.window("path=t&select=1:3,::2&up")
	if want := (lineJSON{Dim: 0, Start: 1, Step: 1, Len: 2, Skip: 1}); about.Y != want {
		t.Error(about.Y)
	}
	if want := (lineJSON{Dim: 1, Start: 0, Step: 2, Len: 3, Skip: 1}); about.X != want {
		t.Error(about.X)
	}
	if want := []float32{6, 8, 10, 12, 14, 16}; !reflect.DeepEqual(values, want) || about.Up == nil || *about.Up {
		t.Error(values, about)
	}
	about, values = s.window("path=t&width=2&height=2")
	if want := []float32{0, 3, 12, 15}; !reflect.DeepEqual(values, want) || about.X.Skip != 3 || about.Up != nil {
		t.Error(values, about)
	}
	about, values = s.window("path=t&select=0:2,0:2&transposed")
	if want := []float32{0, 6, 1, 7}; !reflect.DeepEqual(values, want) || about.Y.Dim != 1 {
		t.Error(values, about)
	}
	for query, status := range map[string]int{
		"path=t&width=0":            http.StatusBadRequest,
		"path=t&width=4096":         http.StatusBadRequest,
		"path=t&chunks=x":           http.StatusBadRequest,
		"path=t&select=9":           http.StatusBadRequest,
		"path=t&select=0:0":         http.StatusBadRequest,
		"path=t&decode=x":           http.StatusBadRequest,
		"path=none":                 http.StatusNotFound,
		"path=t&rev=none":           http.StatusNotFound,
		"path=":                     http.StatusBadRequest,
		"path=t&select=1:3,'a':'b'": http.StatusBadRequest,
	} {
		resp := s.do(http.MethodGet, "/-/api/window?db=w&"+query)
		var failed struct{ Error string }
		if err := json.NewDecoder(resp.Body).Decode(&failed); err != nil || resp.StatusCode != status || failed.Error == "" {
			t.Errorf("%s: %d %q %v", query, resp.StatusCode, failed.Error, err)
		}
	}
}

// Missing values are NaN; values that are large and differ little keep their digits; text
// has no picture.
func TestWindowDecoded(t *testing.T) {
	s := newSite(t, Options{})
	must.Get(s.db.Update(bg, "main", "arrays", func(e *engine.Session) error {
		attributes, err := zarr.ParseAttributes([]byte(`{"_FillValue": -1, "scale_factor": 0.5}`))
		if err != nil {
			return err
		}
		packed, err := e.CreateArray(bg, "packed", zarr.Spec{Shape: []int64{2, 2}, Chunks: []int64{2, 2}, Type: dtype.NewInt(16), Attributes: attributes})
		if err == nil {
			err = zarr.Write(bg, packed, zarr.Sel(), []int16{-1, 4, 5, 6})
		}
		if err != nil {
			return err
		}
		large, err := e.CreateArray(bg, "large", zarr.Spec{Shape: []int64{1, 3}, Chunks: []int64{1, 3}, Type: dtype.NewFloat(64)})
		if err == nil {
			err = zarr.Write(bg, large, zarr.Sel(), []float64{1e9, 1e9 + 0.25, 1e9 + 1})
		}
		if err != nil {
			return err
		}
		_, err = e.CreateArray(bg, "text", zarr.Spec{Shape: []int64{1, 3}, Chunks: []int64{1, 3}, Type: dtype.NewString()})
		return err
	}))(t)
	_, values := s.window("path=packed&decode=cf")
	if !math.IsNaN(float64(values[0])) || !reflect.DeepEqual(values[1:], []float32{2, 2.5, 3}) {
		t.Error(values)
	}
	if _, values := s.window("path=packed"); values[0] != -1 {
		t.Error(values)
	}
	about, values := s.window("path=large")
	if about.Offset != 1e9 || !reflect.DeepEqual(values, []float32{0, 0.25, 1}) {
		t.Error(about.Offset, values)
	}
	if resp := s.do(http.MethodGet, "/-/api/window?db=w&path=text"); resp.StatusCode != http.StatusNotAcceptable {
		t.Error(resp.StatusCode)
	}
}

// A difference shows each value that changed, through a rename too, however small the window.
func TestWindowDifference(t *testing.T) {
	s := newSite(t, Options{})
	update := func(fn func(e *engine.Session) error) string {
		t.Helper()
		c := must.Get(s.db.Update(bg, "main", "change", fn))(t)
		return c.ID.String()
	}
	spec := zarr.Spec{Shape: []int64{2, 900, 700}, Chunks: []int64{1, 100, 100}, Type: dtype.NewInt(16)}
	first := update(func(e *engine.Session) error {
		_, err := e.CreateArray(bg, "big", spec)
		return err
	})
	second := update(func(e *engine.Session) error {
		a, err := e.Array(bg, "big")
		if err == nil {
			err = zarr.Write(bg, a, zarr.Sel(zarr.At(1), zarr.At(451), zarr.At(333)), []int16{-5})
		}
		return err
	})
	third := update(func(e *engine.Session) error { return e.Move(bg, "big", "large") })
	for query, want := range map[string]map[[2]int]float32{
		"path=big&select=1,:,:&rev=" + second + "&from=" + first:                       {{50, 47}: -5},
		"path=big&select=1,:,:&transposed&rev=" + second + "&from=" + first:            {{47, 50}: -5},
		"path=big&select=1,400:500,300:400&decode=cf&rev=" + second + "&from=" + first: {{51, 33}: -5},
		"path=big&select=0,:,:&rev=" + second + "&from=" + first:                       {},
		"path=big&select=1,:,:&rev=" + first + "&from=" + second:                       {{50, 47}: 5},
		"path=large&select=1,:,:&rev=" + third + "&from=" + first:                      {{50, 47}: -5},
		"path=large&select=1,:,:&rev=" + third + "&from=main":                          {},
	} {
		about, values := s.window(query + "&width=100&height=100")
		got := map[[2]int]float32{}
		for i, v := range values {
			if v != 0 {
				got[[2]int{i / about.X.Len, i % about.X.Len}] = v
			}
		}
		if !reflect.DeepEqual(got, want) || about.More {
			t.Errorf("%s: %v, want %v; %+v", query, got, want, about)
		}
	}
	for query, status := range map[string]int{
		"path=big&select=1,::2,:&rev=" + second + "&from=" + first: http.StatusBadRequest,
		"path=big&select=1&rev=" + second + "&from=none":           http.StatusNotFound,
		"path=large&select=1&from=" + s.first.String():             http.StatusBadRequest,
	} {
		if resp := s.do(http.MethodGet, "/-/api/window?db=w&"+query); resp.StatusCode != status {
			t.Errorf("%s: %d", query, resp.StatusCode)
		}
	}
}

// A few windows are read at a time. A request that waits ends with its client.
func TestWindowWaits(t *testing.T) {
	s := newSite(t, Options{})
	h := s.h.(*handler)
	for range cap(h.windows) {
		h.windows <- struct{}{}
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/-/api/window?db=w&path=t", nil).WithContext(ctx))
	if w.Code != http.StatusServiceUnavailable {
		t.Error(w.Code, w.Body)
	}
	<-h.windows
	s.window("path=t")
}

func TestColours(t *testing.T) {
	s := newSite(t, Options{})
	var maps []struct{ Name, Colours string }
	if err := json.NewDecoder(s.do(http.MethodGet, "/-/api/colours").Body).Decode(&maps); err != nil || len(maps) < 2 {
		t.Fatal(maps, err)
	}
	for _, m := range maps {
		if len(m.Colours) != 256*6 {
			t.Errorf("%s: %d digits", m.Name, len(m.Colours))
		}
	}
}

// The root leads to the page, and the page is served.
func TestPage(t *testing.T) {
	s := newSite(t, Options{})
	b, _ := io.ReadAll(s.do(http.MethodGet, "/", "Accept: text/html").Body)
	if !strings.Contains(string(b), `<form action="-/ui/">`) {
		t.Errorf("%s", b)
	}
	if resp := s.do(http.MethodGet, "/-/ui"); resp.Header.Get("Location") != "ui/" {
		t.Error(resp.Header)
	}
	if resp := s.do(http.MethodGet, "/-/ui/main.js"); resp.StatusCode != http.StatusOK {
		t.Error(resp.StatusCode)
	}
	s = newSite(t, Options{Authenticate: named})
	if resp := s.do(http.MethodGet, "/-/ui/"); resp.StatusCode != http.StatusUnauthorized {
		t.Error(resp.StatusCode)
	}
}

// Times are texts for people where the request asks for them.
func TestReadTimesAsText(t *testing.T) {
	s := newSite(t, Options{})
	must.Get(s.db.Update(bg, "main", "times", func(e *engine.Session) error {
		attributes, err := zarr.ParseAttributes([]byte(`{"units": "days since 2024-02-27", "calendar": "360_day"}`))
		if err != nil {
			return err
		}
		a, err := e.CreateArray(bg, "time", zarr.Spec{Shape: []int64{3}, Chunks: []int64{3}, Type: dtype.NewInt(32), Attributes: attributes})
		if err != nil {
			return err
		}
		return zarr.Write(bg, a, zarr.Sel(), []int32{0, 3, 4})
	}))(t)
	for query, want := range map[string]string{
		"path=time&decode=cf&times=text": `["2024-02-27T00:00:00","2024-02-30T00:00:00","2024-03-01T00:00:00"]`,
		"path=time&times=text":           `[0,3,4]`,
		"path=t&times=text&select=0,:2":  `[0,1]`,
	} {
		b, _ := io.ReadAll(s.do(http.MethodGet, "/-/api/read?db=w&"+query).Body)
		if !strings.Contains(string(b), `"data":`+want) {
			t.Errorf("%s: %s", query, b)
		}
	}
}

// Integers with more digits than a float32 has are sent as float64.
func TestWindowOfIdentifiers(t *testing.T) {
	s := newSite(t, Options{})
	must.Get(s.db.Update(t.Context(), "", "ids", func(in *engine.Session) error {
		a, err := in.CreateArray(t.Context(), "ids", zarr.Spec{Shape: []int64{2}, Chunks: []int64{2}, DataType: "uint32"})
		if err != nil {
			return err
		}
		return zarr.Write(t.Context(), a, zarr.Sel(), []uint32{70001, 4000000001})
	}))(t)
	resp := s.do(http.MethodGet, "/-/api/window?db=w&path=ids")
	var about windowJSON
	must.Do(t, json.Unmarshal([]byte(resp.Header.Get("Zarrdb-Window")), &about))
	values := make([]float64, 2)
	if err := binary.Read(resp.Body, binary.LittleEndian, values); err != nil || !about.Wide || about.Times || values[0] != 70001 || values[1] != 4000000001 {
		t.Errorf("%+v %v %v", about, values, err)
	}
}

// flags are attributes of so many classes.
func flags(t *testing.T, n int) string {
	values, meanings := make([]int, n), make([]string, n)
	for i := range values {
		values[i], meanings[i] = i, fmt.Sprintf("kind_%d", i)
	}
	values[n-1] = n
	return fmt.Sprintf(`{"flag_values":%s,"flag_meanings":%q}`, must.Get(json.Marshal(values))(t), strings.Join(meanings, " "))
}

// The page gets colours, limits, labels and ticks, exact texts of points, lines with their least
// and greatest values, whole tables, and figures.
func TestPictures(t *testing.T) {
	s := newSite(t, Options{})
	must.Get(s.db.Update(bg, "main", "pictures", func(e *engine.Session) error {
		for _, a := range []struct {
			path, attrs string
			names       []string
			values      any
			spec        zarr.Spec
		}{
			{"depth", `{"positive":"down","units":"m"}`, []string{"depth"}, []float64{0, 10, 1000}, zarr.Spec{Shape: []int64{3}, Type: dtype.NewFloat(64)}},
			{"in/sea", `{"units":"K","long_name":"\u6d77"}`, []string{"depth", "x"}, []float64{1e-50, 2e-50, math.NaN(), 4e-50, 5e-50, 6e-50}, zarr.Spec{Shape: []int64{3, 2}, Type: dtype.NewFloat(64)}},
			{"in/salt", `{"units":"g/kg"}`, []string{"depth", "x"}, []float64{35, 35, 36, 36, 37, 37}, zarr.Spec{Shape: []int64{3, 2}, Type: dtype.NewFloat(64)}},
			{"in/warm", `{"units":"K"}`, []string{"depth", "x"}, []float64{1, 2, 3, 4, 5, 6}, zarr.Spec{Shape: []int64{3, 2}, Type: dtype.NewFloat(64)}},
			{"in/third", `{"units":"Pa"}`, []string{"depth", "x"}, []float64{1, 2, 3, 4, 5, 6}, zarr.Spec{Shape: []int64{3, 2}, Type: dtype.NewFloat(64)}},
			{"in/lon", `{"units":"degrees_east"}`, []string{"lon"}, []float64{0, 90, 180, 270}, zarr.Spec{Shape: []int64{4}, Type: dtype.NewFloat(64)}},
			{"in/map", `{}`, []string{"y", "lon"}, []uint8{0, 85, 170, 255}, zarr.Spec{Shape: []int64{1, 4}, Type: dtype.NewUint(8)}},
			{"rgb", `{}`, []string{"y", "x", "c"}, []uint8{1, 2, 3, 4, 5, 6}, zarr.Spec{Shape: []int64{1, 2, 3}, Type: dtype.NewUint(8)}},
			{"not", `{}`, []string{"a", "b", "d"}, []uint8{1, 2, 3, 4, 5, 6}, zarr.Spec{Shape: []int64{1, 2, 3}, Type: dtype.NewUint(8)}},
			{"kinds", flags(t, 250), []string{"a", "b"}, []uint8{0, 1, 249, 250, 255, 1}, zarr.Spec{Shape: []int64{2, 3}, Type: dtype.NewUint(8)}},
			{"channels", `{}`, []string{"c", "y", "x"}, []uint8{0, 0, 9, 9, 0, 100, 0, 100}, zarr.Spec{Shape: []int64{2, 2, 2}, Type: dtype.NewUint(8)}},
			{"coarse", `{}`, []string{"c", "y", "x"}, []uint8{0, 50}, zarr.Spec{Shape: []int64{2, 1, 1}, Type: dtype.NewUint(8)}},
			{"huge", `{"ome":{"version":"0.5","multiscales":[{"axes":[{"name":"y","type":"space"},{"name":"x","type":"space"}],"datasets":[{"path":"0","coordinateTransformations":[{"type":"scale","scale":[1e300,1]}]}],"coordinateTransformations":[{"type":"scale","scale":[1e300,1]}]}]}}`, nil, nil, zarr.Spec{}},
			{"huge/0", `{}`, []string{"y", "x"}, []uint8{1}, zarr.Spec{Shape: []int64{1, 1}, Type: dtype.NewUint(8)}},
		} {
			at, err := zarr.ParseAttributes([]byte(a.attrs))
			if err != nil {
				return err
			}
			if a.values == nil {
				if _, err := e.CreateGroup(bg, a.path, zarr.V3, at); err != nil {
					return err
				}
				continue
			}
			a.spec.Chunks, a.spec.DimensionNames, a.spec.Attributes = a.spec.Shape, a.names, at
			array, err := e.CreateArray(bg, a.path, a.spec)
			if err == nil {
				switch v := a.values.(type) {
				case []float64:
					err = zarr.Write(bg, array, zarr.Sel(), v)
				case []uint8:
					err = zarr.Write(bg, array, zarr.Sel(), v)
				}
			}
			if err != nil {
				return err
			}
		}
		long, err := e.CreateArray(bg, "long", zarr.Spec{Shape: []int64{50_000}, Chunks: []int64{10_000}, Type: dtype.NewInt(16)})
		if err != nil {
			return err
		}
		return zarr.Write(bg, long, zarr.Sel(zarr.At(31_234)), []int16{-9})
	}))(t)
	for query, wants := range map[string][]string{
		"axes?path=in/sea":                          {`"title":"depth (m)","length":3,"up":false,"labels":["0 m","10 m","1000 m"],"edges":[0,`, `"parts":null`},
		"axes?path=rgb":                             {`"colours":true`},
		"axes?path=not":                             {`"colours":false`},
		"axes?path=huge/0":                          {`"name":"x","title":"x","length":1,"up":false,"size":1`},
		"axes?path=kinds":                           {`"classes":[{"value":"0","text":"kind 0","colour":"e69f00"},`, `"value":"250"`},
		"window?path=kinds&as=colours&numbers":      {"\x01\x02\xff\xfa\xff\x02"},
		"start?path=huge":                           {`"huge/0"`, `"axes":{"huge/0":`},
		"coast?path=long":                           {`[]`},
		"labels?path=in/sea&axis=0&first=1&count=2": {`["10 m","1000 m"]`},
		// A background of one value is black, and limits are those of the finest level.
		"window?path=channels&as=colours&caxis=0&select=:,:,:&channels=1:ff0000::,1:00ff00:0:200": {"\x00\x00\x00\xff\xff\x80\x00\xff"},
		"window?path=coarse&as=colours&caxis=0&select=:,:,:&channels=1:ff0000::&of=channels":      {"\x80\x00\x00\xff"},
		"window?path=coarse&as=colours&caxis=0&select=:,:,:&channels=0:ff0000::":                  {"\x00\x00\x00\xff"},
		"point?path=in/sea&select=1,1&decode=cf":                                                  {`"value":"4e-50","units":"K","at":["depth 10 m","x 1"]`},
		"point?path=in/sea&select=1,0&decode=cf":                                                  {`"value":"missing","units":""`},
		"point?path=rgb&select=0,1,:":                                                             {`"value":"4, 5, 6"`},
		"series?path=long&width=100":                                                              {`"run":500,"every":1`, `-9`, `"limits":{"lo":-9,"hi":0}`},
		"series?path=long&select=31000:31100":                                                     {`"run":1,`, `"labels":["31000",`},
		"series?path=in/sea&select=:,0&select=:,1":                                                {`"x":[0,10,1000]`, `[1e-50,null,5e-50]`, `[2e-50,4e-50,6e-50]`},
		"series?path=in/sea&select=:,0&format=csv":                                                {"depth,value\n0,1e-50\n10,\n1000,5e-50\n"},
		"series?path=in/sea&select=:,0&with=in/salt&with=in/warm":                                 {`"units":"K","right":{"units":"g/kg",`, `"onright":[false,true,false]`, `[[1e-50,null,5e-50],[35,36,37],[1,3,5]]`, `"limits":{"lo":1e-50,"hi":5}`},
		"series?path=in/sea&select=:,0&with=in/warm":                                              {`"units":"K"}`},
		"series?path=in/sea&select=:,0&with=in/salt&format=csv&name=a&name=b":                     {"depth,a,b\n0,1e-50,35\n"},
		"axes?path=in/map&centre=0":                                                               {`"round":true,"roll":2`},
		"window?path=in/map&as=colours&lo=0&hi=255&centre=0&select=:,1:&numbers":                  {"\xff\x01\x56"},
		"figure?path=channels&animate=0&width=60":                                                 {"GIF89a"},
		"find?word=SEA":                               {`"count": 1`, `"path": "in/sea"`},
		"figure?path=in/sea&width=100&decode=cf":      {"PNG"},
		"target?":                                     {`""`},
		"window?path=not&as=colours&numbers":          {"\x01"},
		"window?path=rgb&as=colours":                  {"\x01\x02\x03\xff\x04\x05\x06\xff"},
		"window?path=in/sea&as=colours&lo=0&hi=4e-50": {"\x41\x80\x00\xff\xff\xff"},
	} {
		name, q, _ := strings.Cut(query, "?")
		resp := s.do(http.MethodGet, "/-/api/"+name+"?db=w&"+q)
		b, err := io.ReadAll(resp.Body)
		for _, want := range wants {
			if text := strings.ReplaceAll(string(b), ": ", ": "); err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("%s: %d %.300s, want %s", query, resp.StatusCode, b, want)
			}
		}
		if head := resp.Header.Get("Zarrdb-Window"); len(head) > 2048 {
			t.Errorf("%s: a header of %d bytes, which proxies refuse", query, len(head))
		} else if name == "window" && strings.Contains(q, "sea") && (!strings.Contains(head, `"ends":["0","4e-50"]`) || !strings.Contains(head, `"at":["0","0"]`)) {
			t.Error(head)
		}
	}
	for query, status := range map[string]int{
		"series?path=nowhere": http.StatusNotFound, "series?path=long&width=x": http.StatusBadRequest, "point?path=long": http.StatusBadRequest, "figure?path=t&map=x": http.StatusBadRequest,
		"window?path=channels&caxis=0&select=:,:,:&channels=0:ff0000::,0 1:00ff00::": http.StatusBadRequest, "window?path=channels&caxis=0&select=:,:,:&channels=2:ff0000::": http.StatusBadRequest,
		"thumb?path=huge": http.StatusOK, "thumb?path=in": http.StatusNotFound, "thumb?path=none": http.StatusNotFound, "thumb?path=huge&width=999": http.StatusBadRequest,
		"window?path=huge/0&as=labels":                  http.StatusOK,
		"series?path=in/sea&with=in/salt&with=in/third": http.StatusBadRequest, "series?path=in/sea&with=long": http.StatusBadRequest, "window?path=in/map&centre=x": http.StatusBadRequest,
		"figure?path=t&animate=0&select=1": http.StatusBadRequest, "figure?path=t&animate=9": http.StatusBadRequest,
		"labels?path=in/sea&axis=0&first=2&count=2": http.StatusBadRequest, "figure?path=t&select=0,0": http.StatusNotAcceptable, "axes?path=": http.StatusBadRequest,
	} {
		name, q, _ := strings.Cut(query, "?")
		if resp := s.do(http.MethodGet, "/-/api/"+name+"?db=w&"+q); resp.StatusCode != status {
			t.Errorf("%s: %d", query, resp.StatusCode)
		}
	}
}

// Pictures of odd arrays: infinite coordinates, arrays that shrank, names that are also parts, and
// values with more digits than a float has.
func TestPicturesOfOddArrays(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	s := newSite(t, Options{})
	create := func(e *engine.Session, path, attrs string, typ dtype.Type, shape ...int64) (*zarr.Array, error) {
		spec := zarr.Spec{Shape: shape, Chunks: shape, Type: typ, DimensionNames: []string{"x", "y"}[:len(shape)], Attributes: must.Get(zarr.ParseAttributes([]byte(attrs)))(t)}
		return e.CreateArray(bg, path, spec)
	}
	numbers := func(e *engine.Session, path, attrs string, values ...float64) error {
		a, err := create(e, path, attrs, dtype.NewFloat(64), int64(len(values)))
		if err == nil {
			err = zarr.Write(bg, a, zarr.Sel(), values)
		}
		return err
	}
	must.Get(s.db.Update(bg, "main", "odd", func(e *engine.Session) error {
		wide := must.Get(dtype.NewStruct([]dtype.Field{{Name: "other", Type: dtype.NewInt(8)}, {Name: "magnitude", Type: dtype.NewInt(8)}}))(t)
		small, err := create(e, "small", `{}`, dtype.NewFloat(32), 2)
		if err == nil {
			err = zarr.Write(bg, small, zarr.Sel(), []float32{271.35, 271.4})
		}
		large, err2 := create(e, "large", `{}`, dtype.NewInt(64), 3)
		if err2 == nil {
			err2 = zarr.Write(bg, large, zarr.Sel(), []int64{1<<53 + 1, 1<<53 + 3, 7})
		}
		pair, err3 := create(e, "complex", `{}`, dtype.NewComplex(64), 1)
		if err3 == nil {
			err3 = zarr.Write(bg, pair, zarr.Sel(), []complex64{3 - 4i})
		}
		_, err4 := e.CreateArray(bg, "struct", zarr.Spec{Shape: []int64{1}, Chunks: []int64{1}, Type: wide, FillValue: json.RawMessage(`"AQI="`)})
		_, err5 := create(e, "one", `{}`, dtype.NewInt(8))
		return errors.Join(err, err2, err3, err4, err5, numbers(e, "inf/x", `{"units":"`+strings.Repeat("m", 1<<16)+`"}`, 1, math.Inf(1)), numbers(e, "inf/v", `{}`, 1, 2),
			numbers(e, "short/x", `{}`, 10, 20, 30, 40), numbers(e, "short/v", `{}`, 1, 2, 3, 4))
	}))(t)
	must.Do(t, s.db.CreateTag(bg, "long", "main"))
	must.Get(s.db.Update(bg, "main", "shrink", func(e *engine.Session) error {
		return errors.Join(e.Remove(bg, "short"), numbers(e, "short/x", `{}`, 10, 20), numbers(e, "short/v", `{}`, 1, 2))
	}))(t)
	for query, want := range map[string]string{
		"series?path=small":                                                 `[271.35,271.4]`,
		"series?path=large":                                                 `"texts":[["9007199254740993","9007199254740995","7"]]`,
		"series?path=inf/v":                                                 `"x":[0,1],"labels":["1","+Inf"]`,
		"series?path=short/v&from=long":                                     `"x":[0,1,2,3],"labels":["10","20","2","3"]`,
		"series?path=complex&part=magnitude&format=csv":                     "x,value\n0,5\n",
		"series?path=complex&part=imag&format=csv":                          "x,value\n0,-4\n",
		"series?path=struct&part=magnitude":                                 `"lines":[[2]]`,
		"axes?path=inf/v":                                                   `"axes":[{"name":"x"`,
		"window?path=inf/v&as=colours&xticks=9":                             "\x01\xff",
		"window?path=inf/v&as=colours&of=one":                               "400",
		"window?path=inf/v&as=colours&lo=NaN":                               "400",
		"window?path=inf/v&as=colours&hi=Inf":                               "400",
		"window?path=inf/v&as=colours&xticks=9&xsee=0,-9223372036854775808": "\x01\xff",
		"figure?path=inf/v&lo=0&hi=Inf":                                     "400",
	} {
		name, q, _ := strings.Cut(query, "?")
		resp := s.do(http.MethodGet, "/-/api/"+name+"?db=w&"+q)
		b, err := io.ReadAll(resp.Body)
		if got := fmt.Sprint(resp.StatusCode, " ", string(b)); err != nil || !strings.Contains(got, want) || want != "400" && resp.StatusCode != http.StatusOK || len(b)+len(resp.Header.Get("Zarrdb-Window")) > 4000 {
			t.Errorf("%s: %.400s, want %s", query, got, want)
		}
	}
}

// slots counts the slots that are taken while a client receives.
type slots struct {
	*httptest.ResponseRecorder
	h     *handler
	taken int
}

func (s *slots) Write(b []byte) (int, error) {
	s.taken = max(s.taken, len(s.h.windows))
	return s.ResponseRecorder.Write(b)
}

// A client that takes long to receive a table keeps no slot.
func TestTablesKeepNoPictureWaiting(t *testing.T) {
	s := newSite(t, Options{})
	w := &slots{httptest.NewRecorder(), s.h.(*handler), 0}
	w.h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/-/api/series?db=w&path=t&select=0&format=csv", nil))
	if w.Code != http.StatusOK || w.taken > 0 || len(w.h.windows) > 0 {
		t.Error(w.Code, w.taken, w.Body)
	}
}
