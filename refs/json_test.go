package refs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// TestReadJSONRefuses is about sets that the grammar of JSON allows and the
// format does not, and about what would take too much.
func TestReadJSONRefuses(t *testing.T) {
	for _, c := range []struct {
		text string
		want error
	}{
		{`{"version":1,"refs":{},"refs":{}}`, ErrInvalid}, {`{"version":1,"version":1,"refs":{}}`, ErrInvalid},
		{`{"version":1,"gen":[],"refs":{},"gen":[]}`, ErrInvalid}, {`{"version":1,"templates":{},"templates":{}}`, ErrInvalid},
		{`{"version":1,"refs":{}} x`, ErrInvalid}, {`{"version":1,"refs":{}}{}`, ErrInvalid}, {`{"a":"b"}]`, ErrInvalid},
		{`{"version":1,"refs":[]}`, ErrInvalid}, {`{"version":1,"refs":null}`, ErrInvalid}, {`{"version":1,"gen":{}}`, ErrInvalid}, {`{"version":1,"templates":[]}`, ErrInvalid},
		{`{"version":1,"templates":{"a":null}}`, ErrInvalid}, {`{"version":1,"templates":{"a":1}}`, ErrInvalid}, {`{"version":1,"templates":{"a":"{{b"}}`, ErrInvalid},
		{`{"version":1.0}`, ErrInvalid}, {`{"version":"1"}`, ErrInvalid}, {`{"version":true}`, ErrInvalid}, {`{"version":0}`, ErrInvalid}, {`{"version":18446744073709551617}`, ErrInvalid},
		{`{"a":["u"],"version":1}`, ErrInvalid}, {`{"a":["u"],"version":"x"}`, ErrInvalid}, {`{"a":["u"],"version":["u"]}`, ErrInvalid}, {`{"refs":{"a":["{{b}}"]},"templates":{"b":""},"version":1}`, ErrInvalid},
		{`{"version":1,"refs":{"a":[""]}}`, ErrInvalid}, {`{"a":[""]}`, ErrInvalid}, {`{"a":["",1,2]}`, ErrInvalid},
		{`{"a":["u",1,2,3]}`, ErrInvalid}, {`{"a":["u",1,2,]}`, ErrInvalid}, {`{"a":["u",]}`, ErrInvalid}, {`{"a":["u" 1,2]}`, ErrInvalid},
		{`{"a":["u",1,9223372036854775808]}`, ErrInvalid}, {`{"a":["u",36893488147419103232,1]}`, ErrInvalid}, {`{"a":["u",1e3,1]}`, ErrInvalid}, {`{"a":["u",1.0,1]}`, ErrInvalid},
		{`{"a":["u",01,1]}`, ErrInvalid}, {`{"a":["u","1",1]}`, ErrInvalid}, {`{"a":["u",null,null]}`, ErrInvalid},
		{`{"a":{"b":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}}`, ErrInvalid},
		{`{"a":"` + strings.Repeat("x", 1<<16) + `"}`, ErrLimit}, {`{"version":1,"templates":{"a":"` + strings.Repeat("x", 1<<16) + `"}}`, ErrLimit},
		{`{"version":1,"templates":{"a":"` + strings.Repeat("x", 40000) + `"},"refs":{"k":["{{a}}{{a}}"]}}`, ErrInvalid},
		{`{"version":1,"templates":{"b":"y"},"refs":{"k":["{{a}}"]}}`, ErrInvalid}, {`{"version":1,"templates":{"true":"y"},"refs":{"k":["{{true}}"]}}`, ErrInvalid}, {`{"version":1,"templates":{"b":"y"},"refs":{"k":["{{a"]}}`, ErrInvalid},
		{"\ufeff\ufeff{}", ErrInvalid}, {"{\"a\":\"\xff\"}", ErrInvalid}, {"{\"a\":[\"u\xff\"]}", ErrInvalid}, {"{\"version\":1,\"templates\":{\"a\":\"\xff\"}}", ErrInvalid},
		{`{"./a":"x"}`, ErrInvalid}, {`{"a/./b":"x"}`, ErrInvalid}, {`{"a/..":"x"}`, ErrInvalid}, {`{"..":{}}`, ErrInvalid},
		{"", ErrInvalid}, {" ", ErrInvalid}, {"{", ErrInvalid}, {`{"a":["u",1`, ErrInvalid}, {`{"version":1,"refs":{"a":"b"}`, ErrInvalid}, {"null", ErrInvalid},
	} {
		for _, window := range []int{8, 1 << 12} {
			_, err := readAllEntries([]byte(c.text), &ReadOptions{MaxValue: 1 << 16, window: window})
			if !errors.Is(err, c.want) {
				t.Errorf("%.100q in a window of %d: %v, want %v", c.text, window, err, c.want)
			}
		}
	}
}

// TestReadJSONForms is about spellings that are not the usual ones.
func TestReadJSONForms(t *testing.T) {
	whole := func(key, url string) Entry { return Entry{key, Reference{URL: url, Length: WholeFile}} }
	data := func(key, s string) Entry { return Entry{key, Reference{Data: []byte(s)}} }
	for _, c := range []struct {
		text string
		want []Entry
	}{
		{"\ufeff{\"a\":[\"u\"]}", []Entry{whole("a", "u")}},
		// In version 0 braces mean nothing, and neither do the names of version 1.
		{`{"a":["{{u}}"],"refs":["v"]}`, []Entry{whole("a", "{{u}}"), whole("refs", "v")}},
		{`{"refs":["v"],"a":["{{u}}"]}`, []Entry{whole("refs", "v"), whole("a", "{{u}}")}},
		// Nor do they in a set of version 1 without templates.
		{`{"version":1,"refs":{"a":["{{u}}.nc"],"b":["{{u"]}}`, []Entry{whole("a", "{{u}}.nc"), whole("b", "{{u")}},
		{`{"templates":{"a":"b"}}`, []Entry{data("templates", `{"a":"b"}`)}},
		{`{"gen":"x","version":1,"refs":{"a":["u"]},"other":[{}],"gen":[]}`, nil}, // twice
		{`{"refs":{"a":["{{t}}{{t}}"]},"templates":{"t":"x"},"version":1}`, []Entry{whole("a", "xx")}},
		{`{"version":1,"other":{"refs":{"b":["u"]}},"refs":{"a":["u"]}}`, []Entry{whole("a", "u")}},
		{`{"version":1}`, []Entry{}},
		{`{"a":"base64:","b":"base64:QQ==","c":"Base64:QQ==","d":""}`, []Entry{data("a", ""), data("b", "A"), data("c", "Base64:QQ=="), data("d", "")}},
		{`{"a/":["u"],"b/":"x"}`, []Entry{whole("a/0", "u"), data("b/0", "x")}},
		// What is more than names in braces is for the template language: it
		// drops one line end behind the text, and has words of its own.
		{`{"version":1,"templates":{"t":"x"},"refs":{"a":["{{t}}y\n"],"b":["{{t}}\r\n"]}}`, []Entry{whole("a", "xy"), whole("b", "x")}},
		{`{"version":1,"templates":{"t":"x"},"refs":{"a":["{{t}}{% if 1 %}y{% endif %}"],"c":["{% if 1 %}y"]}}`, []Entry{whole("a", "xy"), whole("c", "{% if 1 %}y")}},
		{`{"version":1,"templates":{"t":"x","1":"z"},"refs":{"a":["{{t}}{{1}}"]}}`, []Entry{whole("a", "x1")}},
	} {
		for _, window := range []int{3, 1 << 12} {
			got, err := readAllEntries([]byte(c.text), &ReadOptions{window: window})
			switch {
			case c.want == nil && !errors.Is(err, ErrInvalid):
				t.Errorf("%s: %v, %v", c.text, got, err)
			case c.want != nil && (err != nil || !equalEntries(got, c.want)):
				t.Errorf("%s: %+v, %v, want %+v", c.text, got, err, c.want)
			}
		}
	}
}

// TestExpandKeepsForms writes values as they were spelled.
func TestExpandKeepsForms(t *testing.T) {
	const text = "{\n\"a\":\"base64:YWJj\",\n\"b\":\"abc\",\n\"c\":\"\\u0001\"\n}\n"
	var out strings.Builder
	if err := Expand(t.Context(), &out, kv.Bytes([]byte(text)), nil); err != nil || out.String() != text {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

// TestReadJSONCancelled ends a set in the middle of its text.
func TestReadJSONCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	set := []byte(`{"a":["u"]`)
	for i := range 1000 {
		set = fmt.Appendf(set, `,"a%d":["u",%d,1]`, i, i)
	}
	for _, err := range ReadJSON(ctx, kv.Bytes(append(set, '}')), &ReadOptions{window: 64}) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			return
		}
		cancel()
	}
	t.Error("the whole set was read")
}

// TestLongestKey is about the length that a table in memory can note.
func TestLongestKey(t *testing.T) {
	for _, key := range []string{strings.Repeat("k", maxKey), strings.Repeat("é", maxKey/2)} {
		view := must.Get(OpenJSON(t.Context(), kv.Bytes([]byte(`{"`+key+`":["u"],"k":["v"]}`)), nil))(t)
		if ref, err := view.Lookup(t.Context(), key); err != nil || ref.URL != "u" {
			t.Errorf("a key of %d bytes: %v, %v", len(key), ref, err)
		}
		if _, err := readAllEntries([]byte(`{"`+key+`kk":["u"]}`), nil); !errors.Is(err, ErrLimit) {
			t.Errorf("a key of %d bytes: %v", len(key)+2, err)
		}
	}
}

// TestBrokenStreams is about compressed sets that are cut, damaged, or want more
// memory than is sensible.
func TestBrokenStreams(t *testing.T) {
	text := []byte(`{"a":["u"],"b":"` + strings.Repeat("0123456789", 3000) + `"}`)
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	if _, err := w.Write(text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	z := must.Get(zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstd.MinWindowSize)))(t)
	zst := z.EncodeAll(text, nil)
	// A frame to be skipped may stand before the others.
	skipped := append([]byte{0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}, zst...)
	for name, b := range map[string][]byte{"gzip": gz.Bytes(), "zstd": zst, "zstd behind another frame": skipped} {
		if got, err := readAllEntries(b, nil); err != nil || len(got) != 2 {
			t.Errorf("%s: %d entries, %v", name, len(got), err)
		}
		flipped := bytes.Clone(b)
		flipped[len(b)-2] ^= 1
		for what, b := range map[string][]byte{"cut": b[:len(b)-1], "cut in the middle": b[:len(b)/2], "flipped": flipped} {
			if _, err := readAllEntries(b, nil); !errors.Is(err, ErrInvalid) || !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	// The header of a frame with a window of 2^41 bytes, and of one of 256 MiB.
	for _, window := range []byte{31 << 3, 18 << 3} {
		if _, err := readAllEntries([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, window, 1, 0, 0}, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("window %x: %v", window, err)
		}
	}
}

// A few KiB can inflate to text without end, also to text that is JSON.
func TestInflation(t *testing.T) {
	must.Set(t, &freeText, 4<<20)
	text := []byte(`{"version":1,"refs":{` + strings.Repeat(`"a":"x",`, 4<<20) + `"a":"x"}}`)
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	must.Get(w.Write(text))(t)
	must.Do(t, w.Close())
	var err error
	for _, e := range ReadJSON(context.Background(), kv.Bytes(gz.Bytes()), nil) {
		err = e
	}
	if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "gzip") {
		t.Errorf("%d bytes that inflate to %d: %v, want ErrLimit", gz.Len(), len(text), err)
	}
	freeText = int64(len(text)) + 1
	for _, err := range ReadJSON(context.Background(), kv.Bytes(gz.Bytes()), nil) {
		if err != nil {
			t.Fatalf("a set of which any may have the length: %v", err)
		}
	}
}
