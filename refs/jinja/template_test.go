package jinja

import (
	"encoding/json"
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"os"
	"regexp"
	"strings"
	"testing"
)

// rendered is what Jinja2 made of templates; testdata/generate.py writes it.
type rendered struct {
	Writer                      string
	Function                    map[string]string
	Constants                   map[string]any
	Variables                   map[string]any
	Hand, Refused, Random, Used []sample
}

type sample struct {
	Template string
	Text     *string // nil if Jinja2 refuses it
}

func load(t testing.TB) (rendered, *Scope, []Value) {
	t.Helper()
	b := must.Get(os.ReadFile("testdata/rendered.json"))(t)
	var r rendered
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.UseNumber()
	must.Do(t, dec.Decode(&r))
	var s Scope
	for name, text := range r.Function {
		must.Do(t, s.Func(name, text))
	}
	for name, v := range r.Constants {
		switch v := v.(type) {
		case nil, bool, []any:
			continue // there are no such values here
		case json.Number:
			if _, err := v.Int64(); err != nil {
				continue
			}
		}
		must.Do(t, s.Const(name, value(t, v)))
	}
	var vars []Value
	for _, name := range []string{"i", "j", "s"} {
		must.Do(t, s.Var(name))
		vars = append(vars, value(t, r.Variables[name]))
	}
	return r, &s, vars
}

func value(t testing.TB, v any) Value {
	switch v := v.(type) {
	case string:
		return Str(v)
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return Int(i)
		}
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

// TestRendered compares templates with what Jinja2 made of them: each is
// rendered to the same text or refused. All written by hand are rendered, and
// most in the language of the package: the rest leave 64 bits.
func TestRendered(t *testing.T) {
	r, s, vars := load(t)
	least := map[string]float64{"used": 0.9, "random": 0.05} // shares that are rendered
	refusal := regexp.MustCompile("not supported|not defined|beyond 64 bits|instead of|unexpected")
	for name, list := range map[string][]sample{"hand": r.Hand, "refused": r.Refused, "random": r.Random, "used": r.Used} {
		same := 0
		for _, c := range list {
			got, err := render(s, c.Template, vars)
			switch {
			case err == nil && c.Text == nil:
				t.Errorf("%s: %q gives %q, Jinja2 refuses it", name, c.Template, got)
			case err == nil && got != *c.Text:
				t.Errorf("%s: %q gives\n %q, want\n %q", name, c.Template, got, *c.Text)
			case err == nil:
				same++
			case c.Text != nil && (name == "hand" || !refusal.MatchString(err.Error())):
				t.Errorf("%s: %q: %v, want %q", name, c.Template, err, *c.Text)
			}
		}
		if share := float64(same) / float64(len(list)); share < least[name] || name == "refused" && same > 0 {
			t.Errorf("%s: %d of %d are rendered", name, same, len(list))
		}
	}
}

// TestBounds gives templates that ask for much; they must fail, and fast.
func TestBounds(t *testing.T) {
	long := strings.Repeat("x", MaxOutput)
	for _, source := range []string{
		"{{ 9 ** 9 ** 9 }}", "{{ 9 ** 99999999 }}",
		strings.Repeat("{% if 1 %}", 1000) + strings.Repeat("{% endif %}", 1000),
		"{{ '%999999999d' % 1 }}", "{{ '%.999999999f' % 1 }}",
		"{{ " + strings.Repeat("'%999d' % 1 ~ ", 70) + "1 }}", strings.Repeat("{{ '%999d' % 1 }}", 140), strings.Repeat("{{ '%999d' % i }}", 70),
		"{{ i * 9223372036854775807 }}", "{{ -9223372036854775807 - i }}", "{{ 9223372036854775807 + i }}", "{{ 9223372036854775808 }}",
		"{{ (-9223372036854775807 - 1) // -1 }}",
		"{{ 1" + strings.Repeat("+i", 2000) + " }}", "{{ " + strings.Repeat("-", 3000) + "1 }}",
		"{{ " + strings.Repeat("(", 1000) + strings.Repeat(")", 1000) + " }}", strings.Repeat("y", maxSource+1), long + "{{ 'x' }}",
	} {
		_, s, vars := load(t)
		if got, err := render(s, source, vars); err == nil {
			t.Errorf("%.80q gives %.80q", source, got)
		}
	}
}

func TestScope(t *testing.T) {
	var s Scope
	must.Do(t, errors.Join(s.Var("i"), s.Const("u", Str("a"))))
	c := s.Clone()
	if c.Var("i") == nil || c.Const("u", Str("")) == nil || c.Func("i", "") == nil {
		t.Error("a name is defined twice")
	}
	must.Do(t, c.Var("j"))
	if _, err := s.Compile("{{j}}"); err == nil {
		t.Error("a clone changes its origin")
	}
	tm := must.Get(c.Compile("{{u}}{{j}}{{i}}"))(t)
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
	must.Do(t, c.Func("h", "{{x}}{{y}}"))
	for _, source := range []string{"{{h}}", "{{h(1, 2)}}", "{{h(x=1)}}", "{{h(x=1, y=2, x=3)}}"} {
		if got, err := render(c, source, []Value{Int(1), Int(2)}); err == nil {
			t.Errorf("%q gives %q", source, got)
		}
	}
}

func TestMarkup(t *testing.T) {
	for s, want := range map[string]bool{"": false, "a{b}": false, "{": false, "a{": false, "{ {": false, "a{{": true, "{%": true, "{#": true, "{{{": true} {
		if Markup(s) != want {
			t.Errorf("Markup(%q) is %v", s, !want)
		}
	}
}

// FuzzTemplate looks for panics and unbounded output, and compares a template
// over variables with the same over constants.
func FuzzTemplate(f *testing.F) {
	r, _, _ := load(f)
	for _, c := range r.Hand {
		f.Add(c.Template, int64(3))
	}
	for _, c := range r.Random {
		f.Add(c.Template, int64(-2))
	}
	f.Fuzz(func(t *testing.T, source string, i int64) {
		vars := []Value{Int(i), Str("q7")}
		var open, closed Scope
		for k, name := range []string{"i", "s"} {
			must.Do(t, errors.Join(open.Var(name), closed.Const(name, vars[k])))
		}
		for _, s := range []*Scope{&open, &closed} {
			must.Do(t, s.Func("f", "{{c}}/{{d}}"))
		}
		a, errA := render(&open, source, vars)
		b, errB := render(&closed, source, nil)
		if (errA == nil) != (errB == nil) || errA == nil && a != b {
			t.Errorf("%q: %q, %v\nbut constant %q, %v", source, a, errA, b, errB)
		}
		if len(a) > MaxOutput {
			t.Errorf("%d bytes", len(a))
		}
	})
}
