package jinja

import (
	"fmt"
	"maps"
	"strings"

	"github.com/zarrdb/zarrdb/kv/redact"
)

// MaxSource is the longest source of a template, in bytes.
const MaxSource = 1 << 16

// Markup reports whether a text has anything that Jinja2 would not print as
// it stands, line ends aside.
func Markup(s string) bool { return nextTag(s) >= 0 }

// nextTag finds the first opening delimiter.
func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return -1
}

// Scope holds the names that templates may use. The zero Scope is empty and
// ready. It must not be changed while others compile with it.
type Scope struct {
	names map[string]symbol
	vars  int
	// free says that unknown names become variables, as in a function.
	free bool
}

// symbol is what a name stands for: a function, a variable or a constant.
type symbol struct {
	fn    *function
	slot  int // of a variable; -1 for a constant
	value Value
}

// function is a template whose names are the arguments of a call.
type function struct {
	body *Template
	args map[string]int // name -> slot
}

func (s *Scope) define(name string, sym symbol) error {
	if _, ok := s.names[name]; ok {
		return fmt.Errorf("name %q is defined twice", clip(name))
	}
	if s.names == nil {
		s.names = map[string]symbol{}
	}
	s.names[name] = sym
	return nil
}

// Const defines a name with a fixed value.
func (s *Scope) Const(name string, v Value) error {
	return s.define(name, symbol{slot: -1, value: v})
}

// Var defines a name whose value is given at each rendering. The n-th
// variable of a scope is the n-th value that [Template.Append] takes.
func (s *Scope) Var(name string) error {
	if err := s.define(name, symbol{slot: s.vars}); err != nil {
		return err
	}
	s.vars++
	return nil
}

// Func defines a function: source is rendered with the arguments of each
// call, which are given by name, and sees no other names.
func (s *Scope) Func(name, source string) error {
	inner := Scope{free: true}
	body, err := inner.Compile(source)
	if err != nil {
		return err
	}
	f := &function{body: body, args: map[string]int{}}
	for arg, sym := range inner.names {
		f.args[arg] = sym.slot
	}
	return s.define(name, symbol{fn: f, slot: -1})
}

// Clone returns a copy that can be extended on its own.
func (s *Scope) Clone() *Scope {
	return &Scope{names: maps.Clone(s.names), vars: s.vars}
}

// Template is a compiled template. It is immutable and safe for concurrent
// use.
type Template struct {
	parts []part
}

// part is text or, if it has one, the value of an expression.
type part struct {
	text string
	expr expr
}

// Compile parses a source. As in Jinja2, line ends become "\n" and one at the
// end does not count.
func (s *Scope) Compile(source string) (*Template, error) {
	if len(source) > MaxSource {
		return nil, fmt.Errorf("template of %d bytes: at most %d are allowed", len(source), MaxSource)
	}
	src := strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	p := parser{scope: s, src: strings.TrimSuffix(src, "\n")}
	t, word := p.template()
	if word != "" {
		p.fail(fmt.Errorf(`%q without "if"`, word))
	}
	if p.err != nil {
		return nil, fmt.Errorf("template %q: %w", clip(redact.URL(source)), p.err)
	}
	return t, nil
}

// Append appends the rendered template to dst. vars are the values of the
// variables of the scope that it was compiled with, in the order of their
// definition; they are not kept.
func (t *Template) Append(dst []byte, vars []Value) ([]byte, error) {
	from := len(dst)
	for i := range t.parts {
		if p := &t.parts[i]; p.expr.eval == nil {
			dst = append(dst, p.text...)
		} else {
			v, err := p.expr.eval(vars)
			if err != nil {
				return dst, err
			}
			dst = v.appendStr(dst)
		}
		if len(dst)-from > MaxOutput {
			return dst, errOutput
		}
	}
	return dst, nil
}

// render is the rendered template as a value.
func (t *Template) render(vars []Value) (Value, error) {
	b, err := t.Append(nil, vars)
	return Str(string(b)), err
}
