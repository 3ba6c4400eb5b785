package npy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// values prints the elements of a file.
func values(t *testing.T, f *File) string {
	t.Helper()
	var list []string
	for p, size := f.Data, f.Type.Size(); len(p) > 0; p = p[size:] {
		v := must.Get(f.Type.AppendJSON(nil, p[:size]))(t)
		list = append(list, string(v))
	}
	return strings.Join(list, " ")
}

func TestReadNumPy(t *testing.T) {
	for name, want := range map[string]string{
		"aligned": `[2 3] {"a":0,"b":0.0,"c":[-5,-4],"d":{"x":9,"y":0}} {"a":1,"b":0.5,"c":[-3,-2],"d":{"x":9,"y":-1}} {"a":2,"b":1.0,"c":[-1,0],"d":{"x":9,"y":-2}} ` +
			`{"a":3,"b":1.5,"c":[1,2],"d":{"x":9,"y":-3}} {"a":4,"b":2.0,"c":[3,4],"d":{"x":9,"y":-4}} {"a":5,"b":2.5,"c":[5,6],"d":{"x":9,"y":-5}}`,
		"fields":  `[2] {"s":"base64:YWI=","u":"é","t":0,"z":[1.0,2.0],"q":true} {"s":"base64:","u":"` + "\U0001f600" + `b","t":1,"z":[-0.0,-1.0],"q":false}`,
		"fortran": "[2 3 4] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23",
		"scalar":  "[] 1.5", "empty": "[3 0] ", "generic": "[2] 1 2", "text": `[2] "a" "é€"`,
		"names": `[1] {"é":0,"q'\\":0}`, "titles": `[1] {"x":1,"y":2}`, "version2": "[3] 0 1 2",
	} {
		b := must.Get(os.ReadFile(filepath.Join("testdata", name+".npy")))(t)
		f, err := Read(bytes.NewReader(b), 1<<20)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(f.Shape, " ", values(t, f)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		// What is written is what numpy writes, apart from padding, byte order,
		// order of dimensions, titles and version.
		again := must.Get(AppendHeader(nil, f.Type, f.Shape))(t)
		if again = append(again, f.Data...); !bytes.Equal(again, b) && slices.Contains([]string{"scalar", "empty", "generic", "fields"}, name) {
			t.Errorf("%s: written as %q, was %q", name, again, b)
		}
		if g, err := Read(bytes.NewReader(again), 1<<20); err != nil || !g.Type.Equal(f.Type) || !bytes.Equal(g.Data, f.Data) {
			t.Errorf("%s: written as %q: %v", name, again, err)
		}
		for i := range b {
			if _, err := Read(bytes.NewReader(b[:i]), 1<<20); !errors.Is(err, ErrFormat) {
				t.Fatalf("%s without its end from %d: %v", name, i, err)
			}
		}
	}
}

func file(header string, data string) string {
	return magic + "\x01\x00" + string([]byte{byte(len(header)), byte(len(header) >> 8)}) + header + data
}

// described is a file of one-byte data with a descr.
func described(descr string) string {
	return file("{'descr': "+descr+", 'fortran_order': False, 'shape': (1,)}", strings.Repeat("\x00", 64))
}

func TestReadErrors(t *testing.T) {
	for _, text := range []string{
		"", "Not numbers", magic, magic + "\x01\x00", magic + "\x04\x00\x00\x00\x00\x00", magic + "\x02\x00\xff\xff\xff\xff",
		file("", ""), file("{", ""), file("{}", ""), file("{}}", ""), file("[]", ""),
		file("{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", "abc"),
		file("{'descr': '<i4', 'fortran_order': 0, 'shape': (1,)}", "abcd"),
		file("{'descr': '<i4', 'fortran_order': False, 'shape': 1}", "abcd"),
		file("{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}", "abcd"),
		file("{'descr': '<i4', 'fortran_order': False, 'shape': ('1',)}", "abcd"),
		file("{'descr': '<i4', 'fortran_order': False, 'shape': (1,), 'more': 1}", "abcd"),
		file("{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", "abcd"),
		file("{'descr': '<i4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "abcd"),
		file("{'descr': '<i4', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807)}", "abcd"),
		file("{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000,)}", "abcd"),
		file("{'descr': '|u1', 'fortran_order': False, 'shape': ("+strings.Repeat("1,", maxRank+1)+")}", "a"),
		described("'|O'"), described("'i4'"), described("'<i3'"), described("7"), described("'|V0'"), described("''"), described("'\\x'"), described("'<i4"),
		described("[]"), described("['<i4']"), described("[('a',)]"), described("[('a','<i4',(2,),1)]"), described("[(1,'<i4')]"), described("[('','|V3')]"), described("[('','<i4')]"),
		described("[('a','<i4',(0,))]"), described("[('a','<i4',('2',))]"), described("[('a','<i4',(2147483647,2147483647))]"), described("[('a','|u1',(2147483647,)),('b','|u1',(2147483647,))]"),
		described("[('a',[('b','|u1'),('','|V1')],(100000,))]"), described(strings.Repeat("[('a',", 100) + "'<i4'" + strings.Repeat(")]", 100)),
		described(strings.Repeat("(", 200) + "'<i4'" + strings.Repeat(")", 200)),
	} {
		f, err := Read(strings.NewReader(text), 1<<30)
		if !errors.Is(err, ErrFormat) {
			t.Errorf("%.120q: %v, %v", text, f, err)
		}
	}
	whole := file("{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", "abcd")
	if f, err := Read(strings.NewReader(whole), 3); !errors.Is(err, ErrFormat) {
		t.Errorf("over the limit: %v, %v", f, err)
	}
	broken := errors.New("broken")
	for i := range len(whole) {
		if _, err := Read(io.MultiReader(strings.NewReader(whole[:i]), iotest.ErrReader(broken)), 100); !errors.Is(err, broken) {
			t.Fatalf("at %d: %v", i, err)
		}
	}
}

func TestLiteral(t *testing.T) {
	for text, want := range map[string]string{
		` ( 1 , -2,) `: `npy.tuple{1, -2}`, `(1)`: `1`, `()`: `npy.tuple(nil)`, `[True, False,None]`: `npy.list{true, false, interface {}(nil)}`,
		`12L`: `12`, `u'a\x41\u00e9\n\\\'"'`: "\"aA\u00e9\\n\\\\'\\\"\"", `"'"`: `"'"`, `{'a': (), }`: `npy.dict{"a":npy.tuple(nil)}`,
	} {
		if v, err := literal(text); err != nil || fmt.Sprintf("%#v", v) != want {
			t.Errorf("%s: %#v, %v, want %s", text, v, err, want)
		}
	}
	for _, text := range []string{"", "(", "(1", "(1 2)", "[1}", "{1: 2}", "{'a'}", "{'a': 1 'b': 2}", "1 2", "a", "-", "99999999999999999999", `'\q'`, `'\x4'`, `'\ud800'`, `'\`, `'`, "1.5"} {
		if v, err := literal(text); !errors.Is(err, errLiteral) {
			t.Errorf("%s: %#v, %v", text, v, err)
		}
	}
}

// TestPadding compares removing padding with elements that were made without.
func TestPadding(t *testing.T) {
	seed := must.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		descr, size, keep := randomFields(r, 2)
		v, err := literal(descr)
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, descr, err)
		}
		l, err := parseDescr(v)
		if err != nil || l.size != int64(size) {
			t.Fatalf("seed %d: %s: size %d, want %d: %v", seed, descr, l.size, size, err)
		}
		data, want := make([]byte, 3*size), []byte(nil)
		for i := range data {
			if data[i] = byte(r.Uint32()); keep[i%size] {
				want = append(want, data[i])
			}
		}
		if got := l.pack(data); !bytes.Equal(got, want) || len(want) != 3*l.typ.Size() {
			t.Fatalf("seed %d: %s: %x, want %x", seed, descr, got, want)
		}
	}
}

// randomFields returns the descr of a structure and which of its bytes are no
// padding.
func randomFields(r *rand.Rand, depth int) (descr string, size int, keep []bool) {
	descr = "["
	for i := range 1 + r.IntN(4) {
		if r.IntN(3) == 0 {
			n := 1 + r.IntN(3)
			descr += fmt.Sprintf("('', '|V%d'), ", n)
			keep = append(keep, make([]bool, n)...)
		}
		elem, n, sub := "'|V3'", 3, []bool{true, true, true}
		if depth > 0 && r.IntN(2) == 0 {
			elem, n, sub = randomFields(r, depth-1)
		}
		count, shape := 1, ""
		if r.IntN(3) == 0 {
			count, shape = 6, ", (2, 3)"
		}
		descr += fmt.Sprintf("('f%d', %s%s), ", i, elem, shape)
		for range count {
			keep = append(keep, sub[:n]...)
		}
	}
	return descr + "]", len(keep), keep
}

func TestAppendHeader(t *testing.T) {
	if _, err := AppendHeader(nil, dtype.NewString(), nil); err == nil {
		t.Error("texts have a form")
	}
	fields := make([]dtype.Field, 5000)
	for i := range fields {
		fields[i] = dtype.Field{Name: fmt.Sprint("field ", i), Type: dtype.NewInt(8)}
	}
	wide := must.Get(dtype.NewStruct(fields))(t)
	for _, typ := range []dtype.Type{dtype.NewInt(8), dtype.NewBool(), wide} {
		for rank := range 5 {
			b, err := AppendHeader([]byte("x"), typ, make([]int64, rank))
			if err != nil || len(b)%align != 1 || b[len(b)-1] != '\n' {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
			if rank == 0 {
				b = append(b, make([]byte, typ.Size())...)
			}
			if f, err := Read(bytes.NewReader(b[1:]), 1<<20); err != nil || !f.Type.Equal(typ) || len(f.Shape) != rank {
				t.Errorf("%d: %v", rank, err)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	names, err := filepath.Glob("testdata/*.npy")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		b := must.Get(os.ReadFile(name))(f)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Read(bytes.NewReader(b), 1<<16)
		if err != nil {
			return
		}
		again, err := AppendHeader(nil, file.Type, file.Shape)
		if err != nil {
			t.Fatalf("%v: %v", file.Type, err)
		}
		g, err := Read(bytes.NewReader(append(again, file.Data...)), 1<<16)
		if err != nil || !bytes.Equal(g.Data, file.Data) || !slices.Equal(g.Shape, file.Shape) {
			t.Fatalf("%q is written as %q: %v", b, again, err)
		}
	})
}
