package refs

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// wording is a text with markup and what it means, given the values of the
// dimensions.
type wording struct {
	source string
	value  func(vars map[string]any) string
}

func (w wording) then(o wording) wording {
	return wording{w.source + o.source, func(v map[string]any) string { return w.value(v) + o.value(v) }}
}

func plainly(s string) wording { return wording{s, func(map[string]any) string { return s }} }

// randomV1 is a random set of version 1 and, written out by loops, what it
// stands for.
type randomV1 struct {
	rnd  *rand.Rand
	text []byte
	want []Entry
	// plain and funcs are the templates: text, and what surrounds the
	// argument c.
	plain map[string]string
	funcs map[string][2]string
}

func (x *randomV1) noise() string {
	const letters = "abz019_-./ %#{}é\"\\'" // nothing of them is markup in this order
	var b strings.Builder
	for _, r := range letters {
		if x.rnd.IntN(5) == 0 {
			b.WriteRune(r)
		}
	}
	return b.String() + "~"
}

func (x *randomV1) space() string { return strings.Repeat(" ", x.rnd.IntN(3)) }

// wording makes a text that uses templates, and dimensions of which some are
// integers.
func (x *randomV1) wording(dims, ints []string) wording {
	w := plainly("u" + x.noise())
	for range x.rnd.IntN(4) {
		pick := func(list []string) string { return list[x.rnd.IntN(len(list))] }
		switch what := x.rnd.IntN(6); {
		case what == 0 && len(x.plain) > 0:
			name := pick(sortedKeys(x.plain))
			w = w.then(wording{"{{" + x.space() + name + x.space() + "}}", plainly(x.plain[name]).value})
		case what == 1 && len(x.funcs) > 0:
			name := pick(sortedKeys(x.funcs))
			f := x.funcs[name]
			if len(dims) > 0 && x.rnd.IntN(2) == 0 {
				dim := pick(dims)
				w = w.then(wording{"{{" + name + "(c=" + dim + ")}}", func(v map[string]any) string { return f[0] + fmt.Sprint(v[dim]) + f[1] }})
			} else {
				w = w.then(wording{"{{ " + name + "(c='te xt') }}", plainly(f[0] + "te xt" + f[1]).value})
			}
		case what == 2 && len(dims) > 0:
			dim := pick(dims)
			w = w.then(wording{"{{" + dim + "}}", func(v map[string]any) string { return fmt.Sprint(v[dim]) }})
		case what == 3 && len(ints) > 0:
			dim, k := pick(ints), x.rnd.Int64N(1000)
			w = w.then(wording{fmt.Sprintf("{{%s*%d+1}}", dim, k), func(v map[string]any) string { return fmt.Sprint(v[dim].(int64)*k + 1) }})
		case what == 4 && len(ints) > 0:
			dim := pick(ints)
			w = w.then(wording{"{{ '%03d' % " + dim + " }}", func(v map[string]any) string { return fmt.Sprintf("%03d", v[dim]) }})
		}
		w = w.then(plainly(x.noise()))
	}
	return w
}

func sortedKeys[T any](m map[string]T) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// generator makes an element of "gen" and appends what it stands for.
func (x *randomV1) generator(n int) string {
	var dims, ints, sources []string
	var values [][]any
	for d := range x.rnd.IntN(4) {
		name := fmt.Sprint("dim", d)
		var list []any
		if x.rnd.IntN(3) == 0 {
			var texts []string
			for range x.rnd.IntN(4) {
				v := any(fmt.Sprintf("v%d", x.rnd.IntN(9)))
				if x.rnd.IntN(2) == 0 {
					v = x.rnd.Int64N(100) - 50
				}
				list = append(list, v)
				b, _ := json.Marshal(v)
				texts = append(texts, string(b))
			}
			sources = append(sources, quoted(name)+": ["+strings.Join(texts, ",")+"]")
		} else {
			ints = append(ints, name)
			start, stop, step := x.rnd.Int64N(12)-6, x.rnd.Int64N(20)-8, x.rnd.Int64N(9)-4
			if step == 0 {
				step = 1
			}
			text := fmt.Sprintf(`"stop":%d`, stop)
			if x.rnd.IntN(3) > 0 {
				text = fmt.Sprintf(`"start": %d, `, start) + text
			} else {
				start = 0
			}
			if x.rnd.IntN(3) > 0 {
				text += fmt.Sprintf(`, "step": %d`, step)
			} else {
				step = 1
			}
			for v := start; step > 0 && v < stop || step < 0 && v > stop; v += step {
				list = append(list, v)
			}
			sources = append(sources, quoted(name)+": {"+text+"}")
		}
		dims, values = append(dims, name), append(values, list)
	}
	key := plainly(fmt.Sprintf("g%d", n))
	for _, d := range dims {
		key = key.then(wording{".{{" + d + "}}", func(v map[string]any) string { return "." + fmt.Sprint(v[d]) }})
	}
	url := x.wording(dims, ints)
	offset, length := wording{}, wording{}
	members := []string{`"key": ` + quoted(key.source), `"url": ` + quoted(url.source), `"dimensions": {` + strings.Join(sources, ",") + "}"}
	ranged := x.rnd.IntN(3) > 0
	if ranged {
		offset, length = plainly("7"), plainly(" 3 ")
		if len(ints) > 0 {
			d := ints[0]
			offset = wording{"{{(" + d + "+10)*100}}", func(v map[string]any) string { return fmt.Sprint((v[d].(int64) + 10) * 100) }}
		}
		members = append(members, `"offset": `+quoted(offset.source))
		if x.rnd.IntN(2) == 0 {
			members = append(members, `"length": 3`)
		} else {
			members = append(members, `"length": `+quoted(length.source))
		}
	}
	x.rnd.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })

	var each func(d int, vars map[string]any)
	each = func(d int, vars map[string]any) {
		if d < len(dims) {
			for _, v := range values[d] {
				vars[dims[d]] = v
				each(d+1, vars)
			}
			return
		}
		e := Entry{Key: key.value(vars), Reference: Reference{URL: url.value(vars), Length: WholeFile}}
		if ranged {
			fmt.Sscan(offset.value(vars), &e.Offset)
			e.Length = 3
		}
		x.want = append(x.want, e)
	}
	each(0, map[string]any{})
	return "{" + strings.Join(members, ",") + "}"
}

// reference makes a member of "refs" and appends what it stands for.
func (x *randomV1) reference(key string) string {
	e := Entry{Key: key}
	value := ""
	switch x.rnd.IntN(5) {
	case 0:
		text := "text {{a}} " + x.noise() // markup of a text means nothing
		e.Data, e.Form, value = []byte(text), FormText, quoted(text)
	case 1:
		e.Data, e.Form = []byte{0, 0xff, byte(x.rnd.IntN(256))}[:x.rnd.IntN(4)], FormBase64
		value = quoted("base64:" + base64.StdEncoding.EncodeToString(e.Data))
	case 2:
		w := x.wording(nil, nil)
		e.URL, e.Length, value = w.value(nil), WholeFile, "["+quoted(w.source)+"]"
	default:
		w := x.wording(nil, nil)
		e.URL, e.Offset, e.Length = w.value(nil), x.rnd.Int64N(1<<40), x.rnd.Int64N(1<<20)
		value = fmt.Sprintf("[%s , %d,%d]", quoted(w.source), e.Offset, e.Length)
	}
	x.want = append(x.want, e)
	return quoted(key) + ": " + value
}

func newRandomV1(rnd *rand.Rand) *randomV1 {
	x := &randomV1{rnd: rnd, plain: map[string]string{}, funcs: map[string][2]string{}}
	var templates, list []string
	for i := range rnd.IntN(4) {
		name, text := fmt.Sprint("t", i), x.noise()
		x.plain[name] = text
		templates = append(templates, quoted(name)+":"+quoted(text))
	}
	for i := range rnd.IntN(3) {
		name, f := fmt.Sprint("f", i), [2]string{"s3://" + x.noise(), x.noise()}
		x.funcs[name] = f
		templates = append(templates, quoted(name)+":"+quoted(f[0]+"{{c}}"+f[1]))
	}
	for i := range rnd.IntN(9) {
		// Some keys come again, also in "gen": the last one counts.
		list = append(list, x.reference([]string{fmt.Sprint("k", i), "k0", "g0", "g0.1"}[rnd.IntN(4)]))
	}
	members := []string{`"version": 1`, `"refs": {` + strings.Join(list, ",\n") + "}"}
	if len(templates) > 0 {
		members = append(members, `"templates":{`+strings.Join(templates, ",")+"}")
	}
	var gens []string
	for i := range rnd.IntN(3) {
		gens = append(gens, x.generator(i))
	}
	if len(gens) > 0 {
		members = append(members, `"gen": [`+strings.Join(gens, " , ")+"]")
	}
	rnd.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	x.text = []byte("{" + strings.Join(members, ",\n") + "}")
	return x
}

func equalEntries(a, b []Entry) bool {
	return slices.EqualFunc(a, b, func(a, b Entry) bool {
		return a.Key == b.Key && a.URL == b.URL && a.Offset == b.Offset && a.Length == b.Length && bytes.Equal(a.Data, b.Data)
	})
}

func readAllEntries(v []byte, o *ReadOptions) (out []Entry, err error) {
	for e, err := range ReadJSON(context.Background(), kv.Bytes(v), o) {
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
	return out, nil
}

// TestExpandModel compares the expansion of random sets with what plain loops
// make of them: as text in any window, compressed, and written out again.
func TestExpandModel(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	zw := must.Get(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstd.MinWindowSize)))(t)
	small := ReadOptions{window: 1 << 10} // larger ones take longer to make than to use
	entries := 0
	for i := range 200 {
		x := newRandomV1(rnd)
		entries += len(x.want)
		texts := map[string][]byte{"plain": x.text}
		if i%10 == 0 {
			var gz bytes.Buffer
			w := gzip.NewWriter(&gz)
			if _, err := w.Write(x.text); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			texts["gzip"], texts["zstd"] = gz.Bytes(), zw.EncodeAll(x.text, nil)
		}
		for name, text := range texts {
			got, err := readAllEntries(text, &ReadOptions{window: 1 + rnd.IntN(200)})
			if err != nil || !equalEntries(got, x.want) {
				t.Fatalf("%s: %v\n%s\ngot  %+v\nwant %+v", name, err, x.text, got, x.want)
			}
		}
		last := map[string]Reference{}
		for _, e := range x.want {
			last[e.Key] = e.Reference
		}
		for version := range 2 {
			var text bytes.Buffer
			must.Do(t, WriteJSON(&text, ReadJSON(t.Context(), kv.Bytes(x.text), &small), &WriteOptions{Version: version}))
			got, err := readAllEntries(text.Bytes(), &small)
			if err != nil || !equalEntries(got, x.want) {
				t.Fatalf("written as version %d: %v\n%s\n%s", version, err, x.text, text.Bytes())
			}
			view := must.Get(OpenJSON(t.Context(), kv.Bytes(text.Bytes()), &Options{Read: small}))(t)
			for key, want := range last {
				ref, err := view.Lookup(t.Context(), key)
				if err != nil || !equalEntries([]Entry{{key, ref}}, []Entry{{key, want}}) {
					t.Fatalf("%s is %+v, %v, want %+v in\n%s", key, ref, err, want, x.text)
				}
			}
		}
	}
	if entries < 1000 {
		t.Errorf("only %d entries", entries)
	}
}

// genSet is a set with one generator, of which one member is given.
func genSet(member string) string {
	members := map[string]string{"key": `"k{{i}}"`, "url": `"u"`, "dimensions": `{"i":{"stop":3}}`}
	if name, value, ok := strings.Cut(member, ": "); ok {
		members[name] = value
	} else {
		delete(members, member)
	}
	var list []string
	for _, name := range sortedKeys(members) {
		list = append(list, fmt.Sprintf("%q:%s", name, members[name]))
	}
	return `{"version":1,"refs":{},"gen":[{` + strings.Join(list, ",") + "}]}"
}

// TestGenRanges is about dimensions at the ends of what integers can be.
func TestGenRanges(t *testing.T) {
	for _, c := range []struct{ dimension, want string }{
		{`{"stop":0}`, ""}, {`{"start":3,"stop":3}`, ""}, {`{"start":4,"stop":3}`, ""}, {`{"stop":3,"step":-1}`, ""}, {`[]`, ""},
		{`{"start":5,"stop":0,"step":-2}`, "5 3 1"}, {`{"start":4,"stop":0,"step":-2}`, "4 2"}, {`{"start":1,"stop":8,"step":3}`, "1 4 7"},
		{`{"start":9223372036854775806,"stop":9223372036854775807}`, "9223372036854775806"},
		{`{"start":-9223372036854775808,"stop":9223372036854775807,"step":9223372036854775807}`, "-9223372036854775808 -1 9223372036854775806"},
		{`{"start":9223372036854775807,"stop":-9223372036854775808,"step":-9223372036854775808}`, "9223372036854775807 -1"},
		{`[1,"b",-2]`, "1 b -2"},
	} {
		got, err := readAllEntries([]byte(genSet(`dimensions: {"i":`+c.dimension+"}")), nil)
		var keys []string
		for _, e := range got {
			keys = append(keys, strings.TrimPrefix(e.Key, "k"))
		}
		if text := strings.Join(keys, " "); err != nil || text != c.want {
			t.Errorf("%s: %q, %v, want %q", c.dimension, text, err, c.want)
		}
	}
}

// TestGenRefused is about generators that are no good, or stand for too much.
func TestGenRefused(t *testing.T) {
	must.Set(t, &maxListed, 10)
	for _, c := range []struct {
		member string
		want   error
	}{
		{"key", ErrInvalid}, {"url", ErrInvalid}, {"dimensions", ErrInvalid},
		{"key: null", ErrInvalid}, {"key: []", ErrInvalid}, {"url: {}", ErrInvalid}, {"url: true", ErrInvalid},
		{"offset: 1", ErrInvalid}, {"length: 1", ErrInvalid}, {`offset: null, "length": 1`, ErrInvalid},
		{`offset: "{{i-1}}", "length": 1`, ErrInvalid}, {`offset: 1, "length": "{{i-1}}"`, ErrInvalid}, {`offset: "x", "length": 1`, ErrInvalid},
		{`offset: 1.5, "length": 1`, ErrInvalid}, {`offset: 1, "length": "9223372036854775808"`, ErrInvalid},
		{`url: ""`, ErrInvalid}, {`url: "{% if i > 0 %}u{% endif %}"`, ErrInvalid}, {`url: "{{j}}"`, ErrInvalid},
		{`key: "../k{{i}}"`, ErrInvalid}, {`key: "a/{% if i > 0 %}.{% endif %}/b"`, ErrInvalid}, {`key: "{{''}}"`, ErrInvalid}, {`key: "/k{{i}}"`, ErrInvalid},
		{"dimensions: []", ErrInvalid}, {`dimensions: {"i":3}`, ErrInvalid}, {`dimensions: {"i":{}}`, ErrInvalid}, {`dimensions: {"i":null}`, ErrInvalid},
		{`dimensions: {"i":{"stop":null}}`, ErrInvalid}, {`dimensions: {"i":{"stop":1,"start":null}}`, ErrInvalid}, {`dimensions: {"i":{"stop":1,"step":null}}`, ErrInvalid},
		{`dimensions: {"i":{"stop":1.5}}`, ErrInvalid}, {`dimensions: {"i":{"stop":"3"}}`, ErrInvalid}, {`dimensions: {"i":{"stop":3,"step":0}}`, ErrInvalid},
		{`dimensions: {"i":[1,true]}`, ErrInvalid}, {`dimensions: {"i":[1,null]}`, ErrInvalid}, {`dimensions: {"i":[1,2.5]}`, ErrInvalid}, {`dimensions: {"i":[[]]}`, ErrInvalid},
		{`dimensions: {"i":[9223372036854775808]}`, ErrInvalid}, {`dimensions: {"i":[1e999]}`, ErrInvalid},
		{`dimensions: {"i":{"stop":3},"i":{"stop":2}}`, ErrInvalid},
		{`dimensions: {"i":[0,1,2,3,4,5],"j":[0,1,2,3,4]}`, ErrLimit},
		{`dimensions: {"i":{"stop":101}}`, ErrLimit}, {`dimensions: {"i":{"stop":11},"j":{"stop":10}}`, ErrLimit},
		{`dimensions: {"i":{"stop":4294967296},"j":{"stop":4294967296}}`, ErrLimit},
		{`dimensions: {"i":{"stop":1000},"j":{"stop":1000},"l":{"stop":1000}}`, ErrLimit},
		{`dimensions: {"i":{"start":-9223372036854775808,"stop":9223372036854775807}}`, ErrLimit},
	} {
		got, err := readAllEntries([]byte(genSet(c.member)), &ReadOptions{MaxGenerated: 100})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.member, err, c.want)
		}
		if c.want == ErrLimit && len(got) > 0 {
			t.Errorf("%s: %d entries came before the refusal", c.member, len(got))
		}
	}
	// A dimension of no value makes all others irrelevant.
	if got, err := readAllEntries([]byte(genSet(`dimensions: {"i":{"stop":1000},"j":{"stop":0}}`)), &ReadOptions{MaxGenerated: 100}); err != nil || len(got) > 0 {
		t.Errorf("%d entries, %v", len(got), err)
	}
	// All generators together are bounded, and counted before the first of them.
	const two = `{"version":1,"refs":{},"gen":[{"key":"a{{i}}","url":"u","dimensions":{"i":{"stop":60}}},{"key":"b{{i}}","url":"u","dimensions":{"i":{"stop":%d}}}]}`
	if got, err := readAllEntries(fmt.Appendf(nil, two, 40), &ReadOptions{MaxGenerated: 100}); err != nil || len(got) != 100 {
		t.Errorf("%d entries, %v", len(got), err)
	}
	if got, err := readAllEntries(fmt.Appendf(nil, two, 41), &ReadOptions{MaxGenerated: 100}); !errors.Is(err, ErrLimit) || len(got) != 0 {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

// TestGenCancelled ends what stands for millions of references.
func TestGenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range ReadJSON(ctx, kv.Bytes([]byte(genSet(`dimensions: {"i":{"stop":10000000}}`))), nil) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		cancel()
		n++
	}
	if n == 0 || n > 10000 {
		t.Errorf("%d entries after the end", n)
	}
}
