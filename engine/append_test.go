package engine

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// pieceOf is a URL as a piece.
func pieceOf(url string, f Follow) Piece {
	return Piece{Name: filepath.Base(url), Open: func(ctx context.Context) (*Source, error) {
		return OpenSource(ctx, url, &SourceOptions{Follow: f})
	}}
}

// appendAll plans and appends.
func appendAll(db *DB, dim string, link bool, o ImportOptions, pieces ...Piece) (*ImportResult, error) {
	p, err := PlanAppend(bg, pieces, AppendOptions{Dim: dim, Link: link})
	if err != nil {
		return nil, err
	}
	return db.Append(bg, p, o)
}

// splitConcat takes the set that kerchunk joined of three files apart again, and
// returns a set for each file.
func splitConcat(t *testing.T, c *refCase, edit func(file int, key string, doc map[string]any)) (sets []string) {
	t.Helper()
	var joined map[string]json.RawMessage
	c.read(t, c.Expanded, &joined)
	base := t.TempDir()
	must.Do(t, os.CopyFS(base+"/data", os.DirFS(c.dir+"/data")))
	for file := range 3 {
		set := map[string]any{}
		for key, raw := range joined {
			name, last := filepath.Split(filepath.FromSlash(key))
			name = strings.TrimSuffix(filepath.ToSlash(name), "/")
			grows := name == "time" || name == "temp" || name == "packed"
			switch {
			case strings.HasPrefix(last, ".z"):
				var text string
				var doc map[string]any
				must.Do(t, json.Unmarshal(raw, &text))
				must.Do(t, json.Unmarshal([]byte(text), &doc))
				if grows && last == ".zarray" {
					doc["shape"].([]any)[0] = 2
					if name == "time" {
						doc["chunks"] = []int{2}
					}
				}
				if edit != nil {
					edit(file, key, doc)
				}
				set[key] = doc
			case key == "time/0":
				var text string
				must.Do(t, json.Unmarshal(raw, &text))
				b := must.Get(base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "base64:")))(t)
				set[key] = "base64:" + base64.StdEncoding.EncodeToString(b[16*file:16*file+16])
			case grows:
				var at int
				var rest string
				must.Get(fmt.Sscanf(last, "%d.%s", &at, &rest))(t)
				if at/2 == file {
					set[fmt.Sprintf("%s/%d.%s", name, at%2, rest)] = raw
				}
			default:
				set[key] = raw
			}
		}
		b := must.Get(json.Marshal(map[string]any{"version": 1, "refs": set}))(t)
		path := fmt.Sprintf("%s/f%d.json", base, file)
		must.Do(t, os.WriteFile(path, b, 0o666))
		sets = append(sets, path)
	}
	return sets
}

// parquetOf writes a reference set as parquet.
func parquetOf(t *testing.T, set string) string {
	t.Helper()
	db := openDB(t, linkOptions(t, t.TempDir()))
	linkSet(t, db, set, Follow{}, ImportOptions{})
	closeChecked(t, db)
	src := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", "", nil))(t)
	defer src.Close()
	dest := strings.TrimSuffix(set, ".json") + ".parq"
	must.Get(ExportReferences(bg, src, dest, ExportReferencesOptions{Parquet: true}))(t)
	return dest
}

// Sets of single files, joined in one commit or one after the other, read as
// the set that kerchunk joined.
func TestAppendReferenceSets(t *testing.T) {
	c := refCases(t, "multi_concat")[0]
	for _, mode := range []struct{ link, parquet bool }{{true, false}, {true, true}, {false, false}, {false, true}} {
		for _, steps := range [][]int{{2, 1}, {3}, {1, 1, 1}} {
			if testing.Short() && steps[0] != 2 {
				continue
			}
			t.Run(fmt.Sprint(mode, steps), func(t *testing.T) {
				link, sets := mode.link, splitConcat(t, c, nil)
				if mode.parquet {
					for i := range sets {
						sets[i] = parquetOf(t, sets[i])
					}
				}
				config, path := t.TempDir(), t.TempDir()+"/t.zdb"
				for done, n := range steps {
					db := must.Get(Open(bg, path, linkOptions(t, config)))(t)
					var pieces []Piece
					for _, set := range sets[:n] {
						pieces = append(pieces, pieceOf(set, Follow{}))
					}
					sets = sets[n:]
					res := must.Get(appendAll(db, "time", link, ImportOptions{To: "a/b"}, pieces...))(t)
					if res.Nodes != 6 {
						t.Errorf("step %d: %d nodes", done, res.Nodes)
					}
					closeChecked(t, db)
				}
				db := openAt(t, path, linkOptions(t, config))
				s := at(t, db, "")
				for _, a := range c.Arrays {
					if sum := sumOf(t, array(t, s, "a/b/"+a.Path)); sum != a.SHA {
						t.Errorf("%s: other values", a.Path)
					}
				}
				log := 0
				for _, err := range db.store.Log(bg, head(t, db, "")) {
					must.Do(t, err)
					log++
				}
				if log != len(steps)+1 {
					t.Errorf("%d commits", log)
				}
			})
		}
	}
}

// What does not fit is named with its files, and nothing is committed.
func TestAppendRefuses(t *testing.T) {
	c := refCases(t, "multi_concat")[0]
	for _, test := range []struct {
		name, key string
		edit      func(doc map[string]any)
		want      []string
	}{
		{"scale_factor", "packed/.zattrs", func(d map[string]any) { d["scale_factor"] = 0.02 },
			[]string{"/packed: attribute scale_factor is 0.01 in f0.json, but 0.02 in f1.json, f2.json"}},
		{"add_offset", "packed/.zattrs", func(d map[string]any) { delete(d, "add_offset") }, []string{"/packed: attribute add_offset is 5", "but missing in f1.json, f2.json"}},
		{"units", "time/.zattrs", func(d map[string]any) { d["units"] = "months since 2000-01-01" },
			[]string{`/time: attribute units is "days since 2000-01-01" in f0.json, but "months since 2000-01-01" in f1.json, f2.json`}},
		{"calendar", "time/.zattrs", func(d map[string]any) { d["calendar"] = "noleap" }, []string{"/time: attribute calendar is ", `but "noleap" in f1.json, f2.json`}},
		{"codecs", "temp/.zarray", func(d map[string]any) { d["filters"] = nil }, []string{"/temp: codecs is", "filters null", "f1.json, f2.json"}},
		{"dtype", "temp/.zarray", func(d map[string]any) { d["dtype"] = "<i4" }, []string{"/temp: data_type is float32 in f0.json, but int32 in f1.json"}},
		{"fill", "temp/.zarray", func(d map[string]any) { d["fill_value"] = 0 }, []string{"/temp: fill_value is -999", "but 0 in"}},
		{"chunks", "temp/.zarray", func(d map[string]any) { d["chunks"] = []int{1, 6, 4} }, []string{"/temp: chunk_grid is [1 3 4] in f0.json, but [1 6 4] in f1.json, f2.json"}},
		{"shape", "temp/.zarray", func(d map[string]any) { d["shape"] = []int{2, 6, 9} }, []string{"/temp: shape is [2 6 8] in f0.json, but [2 6 9] in f1.json"}},
		{"length", "packed/.zarray", func(d map[string]any) { d["shape"] = []int{3, 6, 8} }, []string{"length along time", "f1.json"}},
		{"names", "temp/.zattrs", func(d map[string]any) { d["_ARRAY_DIMENSIONS"] = []string{"time", "x", "y"} }, []string{"/temp: dimension_names is"}},
		{"static", "x/.zarray", func(d map[string]any) { d["compressor"] = nil; d["shape"] = []int{7} }, []string{"/x: shape is [8]"}},
	} {
		for _, there := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, there), func(t *testing.T) {
				sets := splitConcat(t, c, func(file int, key string, doc map[string]any) {
					if file > 0 && key == test.key {
						test.edit(doc)
					}
				})
				db := openDB(t, linkOptions(t, t.TempDir()))
				pieces := []Piece{pieceOf(sets[0], Follow{}), pieceOf(sets[1], Follow{}), pieceOf(sets[2], Follow{})}
				if there {
					must.Get(appendAll(db, "time", true, ImportOptions{}, pieces[0]))(t)
					pieces = pieces[1:]
				}
				before := head(t, db, "")
				_, err := appendAll(db, "time", true, ImportOptions{}, pieces...)
				var misfit *MisfitError
				if !errors.Is(err, ErrMisfit) || !errors.As(err, &misfit) || len(misfit.Files) == 0 {
					t.Fatalf("error %v", err)
				}
				for _, want := range test.want {
					if !there && !strings.Contains(err.Error(), want) {
						t.Errorf("error %q\nlacks %q", err, want)
					}
				}
				unchanged(t, db, before)
			})
		}
	}
	// Other values where there is no such dimension.
	sets := splitConcat(t, c, nil)
	b, err := os.ReadFile(sets[2])
	must.Do(t, err)
	b = bytes.Replace(b, []byte(`"y/0":["data/p0.nc",10011,24]`), []byte(`"y/0":["data/p0.nc",10035,24]`), 1)
	must.Do(t, os.WriteFile(sets[2], b, 0o666))
	db := openDB(t, linkOptions(t, t.TempDir()))
	before := head(t, db, "")
	_, err = appendAll(db, "time", true, ImportOptions{}, pieceOf(sets[0], Follow{}), pieceOf(sets[1], Follow{}), pieceOf(sets[2], Follow{}))
	if !errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), "/y: values") || !strings.Contains(err.Error(), "f2.json") {
		t.Errorf("error %v", err)
	}
	unchanged(t, db, before)
	if _, err := appendAll(db, "tim", true, ImportOptions{}, pieceOf(sets[0], Follow{})); !errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), `["time" "x" "y"]`) {
		t.Errorf("error %v", err)
	}
}

// An append that is cancelled leaves nothing.
func TestAppendCancelled(t *testing.T) {
	sets := splitConcat(t, refCases(t, "multi_concat")[0], nil)
	db := openDB(t, linkOptions(t, t.TempDir()))
	before := head(t, db, "")
	p := must.Get(PlanAppend(bg, []Piece{pieceOf(sets[0], Follow{}), pieceOf(sets[1], Follow{})}, AppendOptions{Dim: "time", Link: true}))(t)
	ctx, cancel := context.WithCancel(bg)
	opens := 0
	open := p.pieces[1].Open
	p.pieces[1].Open = func(ctx context.Context) (*Source, error) {
		// A plain import of the first piece must not take up the session.
		if list, err := db.Sessions(bg); err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Label, "append 2 sources along time to / (") {
			t.Errorf("sessions %v, %v", list, err)
		}
		opens++
		cancel()
		return open(ctx)
	}
	if _, err := db.Append(ctx, p, ImportOptions{}); !errors.Is(err, context.Canceled) || opens != 1 {
		t.Errorf("error %v after %d opens", err, opens)
	}
	unchanged(t, db, before)
	if list, err := db.Sessions(bg); len(list) > 0 || err != nil {
		t.Errorf("sessions %v, %v", list, err)
	}
}

// randomPieces writes random stores of the same arrays, and returns them with
// the elements of each array joined.
func randomPieces(t *testing.T, r *rand.Rand, link bool) (pieces []Piece, want map[string][]int32) {
	t.Helper()
	version := []zarr.Version{zarr.V2, zarr.V3}[r.IntN(2)]
	if link {
		version = zarr.V2
	}
	chunk := 1 + r.Int64N(3)
	cy, cx := 1+r.Int64N(3), 1+r.Int64N(3)
	ny, nx := r.Int64N(4), 1+r.Int64N(4)
	n := 1 + r.IntN(4)
	parts := map[string][][]int32{}
	var lengths []int64
	for i := range n {
		length := r.Int64N(4) * chunk
		if !link {
			length = r.Int64N(8) // copies may begin inside a chunk
		}
		if i == n-1 {
			length = r.Int64N(8)
		}
		lengths = append(lengths, length)
		root := t.TempDir()
		tc := chunk
		if r.IntN(2) == 0 {
			tc = max(length, 1) // as files have it that know no chunks
		}
		db := openDB(t, nil)
		commit(t, db, "", "x", func(s *Session) error {
			if _, err := s.CreateGroup(bg, "", version, zarr.Attributes{}); err != nil {
				return err
			}
			for _, a := range []struct {
				name   string
				shape  []int64
				chunks []int64
				dims   []string
			}{
				{"time", []int64{length}, []int64{tc}, []string{"time"}},
				{"x", []int64{nx}, []int64{1 + r.Int64N(nx)}, []string{"x"}},
				{"first", []int64{length, ny, nx}, []int64{chunk, cy, cx}, []string{"time", "y", "x"}},
				{"last", []int64{nx, length}, []int64{cx, chunk}, []string{"x", "time"}},
				{"crs", nil, nil, nil},
			} {
				arr, err := s.CreateArray(bg, a.name, zarr.Spec{Version: version, Shape: a.shape, Chunks: a.chunks, DataType: "int32", FillValue: []byte("-7"), DimensionNames: a.dims})
				if err != nil {
					return err
				}
				count := int64(1)
				for _, d := range a.shape {
					count *= d
				}
				data := make([]int32, count)
				for k := range data {
					data[k] = int32(k)
					if slices.Contains(a.dims, "time") {
						data[k] = -7 // so that some chunks are missing
						if r.IntN(3) > 0 || i%2 == 0 {
							data[k] = r.Int32()
						}
					}
				}
				if err := zarr.Write(bg, arr, zarr.Sel(), data); err != nil {
					return err
				}
				parts[a.name] = append(parts[a.name], data)
			}
			// What a longer array may have left behind.
			return s.Set(bg, "time/"+string(array(t, s, "time").Meta().Keys.Append(nil, []int64{length})), []byte("left"))
		})
		files := contents(t, at(t, db, ""))
		set := map[string]any{}
		for key, value := range files {
			file := filepath.Join(root, "s", filepath.FromSlash(key))
			must.Do(t, os.MkdirAll(filepath.Dir(file), 0o777))
			must.Do(t, os.WriteFile(file, []byte(value), 0o666))
			set[key] = []any{"s/" + key}
			if r.IntN(4) == 0 {
				set[key] = []any{"s/" + key, 0, len(value)}
			}
			if names.IsDocument(key) {
				set[key] = value
			}
		}
		url := root + "/s"
		if link {
			b := must.Get(json.Marshal(map[string]any{"version": 1, "refs": set}))(t)
			url = root + "/refs.json"
			must.Do(t, os.WriteFile(url, b, 0o666))
		}
		pieces = append(pieces, pieceOf(url, Follow{Allow: []string{"file://" + filepath.ToSlash(root)}}))
	}
	want = map[string][]int32{"x": parts["x"][0], "crs": parts["crs"][0]}
	for i := range n {
		want["time"] = append(want["time"], parts["time"][i]...)
		want["first"] = append(want["first"], parts["first"][i]...)
	}
	for row := range nx {
		for i := range n {
			want["last"] = append(want["last"], parts["last"][i][row*lengths[i]:(row+1)*lengths[i]]...)
		}
	}
	return pieces, want
}

// Joined stores read as their elements put together.
func TestAppendModel(t *testing.T) {
	runs := 12
	if testing.Short() {
		runs = 4
	}
	for seed := range uint64(runs) {
		for _, link := range []bool{false, true} {
			t.Run(fmt.Sprint(seed, link), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 5))
				// All references of the pieces are kept, some, or none.
				must.Set(t, &maxKept, []int64{0, 2000, 1 << 20}[r.IntN(3)])
				pieces, want := randomPieces(t, r, link)
				config, path := t.TempDir(), t.TempDir()+"/t.zdb"
				cut := r.IntN(len(pieces) + 1)
				for _, part := range [][]Piece{pieces[:cut], pieces[cut:]} {
					if len(part) == 0 {
						continue
					}
					db := must.Get(Open(bg, path, linkOptions(t, config)))(t)
					must.Get(appendAll(db, "time", link, ImportOptions{To: "g", AnyOrder: true}, part...))(t)
					closeChecked(t, db)
				}
				s := at(t, openAt(t, path, linkOptions(t, config)), "")
				for name, values := range want {
					if got := ints(t, s, "g/"+name); !slices.Equal(got, values) {
						t.Errorf("%s holds %v, want %v", name, got, values)
					}
				}
			})
		}
	}
}

// Linked chunks cannot begin inside of one that is there, but those of
// coordinates are read and written anew.
func TestAppendInsideChunk(t *testing.T) {
	set := func(n int, values string) string {
		doc := func(shape, chunks, dims string) (string, string) {
			return fmt.Sprintf(`{"zarr_format":2,"shape":[%s],"chunks":[%s],"dtype":"|i1","compressor":null,"filters":null,"fill_value":0,"order":"C"}`, shape, chunks),
				fmt.Sprintf(`{"_ARRAY_DIMENSIONS":[%s]}`, dims)
		}
		time, timeAttrs := doc(fmt.Sprint(n), fmt.Sprint(n), `"time"`)
		grid, gridAttrs := doc(fmt.Sprintf("1,%d", n), "1,2", `"y","time"`)
		refs := map[string]any{"time/.zarray": time, "time/.zattrs": timeAttrs, "time/0": values, ".zgroup": `{"zarr_format":2}`}
		if n%2 == 1 {
			refs["grid/.zarray"], refs["grid/.zattrs"] = grid, gridAttrs
		}
		b := must.Get(json.Marshal(refs))(t)
		return folder(t, map[string]string{fmt.Sprintf("n%d.json", n): string(b)}) + fmt.Sprintf("/n%d.json", n)
	}
	db := openDB(t, linkOptions(t, t.TempDir()))
	before := head(t, db, "")
	_, err := appendAll(db, "time", true, ImportOptions{}, pieceOf(set(1, "a"), Follow{}), pieceOf(set(3, "bcd"), Follow{}))
	if !errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), "/grid: chunk boundary is a last chunk of 2 that is not full in n1.json, but begins at 1, inside of it in n3.json") {
		t.Errorf("error %v", err)
	}
	unchanged(t, db, before)
	must.Get(appendAll(db, "time", true, ImportOptions{}, pieceOf(set(2, "ab"), Follow{}), pieceOf(set(4, "cdef"), Follow{})))(t)
	a := array(t, at(t, db, ""), "time")
	b := make([]byte, 6)
	if err := a.ReadBytes(bg, zarr.Sel(), b); err != nil || string(b) != "abcdef" || a.Shape()[0] != 6 {
		t.Errorf("%q of %v, %v", b, a.Shape(), err)
	}
}

// Chunks that an array which is there kept from a time when it was longer do not
// show when it grows.
func TestAppendOverOldChunks(t *testing.T) {
	dims := zarr.Spec{Shape: []int64{4}, Chunks: []int64{2}, DataType: "int32", DimensionNames: []string{"time"}}
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error {
		if err := create(s, "a", dims); err != nil {
			return err
		}
		return array(t, s, "a").Resize(bg, []int64{2}, zarr.ResizeOptions{KeepChunks: true})
	})
	other := openDB(t, nil)
	commit(t, other, "", "x", func(s *Session) error {
		_, err := s.CreateArray(bg, "a", dims)
		return err
	})
	url := memoryURL(t, contents(t, kv.SubLister(at(t, other, ""), "")))
	must.Get(appendAll(db, "time", false, ImportOptions{}, pieceOf(url, Follow{})))(t)
	wantInts(t, at(t, db, ""), "a", 0, 1, 0, 0, 0, 0)
}

// timeSet writes a reference set with coordinates "time" of a type of one byte
// or more, whose values stand in the set, and returns its URL.
func timeSet(t *testing.T, name, dtype string, size int, values []byte) string {
	t.Helper()
	n := len(values) / size
	b := must.Get(json.Marshal(map[string]any{
		".zgroup":      map[string]int{"zarr_format": 2},
		"time/.zarray": map[string]any{"zarr_format": 2, "shape": []int{n}, "chunks": []int{max(n, 1)}, "dtype": dtype, "compressor": nil, "filters": nil, "fill_value": nil, "order": "C"},
		"time/.zattrs": map[string]any{"_ARRAY_DIMENSIONS": []string{"time"}},
		"time/0":       "base64:" + base64.StdEncoding.EncodeToString(values),
	}))(t)
	return folder(t, map[string]string{name: string(b)}) + "/" + name
}

// Coordinates that repeat or go back are refused, named with their values and
// files, unless any order is asked for.
func TestAppendOrder(t *testing.T) {
	floats := func(values ...float32) (b string) {
		for _, v := range values {
			b += string(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		}
		return b
	}
	nan := float32(math.NaN())
	for _, test := range []struct {
		name, dtype string
		size        int
		pieces      []string
		want        string // "" if it fits
	}{
		{"ascending", "|i1", 1, []string{"\xff\x00", "\x01", "", "\x02\x05"}, ""},
		{"descending", "|u1", 1, []string{"\xff", "\x80\x7f", "\x01"}, ""},
		{"the same again", "|i1", 1, []string{"abc", "abc"}, "97 in p1.json does not follow 99 in "},
		{"one that overlaps", "|i1", 1, []string{"abc", "cde"}, "99 in p1.json is there already, in "},
		{"turn", "|i1", 1, []string{"ab", "dc"}, "99 in p1.json does not follow 100 in p1.json"},
		{"other direction", "|i1", 1, []string{"cb", "de"}, "100 in p1.json does not follow 98 in "},
		{"one value twice", "|i1", 1, []string{"a", "a"}, "97 in p1.json is there already, in "},
		{"direction of one value", "|i1", 1, []string{"b", "a", "c"}, "99 in p2.json does not follow 97 in "},
		{"floats", "<f4", 4, []string{floats(-1, -0.5), floats(0, 1e-40, 1)}, ""},
		{"zeros", "<f4", 4, []string{floats(-1, float32(math.Copysign(0, -1))), floats(0)}, "0.0 in p1.json is there already, in "},
		{"not a number", "<f4", 4, []string{floats(1), floats(nan)}, `"NaN" in p1.json does not follow 1.0 in `},
		{"after not a number", "<f4", 4, []string{floats(nan), floats(1)}, `1.0 in p1.json does not follow "NaN" in `},
		{"labels", "|S2", 2, []string{"r2r1", "r9"}, ""},
		{"label again", "|S2", 2, []string{"r2r1", "r9r2"}, "in p1.json is there already, in "},
	} {
		for _, mode := range []string{"at once", "one after the other", "copied"} {
			t.Run(test.name+" "+mode, func(t *testing.T) {
				var pieces []Piece
				for i, values := range test.pieces {
					pieces = append(pieces, pieceOf(timeSet(t, fmt.Sprintf("p%d.json", i), test.dtype, test.size, []byte(values)), Follow{}))
				}
				steps := [][]Piece{pieces}
				if mode == "one after the other" {
					steps = steps[:0]
					for i := range pieces {
						steps = append(steps, pieces[i:i+1])
					}
				}
				db := openDB(t, nil)
				var err error
				var before txn.CommitID
				for _, step := range steps {
					before = head(t, db, "")
					if _, err = appendAll(db, "time", mode != "copied", ImportOptions{}, step...); err != nil {
						break
					}
				}
				if test.want == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				var order *OrderError
				if !errors.Is(err, ErrMisfit) || !errors.As(err, &order) || order.Path != "time" || !strings.Contains(err.Error(), "/time: ") || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("error %v", err)
				}
				unchanged(t, db, before)
				if _, err = appendAll(db, "time", mode != "copied", ImportOptions{AnyOrder: true, Overwrite: mode == "at once"}, pieces...); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Aligning a plan again, with another length of what is there, forgets what had
// to be rewritten before.
func TestAppendAlignsAnew(t *testing.T) {
	p := must.Get(PlanAppend(bg, []Piece{pieceOf(timeSet(t, "p.json", "|i1", 1, []byte("ab")), Follow{})}, AppendOptions{Dim: "time", Link: true}))(t)
	for had, rewrite := range []bool{false, true, false} {
		p.base["time"].had = int64(had)
		p.align()
		if got := p.pieces[0].arrays["time"]; got.rewrite != rewrite || got.start != int64(had) || p.base["time"].total != int64(had)+2 {
			t.Errorf("with %d there: %+v", had, got)
		}
	}
}

// A JSON set is parsed once: what is written is what was compared, also if the
// file has become another meanwhile.
func TestAppendReadsSetsOnce(t *testing.T) {
	url := timeSet(t, "p.json", "|i1", 1, []byte("ab"))
	for _, kept := range []int64{maxKept, 0} {
		p := must.Get(PlanAppend(bg, []Piece{pieceOf(url, Follow{})}, AppendOptions{Dim: "time", Link: true}))(t)
		if (p.pieces[0].kept == nil) != (kept == 0) {
			t.Errorf("%d bytes may be kept: %+v", kept, p.pieces[0].kept)
		}
		text := must.Get(os.ReadFile(url))(t)
		other := bytes.Replace(text, []byte(base64.StdEncoding.EncodeToString([]byte("ab"))), []byte(base64.StdEncoding.EncodeToString([]byte("xy"))), 1)
		must.Do(t, os.WriteFile(url, other, 0o666))
		db := openDB(t, nil)
		must.Get(db.Append(bg, p, ImportOptions{}))(t)
		want := "xy"
		if kept > 0 {
			want = "ab"
		}
		if b, err := kv.Get(bg, at(t, db, ""), "time/0"); err != nil || string(b) != want {
			t.Errorf("%d bytes may be kept: %q, %v", kept, b, err)
		}
		must.Do(t, os.WriteFile(url, text, 0o666))
		must.Set(t, &maxKept, 0)
	}
}

// What is read of a linked piece on a server is read together: the coordinates
// that must be in order, and the arrays that must be equal.
func TestAppendFetchesTogether(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	files := map[string][]byte{}
	array := func(n int, dim string) string {
		return fmt.Sprintf(`{"zarr_format":2,"shape":[%d],"chunks":[2],"dtype":"|i1","compressor":null,"filters":null,"fill_value":0,"order":"C"},"%[2]s/.zattrs":{"_ARRAY_DIMENSIONS":["%[2]s"]}`, n, dim)
	}
	const pieces, more = 11, 3 // more than are opened at a time
	for i := range pieces + more {
		name := fmt.Sprintf("/f%d", i)
		files[name] = []byte{1, 2, 3, 4, byte(4 * i), byte(4*i + 1), byte(4*i + 2), byte(4*i + 3)}
		files[name+".json"] = fmt.Appendf(nil, `{".zgroup":{"zarr_format":2},"time/.zarray":%s,"x/.zarray":%s,"time/0":["f%[3]d",4,2],"time/1":["f%[3]d",6,2],"x/0":["f%[3]d",0,2],"x/1":["f%[3]d",2,2]}`,
			array(4, "time"), array(4, "x"), i)
	}
	o := newOrigin(t, files)
	list := make([]Piece, pieces+more)
	for i := range list {
		url := fmt.Sprintf("%s/f%d.json", o.URL, i)
		list[i] = Piece{Name: url, Open: func(ctx context.Context) (*Source, error) {
			return OpenSource(ctx, url, &SourceOptions{Adapters: hasty(remote.Options{})})
		}}
	}
	must.Set(t, &maxKept, maxKept)
	for _, kept := range []int64{maxKept, 0} {
		maxKept = kept
		db := openDB(t, linkOptions(t, t.TempDir()))
		must.Get(appendAll(db, "time", true, ImportOptions{Validate: ValidateNone}, list[:pieces]...))(t)
		asked, sets := 0, 0
		for _, q := range o.requests() {
			if strings.HasSuffix(q, ".json") || strings.Contains(q, ".json ") {
				sets++
				continue
			}
			if asked++; !strings.HasPrefix(q, "GET /f") || !strings.HasSuffix(q, " 0-7") {
				t.Errorf("asked %s", q)
			}
		}
		if asked != pieces || sets != 2*pieces { // each is opened twice
			t.Errorf("%d requests for %d files, %d for the sets", asked, pieces, sets)
		}
		opts := linkOptions(t, t.TempDir())
		opts.Adapters, opts.Follow.Allow = hasty(remote.Options{}), []string{o.URL + "/"}
		closeChecked(t, db)
		// What is there is read once, however many pieces it is compared with.
		db = openAt(t, db.Dir(), opts)
		o.requests()
		must.Get(appendAll(db, "time", true, ImportOptions{Validate: ValidateNone}, list[pieces:]...))(t)
		read := 0
		for _, q := range o.requests() {
			if q == "GET /f0 0-3" {
				read++
			}
		}
		if read != 1 {
			t.Errorf("x was read %d times", read)
		}
		a := array8(t, db, "time")
		for i, v := range a {
			if int(v) != i || len(a) != 4*(pieces+more) {
				t.Fatalf("time is %v", a)
			}
		}
		o.requests()
	}
}

// array8 reads an array of bytes.
func array8(t *testing.T, db *DB, path string) []byte {
	t.Helper()
	a := array(t, at(t, db, ""), path)
	b := make([]byte, a.Shape()[0])
	must.Do(t, a.ReadBytes(bg, zarr.Sel(), b))
	return b
}
