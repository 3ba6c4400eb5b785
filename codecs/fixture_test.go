package codecs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// fixture is an array of a directory store, read with as little as possible:
// regular chunks, and keys as the metadata says.
type fixture struct {
	store        string // directory of the array
	shape, chunk []int
	typ          dtype.Type
	fill         []byte
	chain        codecs.Chain
	bound        *codecs.Bound
	prefix, sep  string
	v2           bool
}

// arrayJSON is what is read of either kind of metadata.
type arrayJSON struct {
	Shape     []int           `json:"shape"`
	DataType  json.RawMessage `json:"data_type"`
	FillValue json.RawMessage `json:"fill_value"`
	Codecs    json.RawMessage `json:"codecs"`
	Grid      struct {
		Configuration struct {
			ChunkShape []int `json:"chunk_shape"`
		} `json:"configuration"`
	} `json:"chunk_grid"`
	Keys json.RawMessage `json:"chunk_key_encoding"`

	Chunks     []int           `json:"chunks"`
	Dtype      json.RawMessage `json:"dtype"`
	Order      string          `json:"order"`
	Filters    json.RawMessage `json:"filters"`
	Compressor json.RawMessage `json:"compressor"`
	Separator  string          `json:"dimension_separator"`
}

// openFixture parses and binds the array in a directory.
func openFixture(dir string, reg *codecs.Registry) (*fixture, error) {
	f := &fixture{store: dir}
	raw, err := os.ReadFile(filepath.Join(dir, "zarr.json"))
	if err != nil {
		f.v2 = true
		if raw, err = os.ReadFile(filepath.Join(dir, ".zarray")); err != nil {
			return nil, err
		}
	}
	var m arrayJSON
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	f.shape = m.Shape
	if f.v2 {
		err = f.parseV2(&m, reg)
	} else {
		err = f.parseV3(&m, reg)
	}
	if err != nil {
		return nil, err
	}
	f.bound, err = f.chain.Bind(codecs.Rep{Type: f.typ, Shape: f.chunk, Fill: f.fill})
	return f, err
}

func (f *fixture) parseV3(m *arrayJSON, reg *codecs.Registry) (err error) {
	f.chunk, f.prefix, f.sep = m.Grid.Configuration.ChunkShape, "c", "/"
	if f.chunk == nil {
		return errUnsupported
	}
	var keys struct {
		Name          string `json:"name"`
		Configuration struct {
			Separator string `json:"separator"`
		} `json:"configuration"`
	}
	if json.Unmarshal(m.Keys, &keys) == nil {
		if keys.Name == "v2" {
			f.prefix, f.sep = "", "."
		}
		if keys.Configuration.Separator != "" {
			f.sep = keys.Configuration.Separator
		}
	}
	if f.typ, err = dtype.ParseV3(m.DataType); err != nil {
		return err
	}
	if f.fill, err = f.typ.ParseFillV3(m.FillValue); err != nil {
		return err
	}
	f.chain, err = reg.ParseV3(m.Codecs)
	return err
}

func (f *fixture) parseV2(m *arrayJSON, reg *codecs.Registry) (err error) {
	f.chunk, f.sep = m.Chunks, "."
	if m.Separator != "" {
		f.sep = m.Separator
	}
	var object dtype.Type
	var filters []json.RawMessage
	if json.Unmarshal(m.Filters, &filters) == nil && len(filters) > 0 {
		object, _ = dtype.ObjectV2(filters[0])
	}
	if f.typ, err = dtype.ParseV2(m.Dtype, object); err != nil {
		return err
	}
	if f.fill, _, err = f.typ.ParseFillV2(m.FillValue); err != nil {
		return err
	}
	f.chain, err = reg.ParseV2(codecs.V2{Type: f.typ, Order: m.Order, Rank: len(m.Shape), Filters: m.Filters, Compressor: m.Compressor})
	return err
}

var errUnsupported = errors.New("not a fixture for this test")

// key returns the path of a chunk.
func (f *fixture) key(at []int) string {
	parts := make([]string, 0, len(at)+1)
	if f.prefix != "" {
		parts = append(parts, f.prefix)
	}
	for _, i := range at {
		parts = append(parts, strconv.Itoa(i))
	}
	if len(at) == 0 && f.prefix == "" {
		parts = append(parts, "0")
	}
	return filepath.Join(f.store, filepath.FromSlash(strings.Join(parts, f.sep)))
}

// walk calls fn for every chunk of the grid, with where it begins, the extent
// of what lies inside the array, and its stored bytes, nil without any.
func (f *fixture) walk(fn func(start, count []int, stored []byte) error) error {
	rank := len(f.shape)
	at := make([]int, rank)
	for _, n := range f.shape {
		if n == 0 {
			return nil
		}
	}
	for {
		start, count := make([]int, rank), make([]int, rank)
		for d := range at {
			start[d] = at[d] * f.chunk[d]
			count[d] = min(f.chunk[d], f.shape[d]-start[d])
		}
		stored, err := os.ReadFile(f.key(at))
		if errors.Is(err, os.ErrNotExist) {
			stored, err = nil, nil
		}
		if err == nil {
			err = fn(start, count, stored)
		}
		if err != nil {
			return err
		}
		d := rank - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d]*f.chunk[d] < f.shape[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return nil
		}
	}
}

func product(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// strides returns those of an array in C order.
func strides(shape []int, size int) []int {
	s := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		s[d] = size
		size *= shape[d]
	}
	return s
}

// read returns the elements of the whole array, put in place by DecodeInto.
func (f *fixture) read() ([]byte, error) {
	size := f.typ.Size()
	for n, d := 1, 0; d < len(f.shape); d++ {
		if n *= f.shape[d]; n < 0 || n > 1<<28 || f.shape[d] > 1<<28 {
			return nil, fmt.Errorf("array of shape %v", f.shape)
		}
	}
	all := make([]byte, product(f.shape)*size)
	to := codecs.Dst{Data: all, Strides: strides(f.shape, size)}
	err := f.walk(func(start, count []int, stored []byte) error {
		part := to
		for d, n := range start {
			part.Offset += n * part.Strides[d]
		}
		if stored == nil {
			codecs.FillStrided(part, count, f.fill, size)
			return nil
		}
		return f.bound.DecodeInto(stored, codecs.Box{Start: make([]int, len(count)), Count: count}, part)
	})
	return all, err
}

// readVariable returns the elements of the whole array one by one, in C order.
func (f *fixture) readVariable() ([][]byte, error) {
	items := make([][]byte, product(f.shape))
	at := strides(f.shape, 1)
	err := f.walk(func(start, count []int, stored []byte) error {
		n := product(count)
		var v dtype.Variable
		if stored != nil {
			box := codecs.Box{Start: make([]int, len(count)), Count: count}
			block, err := f.bound.AppendBox(t0, nil, codecs.Bytes(stored), box)
			if err != nil {
				return err
			}
			if v, err = dtype.OpenVariable(block, n); err != nil {
				return err
			}
		}
		step := strides(count, 1)
		for i := range n {
			to, rest := 0, i
			for d := range count {
				to += (start[d] + rest/step[d]) * at[d]
				rest %= step[d]
			}
			items[to] = f.fill
			if stored != nil {
				items[to] = v.At(i)
			}
		}
		return nil
	})
	return items, err
}

// expectation is what an expect.json says of one array.
type expectation struct {
	Kind    string            `json:"kind"`
	Writer  string            `json:"writer"`
	Store   string            `json:"store"`
	Path    string            `json:"path"`
	Sum     string            `json:"sha256_c_order_le"`
	OrSum   string            `json:"or_sha256_c_order_le"`
	Values  []json.RawMessage `json:"values_c_order"`
	Outcome string            `json:"outcome"`
	Must    string            `json:"must"`
}

func readExpectation(dir string) (e expectation, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, "expect.json"))
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal(raw, &e)
}

// check compares what is read with what must be.
func (f *fixture) check(e expectation) error {
	if !f.typ.Variable() {
		data, err := f.read()
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); e.Sum != "" && got != e.Sum && got != e.OrSum {
			return fmt.Errorf("values differ: sha256 is %s, want %s (%d bytes)", got, e.Sum, len(data))
		}
		return nil
	}
	items, err := f.readVariable()
	if err != nil {
		return err
	}
	if len(items) != len(e.Values) {
		return fmt.Errorf("%d elements, want %d", len(items), len(e.Values))
	}
	for i, item := range items {
		var want any
		if err := json.Unmarshal(e.Values[i], &want); err != nil {
			return err
		}
		got := any(string(item))
		switch f.typ.Kind() {
		case dtype.Bytes:
			got = "base64:" + base64.StdEncoding.EncodeToString(item)
		case dtype.JSON:
			if err := json.Unmarshal(item, &got); err != nil {
				return err
			}
		case dtype.Ragged:
			line, err := f.typ.AppendJSON(nil, item)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(line, &got); err != nil {
				return err
			}
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) && (want != nil || len(item) > 0) {
			return fmt.Errorf("element %d is %s, want %s", i, a, b)
		}
	}
	return nil
}

// TestFixtures reads what other implementations wrote; each expect.json names
// the writer. The environment variable ZARRDB_FIXTURES may name a larger
// collection, where codecs that are not known are passed over.
func TestFixtures(t *testing.T) {
	root, all := os.Getenv("ZARRDB_FIXTURES"), false
	if root == "" {
		root, all = filepath.Join("testdata", "fixtures"), true
	}
	reg := builtin.Registry()
	for _, area := range []string{"v3", "v2", "corrupt"} {
		dirs, err := filepath.Glob(filepath.Join(root, area, "*"))
		if err != nil || len(dirs) == 0 {
			t.Fatal("no fixtures in", root)
		}
		for _, dir := range dirs {
			t.Run(area+"/"+filepath.Base(dir), func(t *testing.T) { testFixture(t, dir, reg, all) })
		}
	}
}

func testFixture(t *testing.T, dir string, reg *codecs.Registry, all bool) {
	e, err := readExpectation(dir)
	if err != nil || e.Store == "" || strings.HasSuffix(e.Store, ".zip") || e.Kind != "array" && e.Kind != "corrupt" {
		t.Skip("not a single array")
	}
	store := filepath.Join(dir, e.Store)
	if _, err := os.Stat(filepath.Join(store, e.Path)); err == nil {
		store = filepath.Join(store, e.Path)
	}
	f, err := openFixture(store, reg)
	if err == nil {
		if e.Kind == "corrupt" && e.Sum == "" {
			_, err = f.read()
			if f.typ.Variable() {
				_, err = f.readVariable()
			}
		} else {
			err = f.check(e)
		}
	}
	switch {
	case !all && (errors.Is(err, errUnsupported) || errors.Is(err, os.ErrNotExist) || errors.Is(err, codecs.ErrUnknown)):
		t.Skip(err)
	case e.Outcome == "error":
		if err == nil {
			t.Fatal("read, but must fail:", e.Must)
		}
		if all && !errors.Is(err, codecs.ErrCorrupt) && !errors.Is(err, codecs.ErrConfig) {
			t.Error("neither ErrCorrupt nor ErrConfig:", err)
		}
	case e.Outcome == "either":
	case err != nil:
		t.Fatal(err)
	}
}
