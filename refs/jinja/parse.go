package jinja

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxDepth  = 64   // of nested expressions and blocks
	maxTokens = 2000 // of a template
)

// tokens matches the next token of a tag.
var tokens = regexp.MustCompile(`^(?s:[\pL_][\pL\p{Nd}_]*|[0-9][0-9A-Za-z_.]*|'(?:[^'\\]|\\[\\'"nrt])*'|"(?:[^"\\]|\\[\\'"nrt])*"|//|\*\*|[=!<>]=|-?[%}]\}|.)`)

var unescaper = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\"`, `"`, `\n`, "\n", `\r`, "\r", `\t`, "\t")

var reserved = []string{"true", "false", "none", "True", "False", "None", "not", "and", "or", "if", "else", "in", "is"}

// Reserved reports whether a word belongs to the language and cannot be a name.
func Reserved(word string) bool { return slices.Contains(reserved, word) }

func isName(token string) bool {
	r, _ := utf8.DecodeRuneInString(token)
	return (r == '_' || unicode.IsLetter(r)) && !Reserved(token)
}

// parser compiles a template in one pass. After an error its token and the rest of the
// source are empty, so that all levels return.
type parser struct {
	scope *Scope
	src   string // not read yet
	tok   string
	count int // tokens
	depth int
	err   error
}

// fail keeps the first error.
func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.tok, p.src = "", ""
}

func (p *parser) next() {
	if p.count++; p.count > maxTokens {
		p.fail(errors.New("template with too many words and operators"))
		return
	}
	p.src = strings.TrimLeftFunc(p.src, unicode.IsSpace)
	p.tok = tokens.FindString(p.src)
	p.src = p.src[len(p.tok):]
}

// skip reads over a token, if it is the next one.
func (p *parser) skip(token string) bool {
	if p.tok != token {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(token string) {
	if !p.skip(token) {
		p.fail(unsupported("%s in place of %q", quoted(p.tok), token))
	}
}

// end expects the end of a tag, and does not read beyond.
func (p *parser) end(delimiter string) {
	if p.tok != delimiter {
		p.fail(unsupported("%s in place of %q", quoted(p.tok), delimiter))
	}
}

// enter counts a level of nesting. The caller calls the result when the level ends.
func (p *parser) enter() (leave func()) {
	if p.depth++; p.depth > maxDepth {
		p.fail(errors.New("nested too deep"))
	}
	return func() { p.depth-- }
}

// template reads to the end of the source, or of the block that it is in.
func (p *parser) template(inBlock bool) *Template {
	defer p.enter()()
	t := &Template{}
	for p.err == nil {
		at := nextTag(p.src)
		if at < 0 {
			break
		}
		text, tag := p.src[:at], p.src[at:at+2]
		p.src = p.src[at+2:]
		t.text(text)
		if strings.HasPrefix(p.src, "-") || strings.HasPrefix(p.src, "+") {
			p.fail(unsupported("white space control with %q", tag+p.src[:1]))
		}
		switch p.next(); {
		case tag == "{{":
			t.parts = append(t.parts, p.value())
			p.end("}}")
		case tag == "{#":
			p.fail(unsupported("a comment"))
		case inBlock && p.skip("endif"):
			p.end("%}")
			return t
		case p.skip("if"):
			test := p.test()
			p.end("%}")
			block := p.template(true)
			t.parts = append(t.parts, func(vars []Value) (Value, error) {
				if ok, err := test(vars); err != nil || !ok {
					return Value{}, err
				}
				return block.render(vars)
			})
		default:
			p.fail(unsupported("statement %s", quoted(p.tok)))
		}
	}
	if inBlock {
		p.fail(errors.New(`"if" without "endif"`))
	}
	t.text(p.src)
	return t
}

func (t *Template) text(s string) {
	if s != "" {
		t.parts = append(t.parts, constant(Str(s)))
	}
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

// test reads a value, or two that are compared.
func (p *parser) test() func(vars []Value) (bool, error) {
	a, op, b := p.value(), p.tok, constant(Int(0))
	if slices.Contains(comparisons, op) {
		p.next()
		b = p.value()
	} else {
		op = "!="
	}
	return func(vars []Value) (bool, error) {
		v, err := a(vars)
		if err != nil {
			return false, err
		}
		w, err := b(vars)
		if err != nil {
			return false, err
		}
		return compare(op, v, w)
	}
}

// levels are the binary operators, loosest first. All group from the left.
var levels = [...][]string{{"+", "-"}, {"~"}, {"*", "//", "%"}, {"**"}}

func (p *parser) value() expr {
	defer p.enter()()
	return p.operation(0)
}

func (p *parser) operation(level int) expr {
	if level == len(levels) {
		return p.filtered()
	}
	e := p.operation(level + 1)
	for slices.Contains(levels[level], p.tok) {
		op := p.tok
		p.next()
		e = binary(op, e, p.operation(level+1))
	}
	return e
}

// binary is an operator with two operands.
func binary(op string, left, right expr) expr {
	return func(vars []Value) (Value, error) {
		a, err := left(vars)
		if err != nil {
			return a, err
		}
		b, err := right(vars)
		if err != nil {
			return b, err
		}
		return operate(op, a, b)
	}
}

// filtered reads an operand with its filters.
func (p *parser) filtered() expr {
	e := p.signed()
	for p.skip("|") {
		switch {
		case p.skip("upper"):
			e = upper(e)
		case p.skip("format"):
			p.expect("(")
			e = binary("format", e, p.value())
			p.expect(")")
		default:
			p.fail(unsupported("filter %s", quoted(p.tok)))
		}
	}
	return e
}

// signed reads an operand with its signs.
func (p *parser) signed() expr {
	defer p.enter()()
	if p.skip("-") {
		return binary("-", constant(Int(0)), p.signed())
	}
	return p.primary()
}

func (p *parser) primary() expr {
	t := p.tok
	switch {
	case p.skip("("):
		e := p.value()
		p.expect(")")
		return e
	case isName(t):
		p.next()
		return p.name(t)
	case len(t) >= 2 && (t[0] == '\'' || t[0] == '"'):
		p.next()
		return constant(Str(unescaper.Replace(t[1 : len(t)-1])))
	case t != "" && '0' <= t[0] && t[0] <= '9':
		i, ok, err := ParseInt(t)
		if err == nil && (!ok || len(t) > 1 && t[0] == '0') {
			err = unsupported("number %s", quoted(t))
		}
		if p.next(); err != nil {
			p.fail(err)
		}
		return constant(Int(i))
	case t == "'" || t == `"`:
		p.fail(unsupported("a string without end, or with an escape that is not one of \\\\ \\' \\\" \\n \\r \\t,"))
	}
	p.fail(unsupported("%s in place of a value", quoted(t)))
	return constant(Value{})
}

func (p *parser) name(name string) expr {
	sym, ok := p.scope.names[name]
	if !ok {
		if !p.scope.free {
			p.fail(fmt.Errorf("%s is not defined", quoted(name)))
			return constant(Value{})
		}
		sym = symbol{slot: p.scope.vars}
		_ = p.scope.Var(name)
	}
	switch {
	case sym.body != nil:
		return p.call(name, sym)
	case sym.slot >= 0:
		return func(vars []Value) (Value, error) { return vars[sym.slot], nil }
	}
	return constant(sym.value)
}

// call reads the arguments of a template, which all have names. Arguments that the
// template does not use are left out.
func (p *parser) call(name string, f symbol) expr {
	if !p.skip("(") {
		p.fail(fmt.Errorf("%s is a template with names of its own: call it", quoted(name)))
	}
	args := make([]expr, len(f.args))
	for p.err == nil && !p.skip(")") {
		arg := p.tok
		if p.next(); !isName(arg) || !p.skip("=") {
			p.fail(fmt.Errorf("arguments of template %s need names", quoted(name)))
		}
		value := p.value()
		if slot, ok := f.args[arg]; ok {
			if args[slot] != nil {
				p.fail(fmt.Errorf("argument %s is given twice", quoted(arg)))
			}
			args[slot] = value
		}
		if !p.skip(",") {
			p.expect(")")
			break
		}
	}
	for arg, slot := range f.args {
		if args[slot] == nil {
			p.fail(fmt.Errorf("template %s needs an argument %s", quoted(name), quoted(arg)))
		}
	}
	return func(vars []Value) (Value, error) {
		values := make([]Value, len(args))
		for i, a := range args {
			var err error
			if values[i], err = a(vars); err != nil {
				return Value{}, err
			}
		}
		return f.body.render(values)
	}
}
