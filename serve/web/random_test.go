package web

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
)

// randomArray is what a test knows of an array: nothing of it is read from the database.
type randomArray struct {
	path, typ, cf string
	shape         []int64
	values        []float64              // decoded; NaN is missing
	texts         func(text string) bool // nil accepts all
	exact         []string               // texts of values; nil: the text is parsed
	loose         float64                // relative error of values that are computed
	coords        [][]float64            // nil without a coordinate
	up            []bool
}

func (a *randomArray) offset(at []int64) (n int64) {
	for d, i := range at {
		n = n*a.shape[d] + i
	}
	return n
}

// half are the bits of a float16 that a float32 has exactly.
func half(v float64) uint16 {
	b := math.Float32bits(float32(v))
	if v == 0 {
		return 0
	}
	return uint16(b>>16&0x8000) | uint16(int(b>>23&0xff)-112)<<10 | uint16(b>>13&0x3ff)
}

// fill makes elements of one of the types, in memory layout.
func (a *randomArray) fill(r *rand.Rand, kind int) (b []byte, attrs map[string]any) {
	n := int64(1)
	for _, m := range a.shape {
		n *= m
	}
	centre, spread := r.NormFloat64()*math.Pow(10, float64(r.IntN(12)-4)), math.Pow(10, float64(r.IntN(10)-5))
	le := binary.LittleEndian
	scale, offset := math.Pow(10, float64(r.IntN(6)-4)), float64(r.IntN(600)-300)
	for range n {
		v := centre + spread*r.NormFloat64()
		missing := r.IntN(9) == 0
		word := r.Uint64() >> r.IntN(40)
		add := func(v float64, text string) { a.values, a.exact = append(a.values, v), append(a.exact, text) }
		switch kind {
		case 0:
			a.typ = "bool"
			b = append(b, byte(word&1))
			add(float64(word&1), strconv.FormatBool(word&1 == 1))
		case 1, 2, 3, 4:
			bits := 4 << kind
			a.typ = fmt.Sprint("int", bits)
			i := int64(word<<(64-bits)) >> (64 - bits)
			b = append(b, le.AppendUint64(nil, uint64(i))[:bits/8]...)
			add(float64(i), strconv.FormatInt(i, 10))
		case 5, 6, 7, 8:
			bits := 1 << (kind - 2)
			a.typ = fmt.Sprint("uint", bits)
			u := word << (64 - bits) >> (64 - bits)
			b = append(b, le.AppendUint64(nil, u)[:bits/8]...)
			add(float64(u), strconv.FormatUint(u, 10))
		case 9:
			a.typ = "float16"
			v = float64(r.IntN(801)-400) / 4
			b = le.AppendUint16(b, half(v))
			a.values = append(a.values, v)
		case 10, 11:
			if missing {
				v = math.NaN()
			}
			if a.typ = "float32"; kind == 10 {
				b, v = le.AppendUint32(b, math.Float32bits(float32(v))), float64(float32(v))
			} else {
				a.typ = "float64"
				v *= math.Pow(10, 3*float64(r.IntN(2)))
				b = le.AppendUint64(b, math.Float64bits(v))
			}
			a.values = append(a.values, v)
		case 12:
			a.typ, a.loose = "complex64", 1e-6
			re, im := float32(v), float32(spread*r.NormFloat64())
			b = le.AppendUint32(le.AppendUint32(b, math.Float32bits(re)), math.Float32bits(im))
			a.values = append(a.values, math.Sqrt(float64(re)*float64(re)+float64(im)*float64(im)))
			a.texts = func(string) bool { return true }
		case 13:
			a.typ = `{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}`
			s := int64(word % 4e9)
			b = le.AppendUint64(b, uint64(s))
			add(float64(s), strings.TrimSuffix(time.Unix(s, 0).UTC().Format("2006-01-02 15:04:05"), " 00:00:00"))
		case 14:
			a.typ, a.cf, a.loose = "int16", "cf", 1e-6
			i := int16(word)
			if missing {
				i = -999
			}
			b = le.AppendUint16(b, uint16(i))
			if v = float64(i)*scale + offset; i == -999 {
				v = math.NaN()
			}
			a.values = append(a.values, v)
			attrs = map[string]any{"scale_factor": scale, "add_offset": offset, "_FillValue": -999, "units": "K"}
		}
	}
	return b, attrs
}

// randomArrays makes n arrays with coordinates in one commit.
func randomArrays(t *testing.T, s *site, r *rand.Rand, n int) (all []*randomArray) {
	t.Helper()
	create := func(e *engine.Session, path, typ string, shape, chunks []int64, dims []string, b []byte, attrs map[string]any) {
		t.Helper()
		var list zarr.Attributes
		for name, v := range attrs {
			must.Do(t, list.Set(name, v))
		}
		a, err := e.CreateArray(bg, path, zarr.Spec{Shape: shape, Chunks: chunks, DataType: typ, DimensionNames: dims, Attributes: list})
		must.Do(t, err)
		must.Do(t, a.WriteBytes(bg, zarr.Sel(), b))
	}
	must.Get(s.db.Update(bg, "main", "arrays", func(e *engine.Session) error {
		for k := range n {
			a := &randomArray{path: fmt.Sprintf("g%03d/v", k)}
			var chunks []int64
			var dims []string
			for d := range 2 + r.IntN(3) {
				m := 1 + int64(r.IntN(60))
				if d == 0 && r.IntN(6) == 0 {
					m += 300
				}
				if d > 1 {
					m = 1 + m%6
				}
				a.shape, chunks, dims = append(a.shape, m), append(chunks, 1+m/int64(1+r.IntN(2))), append(dims, fmt.Sprint("d", d))
			}
			r.Shuffle(len(a.shape), func(i, j int) {
				a.shape[i], a.shape[j], chunks[i], chunks[j] = a.shape[j], a.shape[i], chunks[j], chunks[i]
			})
			b, attrs := a.fill(r, k%15)
			create(e, a.path, a.typ, a.shape, chunks, dims, b, attrs)
			for d, m := range a.shape {
				var c []float64
				ascends, down := r.IntN(2) == 0, r.IntN(4) == 0
				if r.IntN(4) > 0 {
					at, step, uneven := r.NormFloat64()*100, math.Pow(2, float64(r.IntN(9)-4)), r.IntN(3) == 0
					var b []byte
					for range m {
						c = append(c, at)
						b = binary.LittleEndian.AppendUint64(b, math.Float64bits(at))
						by := step
						if uneven {
							by *= 1 + 5*r.Float64()
						}
						if !ascends {
							by = -by
						}
						at += by
					}
					attrs := map[string]any{"units": "m"}
					if down {
						attrs["positive"] = "down"
					}
					create(e, fmt.Sprintf("g%03d/%s", k, dims[d]), "float64", []int64{m}, []int64{m}, []string{dims[d]}, b, attrs)
				}
				a.coords, a.up = append(a.coords, c), append(a.up, c != nil && m > 1 && ascends != down)
			}
			all = append(all, a)
		}
		return nil
	}))(t)
	return all
}

// percentiles are the limits of colours that nothing else names.
func percentiles(values []float64) (lo, hi float64) {
	v := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	slices.Sort(v)
	if len(v) == 0 {
		return 0, 1
	}
	rank := func(p float64) float64 { return v[int(math.Round(p*float64(len(v)-1)))] }
	if lo, hi = rank(0.02), rank(0.98); lo == hi {
		return v[0], v[len(v)-1]
	}
	return lo, hi
}

// Shades, labels, orientation, values under the pointer and lines of 200 random arrays are those
// that the test computes from what it has written.
func TestRandomArrays(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	s := newSite(t, Options{})
	r := rand.New(rand.NewPCG(4, 5))
	ask := func(kind, query string, out any) (head http.Header, body []byte) {
		t.Helper()
		resp := s.do(http.MethodGet, "/-/api/"+kind+"?db=w&"+query)
		body = must.Get(io.ReadAll(resp.Body))(t)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s", kind, query, resp.StatusCode, body)
		}
		if out != nil {
			must.Do(t, json.Unmarshal(body, out))
		}
		return resp.Header, body
	}
	near := func(a, b, loose float64) bool { return a == b || math.Abs(a-b) <= loose*max(math.Abs(a), math.Abs(b)) }
	for _, a := range randomArrays(t, s, r, 200) {
		base := "path=" + url.QueryEscape(a.path)
		if a.cf != "" {
			base += "&decode=cf"
		}
		bad := func(format string, args ...any) {
			t.Helper()
			t.Errorf("%s %s %v: "+format, append([]any{a.path, a.typ, a.shape}, args...)...)
		}
		var axes axesJSON
		ask("axes", base, &axes)
		for d, x := range axes.Axes {
			if x.Up != a.up[d] || x.Length != a.shape[d] {
				bad("axis %d: %+v", d, x)
			}
		}

		// A window of two axes.
		n := len(a.shape)
		y, x := r.IntN(n), r.IntN(n-1)
		if x >= y {
			x++
		}
		at, lo, hi := make([]int64, n), make([]int64, n), make([]int64, n)
		sel := make([]string, n)
		for d, m := range a.shape {
			at[d] = int64(r.IntN(int(m)))
			lo[d] = int64(r.IntN(int(m)))
			hi[d] = lo[d] + 1 + int64(r.IntN(int(m-lo[d])))
			if sel[d] = strconv.FormatInt(at[d], 10); d == y || d == x {
				sel[d] = fmt.Sprintf("%d:%d", lo[d], hi[d])
			}
		}
		query := fmt.Sprintf("%s&as=colours&numbers&select=%s&width=%d&height=%d&yticks=7&xticks=7", base, strings.Join(sel, ","), 8+r.IntN(60), 8+r.IntN(60))
		if y > x {
			query += "&transposed"
		}
		low, high := percentiles(a.values)
		typed := r.IntN(2) == 0
		if typed {
			if high++; a.values[0] < low {
				low = a.values[0]
			}
			query += fmt.Sprintf("&lo=%v&hi=%v", low, high)
			query = strings.ReplaceAll(query, "e+", "e%2B")
		}
		head, shades := ask("window", query, nil)
		about := windowJSON{coloursJSON: &coloursJSON{}}
		must.Do(t, json.Unmarshal([]byte(head.Get("Zarrdb-Window")), &about))
		if !near(about.Limits.Lo, low, a.loose) || !near(about.Limits.Hi, high, a.loose) {
			bad("%s: limits %v, want %v to %v", query, about.Limits, low, high)
		}
		if about.Y.Dim != y || about.X.Dim != x || about.Y.Start != lo[y] || about.X.Start != lo[x] || len(shades) != about.Y.Len*about.X.Len ||
			about.Y.Start+int64(about.Y.Len-1)*about.Y.Step >= hi[y] || int64(about.Y.Len) != (hi[y]-lo[y]-1)/about.Y.Step+1 || int64(about.X.Len) != (hi[x]-lo[x]-1)/about.X.Step+1 {
			bad("%s: y %+v x %+v, %d shades", query, about.Y, about.X, len(shades))
			continue
		}
		missing := 0
		for k, shade := range shades {
			at[y], at[x] = about.Y.Start+int64(k/about.X.Len)*about.Y.Step, about.X.Start+int64(k%about.X.Len)*about.X.Step
			v, l := a.values[a.offset(at)], about.Limits
			want := 1 + 254*min(max((v-l.Lo)/(l.Hi-l.Lo), 0), 1)
			switch {
			case v != v:
				want = 0
				missing++
			case l.Lo == l.Hi && v == l.Lo:
				want = 128
			case l.Lo == l.Hi:
				continue
			}
			if math.Abs(float64(shade)-want) > 0.5+1e-3 {
				bad("%s: shade %d of %v at %v, want %v of %v", query, shade, v, at, want, l)
				break
			}
		}
		if missing != about.Missing {
			bad("%d missing, want %d", about.Missing, missing)
		}
		for d, label := range about.At {
			i := map[int]int64{y: lo[y], x: lo[x]}
			first, ok := i[d]
			if !ok {
				first = at[d]
			}
			want := float64(first)
			if a.coords[d] != nil {
				want = a.coords[d][first]
			}
			if got, err := strconv.ParseFloat(label, 64); err != nil || got != want {
				bad("label of axis %d is %q, want %v", d, label, want)
			}
		}
		checkTicks(bad, a, y, about, true)
		checkTicks(bad, a, x, about, false)

		// The pointer.
		for range 3 {
			for d, m := range a.shape {
				at[d] = int64(r.IntN(int(m)))
				sel[d] = strconv.FormatInt(at[d], 10)
			}
			var p struct {
				Value string
				At    []string
			}
			ask("point", base+"&select="+strings.Join(sel, ","), &p)
			k := a.offset(at)
			v := a.values[k]
			got, err := strconv.ParseFloat(p.Value, 64)
			switch {
			case v != v:
				if p.Value != "missing" {
					bad("%q is missing", p.Value)
				}
			case a.exact != nil:
				if p.Value != a.exact[k] {
					bad("the text is %q, want %q", p.Value, a.exact[k])
				}
			case a.texts == nil && a.typ == "float32":
				if err != nil || float32(got) != float32(v) || len(p.Value) > 24 {
					bad("the text of %v is %q", v, p.Value)
				}
			case a.texts == nil && (err != nil || !near(got, v, a.loose)):
				bad("the text of %v is %q", v, p.Value)
			}
			for d, text := range p.At {
				want := fmt.Sprintf("d%d %d", d, at[d])
				if a.coords[d] != nil {
					want = fmt.Sprintf("d%d %s m", d, strconv.FormatFloat(a.coords[d][at[d]], 'f', -1, 64))
				}
				if text != want {
					bad("the place is %q, want %q", text, want)
				}
			}
		}

		// A line: every value, or the least and the greatest of what shares a column.
		d, width := r.IntN(n), 4+r.IntN(400)
		sel[d] = ":"
		var line struct {
			Index []int64
			Lines [][]any
		}
		ask("series", fmt.Sprintf("%s&width=%d&select=%s", base, width, strings.Join(sel, ",")), &line)
		least, most := math.Inf(1), math.Inf(-1)
		for i := range a.shape[d] {
			at[d] = i
			if v := a.values[a.offset(at)]; v == v {
				least, most = min(least, v), max(most, v)
			}
		}
		drawnLeast, drawnMost := math.Inf(1), math.Inf(-1)
		for k, v := range line.Lines[0] {
			at[d] = line.Index[k]
			want := a.values[a.offset(at)]
			got, ok := v.(float64)
			if ok {
				drawnLeast, drawnMost = min(drawnLeast, got), max(drawnMost, got)
			}
			if len(line.Index) == int(a.shape[d]) && (ok != (want == want) || ok && !near(got, want, max(a.loose, 1e-7))) {
				bad("the line has %v at %v, want %v", v, at, want)
				break
			}
		}
		if !near(drawnLeast, least, max(a.loose, 1e-7)) || !near(drawnMost, most, max(a.loose, 1e-7)) {
			bad("the line goes from %v to %v, want %v to %v", drawnLeast, drawnMost, least, most)
		}
	}
}

// checkTicks looks whether ticks lie where their texts say.
func checkTicks(bad func(string, ...any), a *randomArray, d int, about windowJSON, rows bool) {
	ticks, l := about.Ticks.X, about.X
	if rows {
		ticks, l = about.Ticks.Y, about.Y
	}
	last := math.Inf(-1)
	first, end := l.Start, l.Start+int64(l.Len-1)*l.Step
	c := a.coords[d]
	edge := func(i int64) float64 {
		switch {
		case len(c) < 2:
			return c[0] + float64(i) - 0.5
		case i == 0:
			return c[0] - (c[1]-c[0])/2
		case i == int64(len(c)):
			return c[i-1] + (c[i-1]-c[i-2])/2
		}
		return (c[i-1] + c[i]) / 2
	}
	texts := map[string]bool{}
	for _, t := range ticks {
		v, err := strconv.ParseFloat(t.Text, 64)
		i := int64(math.Floor(t.At))
		if err != nil || texts[t.Text] || i < first || i > end {
			bad("tick %+v of elements %d to %d", t, first, end)
			continue
		}
		if texts[t.Text] = true; t.At <= last {
			bad("ticks are not in order: %+v", ticks)
		}
		last = t.At
		if c == nil {
			if v != t.At-0.5 {
				bad("tick %+v", t)
			}
			continue
		}
		f := (v - edge(i)) / (edge(i+1) - edge(i))
		if math.Abs(f-(t.At-float64(i))) > 1e-6 && c[min(i, int64(len(c)-1))] != v {
			bad("tick %+v lies at %v of element %d, want %v", t, t.At-float64(i), i, f)
		}
	}
	if len(ticks) == 0 {
		bad("no ticks of axis %d", d)
	}
}
