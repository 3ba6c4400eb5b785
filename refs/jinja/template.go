package jinja

import (
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv/redact"
)

// MaxSource is the longest source of a template, in bytes.
const MaxSource = 1 << 16

// Markup reports whether a text has anything that Jinja2 would not print as
// it stands, line ends aside.
func Markup(s string) bool {
	for {
		i := strings.IndexByte(s, '{')
		if i < 0 || i+1 >= len(s) {
			return false
		}
		switch s[i+1] {
		case '{', '%', '#':
			return true
		}
		s = s[i+1:]
	}
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
	name string
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
	f := &function{name: name, body: body, args: map[string]int{}}
	for arg, sym := range inner.names {
		f.args[arg] = sym.slot
	}
	return s.define(name, symbol{fn: f, slot: -1})
}

// Clone returns a copy that can be extended on its own.
func (s *Scope) Clone() *Scope {
	c := &Scope{vars: s.vars, names: make(map[string]symbol, len(s.names))}
	for name, sym := range s.names {
		c.names[name] = sym
	}
	return c
}

// Template is a compiled template. It is immutable and safe for concurrent
// use.
type Template struct {
	parts []part
}

// part is text, or a value, or a conditional.
type part struct {
	text string
	expr node
	cond *conditional
}

type conditional struct {
	tests []node
	then  [][]part // one more than tests where there is an else
}

// Compile parses a source. What depends on no variable is evaluated now.
func (s *Scope) Compile(source string) (*Template, error) {
	if len(source) > MaxSource {
		return nil, fmt.Errorf("template of %d bytes: at most %d are allowed", len(source), MaxSource)
	}
	pieces, err := split(source)
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", clip(redact.URL(source)), err)
	}
	p := parser{scope: s, pieces: pieces}
	parts, word, err := p.parts(0)
	if err == nil && word != "" {
		err = fmt.Errorf("%q without %q", word, "if")
	}
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", clip(redact.URL(source)), err)
	}
	return &Template{parts: merge(parts)}, nil
}

// merge joins neighbouring texts.
func merge(parts []part) []part {
	var out []part
	for _, p := range parts {
		if p.expr == nil && p.cond == nil {
			if n := len(out); n > 0 && out[n-1].expr == nil && out[n-1].cond == nil {
				out[n-1].text += p.text
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// Text returns the text of a template that depends on no variable.
func (t *Template) Text() (string, bool) {
	switch {
	case len(t.parts) == 0:
		return "", true
	case len(t.parts) == 1 && t.parts[0].expr == nil && t.parts[0].cond == nil:
		return t.parts[0].text, true
	}
	return "", false
}

// Append appends the rendered template to dst. vars are the values of the
// variables of the scope that it was compiled with, in the order of their
// definition; they are not kept.
func (t *Template) Append(dst []byte, vars []Value) ([]byte, error) {
	return appendParts(dst, len(dst), t.parts, vars)
}

func appendParts(dst []byte, from int, parts []part, vars []Value) ([]byte, error) {
	for i := range parts {
		p := &parts[i]
		switch {
		case p.expr != nil:
			v, err := p.expr.eval(vars)
			if err != nil {
				return dst, err
			}
			dst = v.appendStr(dst)
		case p.cond != nil:
			branch, err := p.cond.choose(vars)
			if err != nil {
				return dst, err
			}
			if dst, err = appendParts(dst, from, branch, vars); err != nil {
				return dst, err
			}
		default:
			dst = append(dst, p.text...)
		}
		if len(dst)-from > MaxOutput {
			return dst, errOutput
		}
	}
	return dst, nil
}

func (c *conditional) choose(vars []Value) ([]part, error) {
	for i, test := range c.tests {
		v, err := test.eval(vars)
		if err != nil {
			return nil, err
		}
		if v.truth() {
			return c.then[i], nil
		}
	}
	if len(c.then) > len(c.tests) {
		return c.then[len(c.tests)], nil
	}
	return nil, nil
}
