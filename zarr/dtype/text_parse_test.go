package dtype

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"math/rand/v2"
	"testing"
)

// TestParseJSON: what is printed for an element is read as the same element,
// apart from what the text does not say: which NaN, and unused bits.
func TestParseJSON(t *testing.T) {
	seed := must.Seed(t)
	r := rand.New(rand.NewPCG(seed, 9))
	for _, typ := range allTypes(t) {
		for range 100 {
			elem := randomElem(r, typ)
			line := must.Get(typ.AppendJSON(nil, elem))(t)
			got, err := typ.ParseJSON([]byte("x"), line)
			if err != nil || got[0] != 'x' {
				t.Fatalf("seed %d: %s %s: %x, %v", seed, typ, line, got, err)
			}
			again, err := typ.AppendJSON(nil, got[1:])
			if err != nil || !bytes.Equal(again, line) && !bytes.Contains(line, []byte(`\ud`)) {
				t.Fatalf("seed %d: %s %s comes back as %s, %v", seed, typ, line, again, err)
			}
			if !bytes.Contains(line, []byte("NaN")) && !bytes.Equal(got[1:], elem) && typ.Kind() != FixedUTF32 {
				t.Fatalf("seed %d: %s %s: %x is read as %x", seed, typ, line, elem, got[1:])
			}
		}
	}
	ragged := mustObject(t, `{"id":"vlen-array","dtype":"<i2"}`)
	for _, c := range []struct {
		typ        Type
		text, want string // want is hexadecimal
	}{
		{NewString(), ` "a\u00e9\n" `, "61c3a90a"},
		{NewString(), `""`, ""},
		{NewBytes(), `"base64:/wA="`, "ff00"},
		{NewBytes(), `"base64:"`, ""},
		{NewJSON(), ` {"a":[1,NaN]} `, hex.EncodeToString([]byte(`{"a":[1,NaN]}`))},
		{ragged, `[1, -1 ]`, "0100ffff"},
		{ragged, `[]`, ""},
		{mustV2(t, `"<f4"`), `"0x7fc00001"`, "0100c07f"},
		{mustV2(t, `"<f4"`), `1`, "0000803f"},
		{mustV2(t, `"<M8[s]"`), `"NaT"`, "0000000000000080"},
		{mustV2(t, `"|S3"`), `"base64:/w=="`, "ff0000"},
		{mustV2(t, `[["z","<i2",[2,2]],["u","|u1"]]`), `{"u":255,"z":[[1,2],[3,4]]}`, "0100020003000400ff"},
	} {
		got, err := c.typ.ParseJSON(nil, json.RawMessage(c.text))
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("%s %s: %x, %v", c.typ, c.text, got, err)
		}
	}
	for _, c := range []struct {
		typ  Type
		text string
	}{
		{NewString(), `1`}, {NewBytes(), `"abc"`}, {NewBytes(), `"base64:a"`}, {NewBytes(), `[1]`}, {NewJSON(), `{`}, {NewJSON(), ``}, {ragged, `1`}, {ragged, `[40000]`}, {ragged, `[[1]]`},
		{mustV2(t, `"|S3"`), `"base64:AAAAAA=="`}, {mustV2(t, `"|V3"`), `"base64:AAA="`}, {mustV2(t, `"|u1"`), `256`}, {mustV2(t, `"|u1"`), ``}, {Type{}, `1`},
		{mustV2(t, `[["z","<i2",[2,2]]]`), `{"z":[[1,2]]}`}, {mustV2(t, `[["z","<i2",[2,2]]]`), `{"z":[[1,2],[3]]}`}, {mustV2(t, `[["z","<i2"]]`), `{}`}, {mustV2(t, `[["z","<i2"]]`), `{"y":1}`}, {mustV2(t, `[["z","<i2"]]`), `[1]`},
	} {
		if got, err := c.typ.ParseJSON([]byte("x"), json.RawMessage(c.text)); !errors.Is(err, ErrValue) || string(got) != "x" {
			t.Errorf("%s %s: %q, %v", c.typ, c.text, got, err)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	for _, c := range [][2]string{{`"<f4"`, `"NaN"`}, {`"<c8"`, `[1.0,"-Infinity"]`}, {`"|S3"`, `"base64:/w=="`}, {`"<U3"`, `"aé"`}, {`"bool"`, "true"},
		{`[["z","<i2",[2,2]],["u","|u1"]]`, `{"z":[[1,2],[3,4]],"u":255}`}, {`{"id":"vlen-array","dtype":"<i2"}`, `[1,-1]`}, {`{"id":"vlen-utf8"}`, `"a\ud800"`},
		{`{"id":"vlen-bytes"}`, `"base64:AAA="`}, {`{"id":"json2"}`, `{"a":[NaN]}`}} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, typ, text string) {
		object, ok := ObjectV2(json.RawMessage(typ))
		if !ok {
			var err error
			if object, err = ParseV2(json.RawMessage(typ), Type{}); err != nil {
				return
			}
		}
		if object.Size() > 1<<16 {
			return
		}
		elem, err := object.ParseJSON(nil, json.RawMessage(text))
		if err != nil {
			return
		}
		line, err := object.AppendJSON(nil, elem)
		if err != nil {
			t.Fatalf("%s %s: %v", typ, text, err)
		}
		again, err := object.ParseJSON(nil, line)
		if err != nil {
			t.Fatalf("%s %s printed as %s: %v", typ, text, line, err)
		}
		if twice, err := object.AppendJSON(nil, again); err != nil || !bytes.Equal(twice, line) {
			t.Fatalf("%s %s printed as %s, then as %s: %v", typ, text, line, twice, err)
		}
	})
}
