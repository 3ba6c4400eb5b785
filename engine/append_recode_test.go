package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// packed are numbers as little-endian elements.
func packed[T any](t testing.TB, values ...T) string {
	t.Helper()
	b := must.Get(binary.Append(nil, binary.LittleEndian, values))(t)
	return string(b)
}

// timesOf is a set with times and with one number for each of them.
func timesOf(dtype, units, calendar, times string, first byte, n int) smallSet {
	s := smallSet{".zgroup": map[string]any{"zarr_format": 2}}
	s.array("time", dtype, []int{n}, []int{n}, []string{"time"}, map[string]string{"0": times})
	s.doc("time")["fill_value"] = nil
	s.attrs("time")["units"] = units
	if calendar != "" {
		s.attrs("time")["calendar"] = calendar
	}
	chunk := make([]byte, n)
	for i := range chunk {
		chunk[i] = first + byte(i)
	}
	s.array("v", "|i1", []int{n}, []int{n}, []string{"time"}, map[string]string{"0": string(chunk)})
	s.doc("v")["fill_value"] = nil
	return s
}

// Times that count from another moment, in another unit or type are converted exactly, or
// refused.
func TestAppendConvertsTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	const epoch = "days since 2001-01-01"
	first := func(dtype, times string) smallSet { return timesOf(dtype, epoch, "standard", times, 0, 2) }
	for _, c := range []struct {
		name  string
		a, b  smallSet
		typ   string
		times string // text of the decoded times; "" if it is refused
		want  string // of the refusal
	}{
		{"epoch", first("<i8", packed[int64](t, 0, 1)), timesOf("<i8", "days since 2001-02-01", "gregorian", packed[int64](t, 0, 1), 2, 2),
			"int64", "2001-01-01T00:00:00 2001-01-02T00:00:00 2001-02-01T00:00:00 2001-02-02T00:00:00", ""},
		{"words", first("<i8", packed[int64](t, 0, 1)), timesOf("<i8", "days since 2001-01-01 00:00:00", "", packed[int64](t, 2, 3), 2, 2),
			"int64", "2001-01-01T00:00:00 2001-01-02T00:00:00 2001-01-03T00:00:00 2001-01-04T00:00:00", ""},
		{"proleptic", first("<i8", packed[int64](t, 0, 1)), timesOf("<i8", epoch, "proleptic_gregorian", packed[int64](t, 2, 3), 2, 2),
			"int64", "2001-01-01T00:00:00 2001-01-02T00:00:00 2001-01-03T00:00:00 2001-01-04T00:00:00", ""},
		{"whole hours", first("<i4", packed[int32](t, 0, 1)), timesOf("<i4", "hours since 2001-01-01", "", packed[int32](t, 48, 72), 2, 2),
			"int32", "2001-01-01T00:00:00 2001-01-02T00:00:00 2001-01-03T00:00:00 2001-01-04T00:00:00", ""},
		{"quarter days", first("<i8", packed[int64](t, 0, 1)), timesOf("<i8", "hours since 2001-01-01", "", packed[int64](t, 30, 54), 2, 2),
			"float64", "2001-01-01T00:00:00 2001-01-02T00:00:00 2001-01-02T06:00:00 2001-01-03T06:00:00", ""},
		{"hours", first("<f8", packed(t, 0, 1/24.)), timesOf("<f8", "hours since 2001-01-01", "", packed[float64](t, 2, 7), 2, 2),
			"float64", "2001-01-01T00:00:00 2001-01-01T01:00:00 2001-01-01T02:00:00 2001-01-01T07:00:00", ""},
		{"hours as days", first("<f8", packed(t, 0, 1/24.)), timesOf("<f8", "days since 1850-01-01", "", packed(t, 55152+2/24., 55152+7/24.), 2, 2),
			"float64", "2001-01-01T00:00:00 2001-01-01T01:00:00 2001-01-01T02:00:00 2001-01-01T07:00:00", ""},
		{"floats", first("<i8", packed[int64](t, 0, 1)), timesOf("<f8", "days since 2001-02-01", "", packed(t, 0.5, 1.5), 2, 2),
			"float64", "2001-01-01T00:00:00 2001-01-02T00:00:00 2001-02-01T12:00:00 2001-02-02T12:00:00", ""},
		{"wider", first("<i4", packed[int32](t, 0, 1)), timesOf("<i8", epoch, "", packed[int64](t, 2, 3), 2, 2),
			"int64", "2001-01-01T00:00:00 2001-01-02T00:00:00 2001-01-03T00:00:00 2001-01-04T00:00:00", ""},
		{"too long for the type", timesOf("<i4", "seconds since 2001-01-01", "", packed[int32](t, 0, 1), 0, 2), timesOf("<i4", "days since 2001-01-01", "", packed[int32](t, 1, 36525), 2, 2),
			"int64", "2001-01-01T00:00:00 2001-01-01T00:00:01 2001-01-02T00:00:00 2101-01-02T00:00:00", ""},
		{"nanoseconds", first("<i8", packed[int64](t, 0, 1)), timesOf("<i8", "nanoseconds since 2001-01-03", "", packed[int64](t, 1, 2), 2, 2),
			"", "", "/time: values is "},
		{"calendar", first("<i8", packed[int64](t, 0, 1)), timesOf("<i8", epoch, "noleap", packed[int64](t, 2, 3), 2, 2),
			"", "", `/time: attribute calendar is "standard"`},
		{"before the reform", first("<i8", packed[int64](t, 0, 1)), timesOf("<i8", "days since 1500-01-01", "proleptic_gregorian", packed[int64](t, 2, 3), 2, 2),
			"", "", "differ before 1582-10-15"},
		{"goes back", first("<i8", packed[int64](t, 0, 1)), timesOf("<i8", "days since 2000-02-01", "", packed[int64](t, 2, 3), 2, 2),
			"", "", "does not follow"},
		{"repeats", first("<i8", packed[int64](t, 0, 31)), timesOf("<i8", "days since 2001-02-01", "", packed[int64](t, 0, 1), 2, 2),
			"", "", "is there already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			joins(t, []smallSet{c.a, c.b}, true, func(mode string, db *DB, err error) {
				if c.times == "" {
					misfit(t, err, c.want)
					return
				}
				if err != nil {
					t.Fatalf("%s: %v", mode, err)
				}
				s := at(t, db, "")
				a := array(t, s, "time")
				if got := textOfTimes(t, a); got != c.times || a.Type().String() != c.typ {
					t.Errorf("%s: %v %s\nwant %s %s", mode, a.Type(), got, c.typ, c.times)
				}
				if got := textOf(t, array(t, s, "v")); got != "\x00\x01\x02\x03" {
					t.Errorf("%s: v holds %q", mode, got)
				}
			})
		})
	}
}

// textOfTimes are the decoded values of an array, with spaces between them.
func textOfTimes(t *testing.T, a *zarr.Array) string {
	t.Helper()
	d, err := cf.NewDecoder(a.Meta())
	must.Do(t, err)
	b, err := d.Append(nil, []byte(textOf(t, a)))
	must.Do(t, err)
	var list []string
	for ; len(b) > 0; b = b[d.Type().Size():] {
		text := must.Get(d.AppendText(nil, b[:d.Type().Size()]))(t)
		list = append(list, string(text))
	}
	return strings.Join(list, " ")
}

// The bounds of times have the units of the times, and are converted with them.
func TestAppendConvertsBounds(t *testing.T) {
	set := func(units string, first byte) smallSet {
		s := timesOf("<i8", units, "", packed[int64](t, 0, 1), first, 2)
		s.attrs("time")["bounds"] = "edges"
		s.array("edges", "<i8", []int{2, 2}, []int{2, 2}, []string{"time", "nv"}, map[string]string{"0.0": packed[int64](t, 0, 1, 1, 2)})
		s.doc("edges")["fill_value"] = nil
		return s
	}
	joins(t, []smallSet{set("days since 2001-01-01", 0), set("days since 2001-02-01", 2)}, true, func(mode string, db *DB, err error) {
		must.Do(t, err)
		if got, want := textOf(t, array(t, at(t, db, ""), "edges")), packed[int64](t, 0, 1, 1, 2, 31, 32, 32, 33); got != want {
			t.Errorf("%s: bounds %q", mode, got)
		}
	})
}

// Elements that mean the same in other words are joined where they are copied: fill values,
// longer texts, wider numbers, other chunks and other compressors.
func TestAppendOtherWords(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	set := func(first byte, edit func(smallSet)) smallSet {
		s := timesOf("<i4", "days since 2001-01-01", "", packed[int32](t, int32(first), int32(first)+1), first, 2)
		s.array("name", "<U2", []int{2}, []int{2}, []string{"time"}, map[string]string{"0": packed[int32](t, 'a', 'b', 'c', 0)})
		s.array("w", "<f4", []int{2, 2}, []int{1, 2}, []string{"time", "x"}, map[string]string{"0.0": packed[float32](t, 1, 2), "1.0": packed[float32](t, 3, 4)})
		s.doc("w")["fill_value"] = nil
		if edit != nil {
			edit(s)
		}
		return s
	}
	nan := float32(math.NaN())
	names := packed[int32](t, 'a', 'b', 'c', 0, 'a', 'b', 'c', 0)
	w := packed[float32](t, 1, 2, 3, 4, 1, 2, 3, 4)
	for _, c := range []struct {
		name   string
		edit   func(smallSet)
		names  string
		w      string
		want   string // of the refusal
		linked bool   // joined when linked, too
	}{
		{"longer text", func(s smallSet) {
			s.doc("name")["dtype"], s["name/0"] = "<U3", []byte(packed[int32](t, 'a', 'b', 'x', 'c', 0, 0))
		}, packed[int32](t, 'a', 'b', 0, 'c', 0, 0, 'a', 'b', 'x', 'c', 0, 0), w, "", true},
		{"NaN that is missing", func(s smallSet) { s.attrs("w")["_FillValue"] = "NaN" }, names, w, "", true},
		{"number that is missing", func(s smallSet) { s.attrs("w")["missing_value"] = 3 }, names, packed(t, 1, 2, 3, 4, 1, 2, nan, 4), "", false},
		{"fill value", func(s smallSet) { s.doc("w")["fill_value"] = -1 }, names, w, "", false},
		{"fill value that a number is", func(s smallSet) { s.doc("w")["fill_value"] = 4 }, names, packed(t, 1, 2, 3, 4, 1, 2, 3, nan), "", false},
		{"missing chunk", func(s smallSet) { s.doc("w")["fill_value"] = -1; delete(s, "w/1.0") }, names, packed(t, 1, 2, 3, 4, 1, 2, nan, nan), "", false},
		{"chunks", func(s smallSet) {
			s.doc("w")["chunks"], s["w/0.0"] = []int{2, 1}, []byte(packed[float32](t, 1, 3))
			s["w/0.1"] = []byte(packed[float32](t, 2, 4))
			delete(s, "w/1.0")
		}, names, w, "", false},
		{"wider", func(s smallSet) {
			s.doc("w")["dtype"], s["w/0.0"], s["w/1.0"] = "<f8", []byte(packed[float64](t, 1, 2)), []byte(packed[float64](t, 3, 4))
		}, names, packed[float64](t, 1, 2, 3, 4, 1, 2, 3, 4), "", false},
		{"compressor", func(s smallSet) {
			s.doc("w")["compressor"] = map[string]any{"id": "zlib", "level": 1}
			for _, key := range []string{"w/0.0", "w/1.0"} {
				s[key] = []byte(deflated(string(s[key].([]byte))))
			}
		}, names, w, "", false},
		{"whole numbers and texts", func(s smallSet) { s.doc("w")["dtype"] = "|S4" }, "", "", "/w: data_type is float32 in", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			joins(t, []smallSet{set(0, nil), set(2, c.edit)}, true, func(mode string, db *DB, err error) {
				if linked := strings.HasPrefix(mode, "link true"); c.want != "" || linked && !c.linked {
					var e *MisfitError
					if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || e.Copied != (c.want == "") {
						t.Errorf("%s: error %v", mode, err)
					}
					return
				}
				if err != nil {
					t.Fatalf("%s: %v", mode, err)
				}
				s := at(t, db, "")
				if got := textOf(t, array(t, s, "name")); got != c.names {
					t.Errorf("%s: names %q\nwant %q", mode, got, c.names)
				}
				if got := textOf(t, array(t, s, "w")); got != c.w {
					t.Errorf("%s: w %q\nwant %q", mode, got, c.w)
				}
			})
		})
	}
	// A number that would be taken for a missing one.
	zero := set(0, func(s smallSet) { s.doc("w")["fill_value"] = 3 })
	joins(t, []smallSet{zero, set(2, nil)}, false, func(mode string, db *DB, err error) {
		if !errors.Is(err, ErrMisfit) {
			t.Errorf("%s: error %v", mode, err)
		}
	})
	_, err := appendAll(openDB(t, nil), "time", false, ImportOptions{}, pieces(t, zero, set(2, nil))...)
	misfit(t, err, "it means a missing value there")
}

// All differences are reported at once.
func TestAppendReportsAll(t *testing.T) {
	other := timesOf("<i8", "days since 2001-01-01", "noleap", packed[int64](t, 2, 3), 2, 2)
	other.attrs("v")["scale_factor"] = 2
	other.doc("v")["dtype"] = "|S1"
	joins(t, []smallSet{timesOf("<i8", "days since 2001-01-01", "", packed[int64](t, 0, 1), 0, 2), other}, true, func(mode string, _ *DB, err error) {
		var e *MisfitError
		if !errors.As(err, &e) {
			t.Fatalf("%s: error %v", mode, err)
		}
		for _, want := range []string{"/time: attribute calendar is missing", "/v: data_type is int8", "/v: attribute scale_factor is missing"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v\nlacks %s", mode, err, want)
			}
		}
		if len(e.Others) != 2 {
			t.Errorf("%s: %d others", mode, len(e.Others))
		}
	})
	wide := dailySet(1) // the same fill value of another type is no other difference
	wide.doc("t")["dtype"] = "<i4"
	_, err := appendAll(openDB(t, nil), "time", true, ImportOptions{}, pieces(t, dailySet(0), wide)...)
	var e *MisfitError
	if !errors.As(err, &e) || e.Field != "data_type" || len(e.Others) != 0 {
		t.Errorf("error %v", err)
	}
}

// unevenPieces are databases with an array v of lengths×3 elements in Zarr v3, which count
// from 0, 1000, 2000.
func unevenPieces(t *testing.T, lengths, chunks []int64) (list []Piece) {
	t.Helper()
	for i, n := range lengths {
		db := openDB(t, nil)
		values := make([]int32, 3*n)
		for k := range values {
			values[k] = int32(1000*i + k)
		}
		commit(t, db, "", "x", func(s *Session) error {
			a, err := s.CreateArray(bg, "v", zarr.Spec{Shape: []int64{n, 3}, Chunks: []int64{chunks[i], 2}, DataType: "int32", DimensionNames: []string{"time", "x"}})
			if err != nil {
				return err
			}
			return a.WriteBytes(bg, zarr.Sel(), []byte(packed(t, values...)))
		})
		list = append(list, Piece{Name: fmt.Sprint("p", i), Open: func(ctx context.Context) (*Source, error) {
			return OpenDatabaseSource(ctx, db.Dir(), "", "", "", &SourceOptions{Open: func(_ context.Context, _ string, o *Options) (*DB, error) { return db.Handle(o) }})
		}})
	}
	return list
}

// Pieces with other chunk lengths are cut anew, or joined as a rectilinear grid, at once and
// one after the other.
func TestAppendRectilinear(t *testing.T) {
	small(t, 8) // a partial chunk is more than is read at a time
	lengths := []int64{40, 28, 7, 30}
	chunks := []int64{31, 28, 3, 10}
	for _, rectilinear := range []bool{false, true} {
		for _, step := range []int{1, 2, len(lengths)} {
			t.Run(fmt.Sprint(rectilinear, step), func(t *testing.T) {
				list := unevenPieces(t, lengths, chunks)
				db := openDB(t, nil)
				for lo := 0; lo < len(list); lo += step {
					plan, err := PlanAppend(bg, list[lo:min(lo+step, len(list))], AppendOptions{Dim: "time", Rectilinear: rectilinear})
					must.Do(t, err)
					_, err = db.Append(bg, plan, ImportOptions{})
					must.Do(t, err)
				}
				a := array(t, at(t, db, ""), "v")
				var want []int32
				for i, n := range lengths {
					for k := range 3 * n {
						want = append(want, int32(1000*i)+int32(k))
					}
				}
				if got := textOf(t, a); got != packed(t, want...) {
					t.Error("other values")
				}
				grid := fmt.Sprint(a.Meta().Grid)
				if rectilinear != strings.Contains(grid, "[[31,9,28,[3,2],1,[10,3]],2]") || !rectilinear != slices.Equal(a.Meta().Grid.Regular(), []int{31, 2}) {
					t.Errorf("grid %s", grid)
				}
			})
		}
	}
}

// Elements of Zarr v2 in another byte order stay the numbers that they are.
func TestAppendByteOrders(t *testing.T) {
	set := func(dtype, times string) smallSet {
		return timesOf(dtype, "days since 2001-01-01", "", times, 0, 2)
	}
	big := must.Get(binary.Append(nil, binary.BigEndian, []int32{2, 3}))(t)
	const want = "2001-01-01T00:00:00 2001-01-02T00:00:00 2001-01-03T00:00:00 2001-01-04T00:00:00"
	small := packed[int32](t, 0, 1)
	joins(t, []smallSet{set("<i4", small), set(">i4", string(big))}, true, func(mode string, db *DB, err error) {
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if got := textOfTimes(t, array(t, at(t, db, ""), "time")); got != want {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
	})
}

// Consolidated metadata has the type that an append gave an array: readers that use it
// would take the elements for others.
func TestAppendConsolidated(t *testing.T) {
	first := timesOf("<i8", "days since 2001-01-01", "", packed[int64](t, 0, 1), 0, 2)
	docs := map[string]any{}
	for key, doc := range first {
		if _, chunk := doc.([]byte); !chunk {
			docs[key] = doc
		}
	}
	first[".zmetadata"] = map[string]any{"zarr_consolidated_format": 1, "metadata": docs}
	next := timesOf("<i8", "hours since 2001-01-01", "", packed[int64](t, 54, 60), 2, 2)
	next.doc("v")["dtype"], next["v/0"] = "<i2", []byte(packed[int16](t, 2, 3)) // no array keeps its type
	for _, link := range []bool{false, true} {
		db, list := openDB(t, nil), pieces(t, first, next)
		src, err := list[0].Open(bg)
		must.Do(t, err)
		_, err = db.Import(bg, src, ImportOptions{})
		must.Do(t, errors.Join(err, src.Close()))
		_, err = appendAll(db, "time", link, ImportOptions{}, list[1])
		must.Do(t, err)
		text := must.Get(kv.Get(bg, at(t, db, ""), ".zmetadata"))(t)
		var doc struct {
			Metadata struct {
				Time struct {
					Shape []int
					Dtype string
				} `json:"time/.zarray"`
			}
		}
		must.Do(t, json.Unmarshal(text, &doc))
		if is := fmt.Sprint(doc.Metadata.Time); is != "{[4] <f8}" {
			t.Errorf("link %v: consolidated metadata has %s", link, is)
		}
	}
}

// The elements of an existing array that gets another type all wait until the array has that
// type, also if they are more than may wait otherwise.
func TestAppendReplacesMuch(t *testing.T) {
	must.Set(t, &maxWaiting, 1)
	set := func(dtype, time, v string) smallSet {
		s := smallSet{".zgroup": map[string]any{"zarr_format": 2}}
		s.array("time", dtype, []int{2}, []int{2}, []string{"time"}, map[string]string{"0": time})
		s.array("v", dtype, []int{2}, []int{1}, []string{"time"}, map[string]string{"0": v[:8], "1": v[8:]})
		s.doc("time")["fill_value"], s.doc("v")["fill_value"] = nil, nil
		return s
	}
	whole := set("<i8", packed[int64](t, 1, 2), packed[int64](t, 5, 6))
	parts := set("<f8", packed(t, 2.5, 3), packed(t, 6.5, 7))
	for _, slab := range []int64{8, slabBytes} {
		small(t, slab)
		joins(t, []smallSet{whole, parts}, true, func(mode string, db *DB, err error) {
			must.Do(t, err)
			s := at(t, db, "")
			for path, want := range map[string]string{"time": packed(t, 1, 2, 2.5, 3), "v": packed(t, 5, 6, 6.5, 7)} {
				if got := textOf(t, array(t, s, path)); got != want {
					t.Errorf("%s, %d bytes at a time: /%s holds %q, want %q", mode, slab, path, got, want)
				}
			}
		})
	}
}
