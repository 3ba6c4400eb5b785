package refs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

func TestWriteJSONErrors(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		entries []refs.Entry
		last    error
		o       refs.WriteOptions
		want    error // nil: any
		key     string
	}{
		"unknown version":        {o: refs.WriteOptions{Version: 2}},
		"negative version":       {o: refs.WriteOptions{Version: -1}},
		"error of the entries":   {entries: []refs.Entry{ranged("a", 0, 1)}, last: boom, want: boom},
		"and without templates":  {entries: []refs.Entry{ranged("a", 0, 1)}, last: boom, o: refs.WriteOptions{Version: 1, NoTemplates: true}, want: boom},
		"error of the first run": {entries: []refs.Entry{ranged("a", 0, 1)}, last: boom, o: refs.WriteOptions{Version: 1}, want: boom},
		"no key":                 {entries: []refs.Entry{text("", "x")}, want: kv.ErrInvalidKey},
		"key leads out":          {entries: []refs.Entry{ranged("a/../b", 0, 1)}, want: kv.ErrInvalidKey, key: "a/../b"},
		"key is not text":        {entries: []refs.Entry{text("a\xff", "x")}, want: kv.ErrInvalidKey, key: "a\xff"},
		"key names the version":  {entries: []refs.Entry{text("version", "1")}, want: refs.ErrInvalid, key: "version"},
		"negative offset":        {entries: []refs.Entry{ranged("a", -1, 1)}, want: refs.ErrInvalid, key: "a"},
		"whole from an offset":   {entries: []refs.Entry{ranged("a", 1, refs.WholeFile)}, want: refs.ErrInvalid, key: "a"},
		"URL is not text":        {entries: []refs.Entry{{Key: "a", Reference: refs.Reference{URL: "\xff", Length: 1}}}, want: refs.ErrInvalid, key: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			err := refs.WriteJSON(io.Discard, sequence(c.entries, c.last), &c.o)
			t.Log(err)
			if err == nil || !errors.Is(err, c.want) && c.want != nil {
				t.Errorf("%v, want %v", err, c.want)
			}
			var ke *refs.KeyError
			if c.key != "" && (!errors.As(err, &ke) || ke.Key != c.key) {
				t.Errorf("%v is about %v, want %q", err, ke, c.key)
			}
		})
	}
}

// fullWriter has room for some bytes.
type fullWriter struct {
	left int
	err  error
}

func (w *fullWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return w.left, w.err
	}
	w.left -= len(p)
	return len(p), nil
}

// TestWriteJSONFaults has a set cut off at different places, also where nothing
// is left to write but what is in a buffer.
func TestWriteJSONFaults(t *testing.T) {
	boom := errors.New("boom")
	var set []refs.Entry
	for i := range 20_000 {
		set = append(set, ranged(fmt.Sprintf("a/%d", i), int64(i), 1))
	}
	for version := range 2 {
		o := &refs.WriteOptions{Version: version}
		var all bytes.Buffer
		must.Do(t, refs.WriteJSON(&all, sequence(set, nil), o))
		for _, room := range []int{0, 1 << 18, all.Len() - 1} {
			if err := refs.WriteJSON(&fullWriter{room, boom}, sequence(set, nil), o); !errors.Is(err, boom) {
				t.Errorf("version %d with room for %d bytes of %d: %v", version, room, all.Len(), err)
			}
		}
		if err := refs.WriteJSON(&fullWriter{all.Len(), boom}, sequence(set, nil), o); err != nil {
			t.Error(err)
		}
	}
}

// TestWriteJSONTexts looks at the bytes: other programs read them.
func TestWriteJSONTexts(t *testing.T) {
	whole := func(key, url string) refs.Entry {
		return refs.Entry{Key: key, Reference: refs.Reference{URL: url, Length: refs.WholeFile}}
	}
	data := func(key, s string, form refs.Form) refs.Entry {
		return refs.Entry{Key: key, Reference: refs.Reference{Data: []byte(s), Form: form}}
	}
	long := "s3://bucket/" + strings.Repeat("x", 40) + "/"
	for name, c := range map[string]struct {
		entries []refs.Entry
		o       refs.WriteOptions
		want    string
	}{
		"nothing":              {nil, refs.WriteOptions{}, "{}\n"},
		"nothing in version 1": {nil, refs.WriteOptions{Version: 1}, `{"version":1,"refs":{}}` + "\n"},
		"ranges": {[]refs.Entry{ranged("a", 9007199254740993, 9223372036854775807), ranged("b", 7, 0), ranged("c", 0, 0), whole("d", "u")}, refs.WriteOptions{},
			`"a":["s3://b/a",9007199254740993,9223372036854775807],"b":["s3://b/b",7,0],"c":["s3://b/c",0,0],"d":["u"]`},
		"keys and URLs": {[]refs.Entry{whole("é/漢\U0001f600", "u é%20?#\"\\\n\x01\x7f"), whole("\"\\", "{{u}}")}, refs.WriteOptions{},
			`"é/漢` + "\U0001f600" + `":["u é%20?#\"\\\n\u0001` + "\x7f" + `"],"\"\\":["{{u}}"]`},
		"texts": {[]refs.Entry{data("a", "a\tb\r\nc/é", refs.FormAuto), data("b", "\x00", refs.FormAuto), data("c", "\x00\x1f\x7f", refs.FormText), data("d", "\x7f", refs.FormAuto), data("e", "abc", refs.FormBase64), data("f", "a\xff", refs.FormText), data("g", "base64:", refs.FormText), data("h", "base64", refs.FormAuto), data("i", "", refs.FormAuto), data("j", "", refs.FormBase64)}, refs.WriteOptions{},
			`"a":"a\tb\r\nc/é","b":"base64:AA==","c":"\u0000\u001f` + "\x7f" + `","d":"base64:fw==","e":"base64:YWJj","f":"base64:Yf8=","g":"base64:YmFzZTY0Og==","h":"base64","i":"","j":"base64:"`},
		"markup": {[]refs.Entry{whole("a", "{{x}}'\\\n\r"), whole("b", "{%x%}"), data("c", "{{x}}", refs.FormAuto)}, refs.WriteOptions{Version: 1},
			`{"version":1,"refs":{"a":["{{x}}'\\\n\r"],"b":["{%x%}"],"c":"{{x}}"}}`},
		"markup beside templates": {[]refs.Entry{whole("a", "{{x}}'\\\n\r"), whole("b", long+"x"), whole("c", long+"x"), whole("d", long+"x")}, refs.WriteOptions{Version: 1},
			`{"version":1,"templates":{"a":"` + long + `x"},"refs":{"a":["{{'{{x}}\\'\\\\\\n\\r'}}"],"b":["{{a}}"],"c":["{{a}}"],"d":["{{a}}"]}}`},
		"a URL that repeats": {[]refs.Entry{ranged("a", 0, 1), whole("b", long+"a\"b"), whole("c", long+"a\"b"), whole("d", long+"a\"b")}, refs.WriteOptions{Version: 1},
			`{"version":1,"templates":{"a":"` + long + `a\"b"},"refs":{"a":["s3://b/a",0,1],"b":["{{a}}"],"c":["{{a}}"],"d":["{{a}}"]}}`},
		"a folder": {[]refs.Entry{whole("a", long+"\"x"), whole("b", long+"{y}"), whole("c", long+"é"), whole("d", long), whole("e", long[:len(long)-1]), whole("f", long+"z/")}, refs.WriteOptions{Version: 1},
			`{"version":1,"templates":{"a":"` + long + `"},"refs":{"a":["{{a}}\"x"],"b":["` + long + `{y}"],"c":["{{a}}é"],"d":["{{a}}"],"e":["` + long[:len(long)-1] + `"],"f":["` + long + `z/"]}}`},
		"a URL with markup that repeats": {[]refs.Entry{whole("b", long+"{{y}}"), whole("c", long+"{{y}}"), whole("d", long+"{{y}}")}, refs.WriteOptions{Version: 1},
			strings.ReplaceAll(`{"version":1,"refs":{"b":["U"],"c":["U"],"d":["U"]}}`, "U", long+"{{y}}")},
		"a URL with line ends that repeats": {[]refs.Entry{whole("b", long+"\r"), whole("c", long+"\r"), whole("d", long+"\n"), whole("e", long+"\n"), whole("f", long+"}"), whole("g", long+"{"), whole("h", long+"{")}, refs.WriteOptions{Version: 1},
			strings.ReplaceAll(`{"version":1,"refs":{"b":["U\r"],"c":["U\r"],"d":["U\n"],"e":["U\n"],"f":["U}"],"g":["U{"],"h":["U{"]}}`, "U", long)},
		"no templates": {[]refs.Entry{whole("b", long), whole("c", long), whole("d", long)}, refs.WriteOptions{Version: 1, NoTemplates: true},
			`{"version":1,"refs":{"b":["` + long + `"],"c":["` + long + `"],"d":["` + long + `"]}}`},
		"not worth it": {[]refs.Entry{whole("b", "s3://b/x"), whole("c", "s3://b/x"), whole("d", "s3://b/x")}, refs.WriteOptions{Version: 1},
			`{"version":1,"refs":{"b":["s3://b/x"],"c":["s3://b/x"],"d":["s3://b/x"]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			must.Do(t, refs.WriteJSON(&out, sequence(c.entries, nil), &c.o))
			want := c.want
			if !strings.HasPrefix(want, "{") {
				want = "{" + want + "}"
			}
			if got := out.String(); strings.ReplaceAll(got, "\n", "") != strings.TrimSuffix(want, "\n") {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			got := collect(t, refs.ReadJSON(t.Context(), kv.Bytes(out.Bytes()), nil))
			for i, e := range c.entries {
				if i >= len(got) || got[i].Key != e.Key || !sameReference(got[i].Reference, e.Reference) {
					t.Fatalf("it reads as %v", got)
				}
			}
		})
	}
}

// TestManyTemplates has more templates than letters, all of which save the same:
// each URL must be found again, in the same bytes whenever it is written.
func TestManyTemplates(t *testing.T) {
	for _, n := range []int{2, 52, 53, 105, 300} {
		var set []refs.Entry
		for i := range 4 * n {
			url := fmt.Sprintf("https://server.org/a/long/folder/file_%04d.nc", i%n)
			if i >= 3*n {
				url = fmt.Sprintf("https://server.org/a/long/other/%04d/%04d.nc", i/2, i)
			}
			set = append(set, refs.Entry{Key: fmt.Sprint("k", i), Reference: refs.Reference{URL: url, Offset: int64(i), Length: 1}})
		}
		var out, again, plain bytes.Buffer
		must.Do(t, errors.Join(
			refs.WriteJSON(&out, sequence(set, nil), &refs.WriteOptions{Version: 1}),
			refs.WriteJSON(&again, sequence(set, nil), &refs.WriteOptions{Version: 1}),
			refs.WriteJSON(&plain, sequence(set, nil), &refs.WriteOptions{Version: 1, NoTemplates: true})))
		if !bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Errorf("%d files: the same entries give other bytes", n)
		}
		if out.Len() >= plain.Len() || bytes.Contains(plain.Bytes(), []byte("templates")) {
			t.Errorf("%d files: %d bytes with templates, %d without", n, out.Len(), plain.Len())
		}
		got := collect(t, refs.ReadJSON(t.Context(), kv.Bytes(out.Bytes()), nil))
		if len(got) != len(set) {
			t.Fatalf("%d files: %d entries", n, len(got))
		}
		for i, e := range set {
			if got[i].Key != e.Key || !sameReference(got[i].Reference, e.Reference) {
				t.Fatalf("%d files: %v, want %v", n, got[i], e)
			}
		}
	}
}
