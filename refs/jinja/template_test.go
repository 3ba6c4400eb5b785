package jinja

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// rendered is what Jinja2 made of templates; testdata/generate.py writes it.
type rendered struct {
	Writer       string
	Function     map[string]string
	Constants    map[string]any
	Variables    map[string]any
	Hand, Random []struct {
		Template string
		Text     *string
	}
}

func load(t testing.TB) (rendered, *Scope, []Value) {
	t.Helper()
	b, err := os.ReadFile("testdata/rendered.json")
	if err != nil {
		t.Fatal(err)
	}
	var r rendered
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.UseNumber()
	if err := dec.Decode(&r); err != nil {
		t.Fatal(err)
	}
	var s Scope
	for name, text := range r.Function {
		if err := s.Func(name, text); err != nil {
			t.Fatal(err)
		}
	}
	for name, v := range r.Constants {
		if err := s.Const(name, value(t, v)); err != nil {
			t.Fatal(err)
		}
	}
	var vars []Value
	for _, name := range []string{"i", "j", "s"} {
		if err := s.Var(name); err != nil {
			t.Fatal(err)
		}
		vars = append(vars, value(t, r.Variables[name]))
	}
	return r, &s, vars
}

func value(t testing.TB, v any) Value {
	switch v := v.(type) {
	case nil:
		return None()
	case bool:
		return Bool(v)
	case string:
		return Str(v)
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return Int(i)
		}
		f, err := v.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return Float(f)
	case []any:
		out := Value{kind: kList}
		for _, e := range v {
			out.list = append(out.list, value(t, e))
		}
		return out
	}
	t.Fatalf("%T", v)
	return Value{}
}

func render(s *Scope, source string, vars []Value) (string, error) {
	t, err := s.Compile(source)
	if err != nil {
		return "", err
	}
	b, err := t.Append(nil, vars)
	return string(b), err
}

// TestHand compares templates written by hand with Jinja2. Those that are
// refused here although Jinja2 renders them are listed.
func TestHand(t *testing.T) {
	refused := []string{
		"{{ {'a': 1} }}", "{{ u.upper() }}", "{{ range(3) }}", "{{ i is odd }}", "{{ f }}", "{{ i.real }}", "{{ u.__class__ }}",
		"{% if i %}{{ i }}{% else %}{{ nope }}{% endif %}",
		"{% for a in [1] %}{% endfor %}", "{% set a = 1 %}",
	}
	r, s, vars := load(t)
	for _, c := range r.Hand {
		got, err := render(s, c.Template, vars)
		switch {
		case c.Text == nil || slices.Contains(refused, c.Template):
			if err == nil {
				t.Errorf("%q gives %q, must be refused", c.Template, got)
			}
		case err != nil:
			t.Errorf("%q: %v, want %q", c.Template, err, *c.Text)
		case got != *c.Text:
			t.Errorf("%q gives\n %q, want\n %q", c.Template, got, *c.Text)
		}
	}
}

// TestRandom compares random expressions with Jinja2.
func TestRandom(t *testing.T) {
	r, s, vars := load(t)
	same, unsupported := 0, 0
	for _, c := range r.Random {
		got, err := render(s, c.Template, vars)
		switch {
		case err == nil && c.Text == nil:
			t.Errorf("%q gives %q, Jinja2 refuses it", c.Template, got)
		case err == nil && got != *c.Text:
			t.Errorf("%q gives %q, want %q", c.Template, got, *c.Text)
		case err == nil:
			same++
		case c.Text == nil || errors.Is(err, errInteger) || errors.Is(err, errOutput):
		case strings.Contains(err.Error(), "not supported"), strings.Contains(err.Error(), "not defined"):
			unsupported++
		default:
			t.Errorf("%q: %v, want %q", c.Template, err, *c.Text)
		}
	}
	if same < 2000 || unsupported > 50 {
		t.Errorf("%d templates are rendered, %d are not supported", same, unsupported)
	}
}

// TestBounds gives templates that ask for much; they must fail, and fast.
func TestBounds(t *testing.T) {
	long := strings.Repeat("x", MaxOutput)
	for _, source := range []string{
		"{{ 9 ** 9 ** 9 }}", "{{ 9 ** 99999999 }}", "{{ 'x' * 999999999 }}", "{{ '%999999999d' % 1 }}", "{{ '%.999999999f' % 1 }}",
		"{{ '{:999999999}'.format(1) }}", "{{ 'x'.zfill(999999999) }}", "{{ ('x' * 60000) | replace('x', 'yyyyyy') }}",
		"{{ ('x' * 60000) ~ ('x' * 60000) }}", "{{ 'x' * 60000 }}{{ 'x' * 60000 }}", "{{ i * 9223372036854775807 }}", "{{ -9223372036854775807 - i }}",
		"{{ 9223372036854775807 + i }}", "{{ 9223372036854775808 }}", "{{ (-9223372036854775807 - 1) // -1 }}", "{{ 1e300 | int }}", "{{ ('9' * 30) | int }}", "{{ 1" + strings.Repeat("+i", 2000) + " }}",
		"{{ " + strings.Repeat("(", 1000) + strings.Repeat(")", 1000) + " }}", "{{ " + strings.Repeat("-", 1000) + "1 }}",
		"{{ " + strings.Repeat("not ", 1000) + "1 }}", "{{ " + strings.Repeat("[", 1000) + " }}",
		strings.Repeat("{% if 1 %}", 1000) + strings.Repeat("{% endif %}", 1000), long + "{{ 'x' }}", "{{ '%s' % ('x' * 60000) ~ ('x' * 60000) }}",
	} {
		_, s, vars := load(t)
		if got, err := render(s, source, vars); err == nil {
			t.Errorf("%.80q gives %.80q", source, got)
		}
	}
}

func TestScope(t *testing.T) {
	var s Scope
	if err := errors.Join(s.Var("i"), s.Const("u", Str("a"))); err != nil {
		t.Fatal(err)
	}
	c := s.Clone()
	if c.Var("i") == nil || c.Const("u", None()) == nil || c.Func("i", "") == nil {
		t.Error("a name is defined twice")
	}
	if err := c.Var("j"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Compile("{{j}}"); err == nil {
		t.Error("a clone changes its origin")
	}
	tm, err := c.Compile("{{u}}{{j}}{{i}}")
	if err != nil {
		t.Fatal(err)
	}
	b, err := tm.Append([]byte("> "), []Value{Int(1), Int(2)})
	if err != nil || string(b) != "> a21" {
		t.Errorf("%q, %v", b, err)
	}
	if err := c.Func("f", "{{ a "); err == nil {
		t.Error("a broken function is defined")
	}
	if err := c.Func("g", "{{ f(x=1) }}"); err == nil {
		t.Error("a function calls another")
	}
}

func TestText(t *testing.T) {
	var s Scope
	if err := s.Var("i"); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]bool{"": true, "a": true, "a{{ 'b' }}{# c #}": true, "{{ i }}": false, "{% if i %}{% endif %}": false} {
		tm, err := s.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := tm.Text(); ok != want {
			t.Errorf("%q: Text reports %v", source, ok)
		}
	}
	for s, want := range map[string]bool{"": false, "a{b}": false, "{": false, "a{": false, "{ {": false, "a{{": true, "{%": true, "{#": true, "{{{": true} {
		if Markup(s) != want {
			t.Errorf("Markup(%q) is %v", s, !want)
		}
	}
}

// FuzzTemplate looks for panics and unbounded output, and compares a template
// over variables with the same over constants, which is folded.
func FuzzTemplate(f *testing.F) {
	r, _, _ := load(f)
	for _, c := range r.Hand {
		f.Add(c.Template, int64(3))
	}
	for _, c := range r.Random[:500] {
		f.Add(c.Template, int64(-2))
	}
	f.Fuzz(func(t *testing.T, source string, i int64) {
		vars := []Value{Int(i), Str("q7"), Float(float64(i) / 3)}
		var open, closed Scope
		for k, name := range []string{"i", "s", "x"} {
			if err := errors.Join(open.Var(name), closed.Const(name, vars[k])); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range []*Scope{&open, &closed} {
			if err := s.Func("f", "{{c}}/{{d}}"); err != nil {
				t.Fatal(err)
			}
		}
		a, errA := render(&open, source, vars)
		b, errB := render(&closed, source, nil)
		if (errA == nil) != (errB == nil) || errA == nil && a != b {
			t.Errorf("%q: %q, %v\nbut folded %q, %v", source, a, errA, b, errB)
		}
		if len(a) > MaxOutput {
			t.Errorf("%d bytes", len(a))
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	var s Scope
	if err := errors.Join(s.Const("u", Str("s3://bucket/p")), s.Var("i"), s.Var("j")); err != nil {
		b.Fatal(err)
	}
	for _, source := range []string{"{{u}}/f{{i}}.bin", "{{ (i * 2 + j) * 1000 }}", "{{ '%05d' % i }}"} {
		b.Run(source, func(b *testing.B) {
			tm, err := s.Compile(source)
			if err != nil {
				b.Fatal(err)
			}
			vars := []Value{Int(12345), Int(6)}
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				if buf, err = tm.Append(buf[:0], vars); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
