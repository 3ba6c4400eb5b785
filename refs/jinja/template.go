package jinja

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/kv/redact"
)

const (
	// maxSource is the longest source of a template, in bytes.
	maxSource = 1 << 16
	// MaxOutput is the longest text that a template may make, in bytes.
	MaxOutput = 1 << 16
)

// Value is a string or an integer. The zero Value is the empty string.
type Value struct {
	s       string
	n       int64
	integer bool
}

// Str is a string, which should be UTF-8.
func Str(s string) Value { return Value{s: s} }

// Int is an integer.
func Int(i int64) Value { return Value{n: i, integer: true} }

func (v Value) kind() string {
	if v.integer {
		return "an integer"
	}
	return "a string"
}

func (v Value) text() string {
	if v.integer {
		return strconv.FormatInt(v.n, 10)
	}
	return v.s
}

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
// ready. It must not be changed while templates are compiled with it.
type Scope struct {
	names map[string]symbol
	vars  int
	// free says that unknown names become variables, as in a function.
	free bool
}

// symbol is a named function, variable or constant.
type symbol struct {
	body  *Template      // of a function
	args  map[string]int // of a function: name -> slot
	slot  int            // of a variable, else -1
	value Value          // of a constant
}

func (s *Scope) define(name string, sym symbol) error {
	if _, ok := s.names[name]; ok {
		return fmt.Errorf("name %s is defined twice", quoted(name))
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
	args := map[string]int{}
	for arg, sym := range inner.names {
		args[arg] = sym.slot
	}
	return s.define(name, symbol{body: body, args: args, slot: -1})
}

// Clone returns a copy that can be extended on its own.
func (s *Scope) Clone() *Scope {
	return &Scope{names: maps.Clone(s.names), vars: s.vars}
}

// Template is a compiled template. It is immutable and safe for concurrent use.
type Template struct {
	parts []expr
}

// expr is a compiled expression.
type expr func(vars []Value) (Value, error)

func constant(v Value) expr {
	return func([]Value) (Value, error) { return v, nil }
}

// Compile parses a source. As in Jinja2, line ends become "\n" and one at the
// end does not count.
func (s *Scope) Compile(source string) (*Template, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("template of %d bytes: at most %d are allowed", len(source), maxSource)
	}
	src := strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	p := parser{scope: s, src: strings.TrimSuffix(src, "\n")}
	t := p.template(false)
	if p.err != nil {
		return nil, fmt.Errorf("template %s: %w", quoted(redact.URL(source)), p.err)
	}
	return t, nil
}

// Append appends the rendered template to dst. vars are the values of the
// variables of the scope that it was compiled with, in the order of their
// definition; they are not kept.
func (t *Template) Append(dst []byte, vars []Value) ([]byte, error) {
	from := len(dst)
	for _, part := range t.parts {
		v, err := part(vars)
		if err != nil {
			return dst, err
		}
		if v.integer {
			dst = strconv.AppendInt(dst, v.n, 10)
		} else {
			dst = append(dst, v.s...)
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

var (
	errOutput  = fmt.Errorf("text longer than %d bytes", MaxOutput)
	errInteger = errors.New("integer beyond 64 bits")
)

// unsupported is the error for features that Jinja2 may know and this package does not.
func unsupported(format string, args ...any) error {
	return fmt.Errorf(format+" is not supported", args...)
}

// quoted quotes the beginning of a text in an error message.
func quoted(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

// ParseInt is int(s) of a decimal text, which may have a sign and white space
// around it. ok is false where it is no integer; an integer beyond 64 bits is an
// error.
func ParseInt(s string) (i int64, ok bool, err error) {
	i, err = strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, false, errInteger
	}
	return i, err == nil, nil
}
