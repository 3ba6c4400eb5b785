package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxDepth bounds how deep expressions and blocks nest.
const maxDepth = 64

// parser compiles a template in one pass. After an error its token is an end,
// so that all levels return.
type parser struct {
	scope *Scope
	src   string // not read yet
	close string // what ends the tag being read
	tok   token
	count int  // tokens of the tag
	open  bool // the tag names a variable
	depth int
	size  int // of constant text
	err   error
}

// fail keeps the first error.
func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.tok = token{}
}

// skip reads over a name or operator, if it is the next one.
func (p *parser) skip(text string) bool {
	if p.tok.kind != tWord || p.tok.text != text {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(text string) {
	if !p.skip(text) {
		p.fail(fmt.Errorf("%v instead of %q", p.tok, text))
	}
}

// template reads up to the end of the source or to else or endif, which it
// returns; what follows that word is then not read yet. As in Jinja2, a "-" beside
// a delimiter removes white space beyond it.
func (p *parser) template() (t *Template, word string) {
	t = &Template{}
	for p.err == nil {
		at := nextTag(p.src)
		if at < 0 {
			p.text(t, p.src)
			p.src = ""
			break
		}
		text, tag := p.src[:at], p.src[at+1]
		p.src = p.src[at+2:]
		if strings.HasPrefix(p.src, "-") {
			text, p.src = strings.TrimRightFunc(text, isSpace), p.src[1:]
		}
		p.text(t, text)
		p.count, p.open = 0, false
		switch tag {
		case '{':
			p.close = "}}"
			p.advance()
			p.output(t)
		case '%':
			p.close = "%}"
			p.advance()
			switch word := p.tok.text; {
			case p.skip("if"):
				t.parts = append(t.parts, part{expr: p.conditional()})
			case word == "else" || word == "endif":
				p.advance()
				return t, word
			default:
				p.fail(unsupported("statement %v", p.tok))
			}
		default:
			p.fail(unsupported("a comment"))
		}
	}
	return t, ""
}

// text adds constant text.
func (p *parser) text(t *Template, s string) {
	if p.size += len(s); p.size > MaxSource+MaxOutput {
		p.fail(errOutput)
		return
	}
	if s != "" {
		t.parts = append(t.parts, part{text: s})
	}
}

// end expects the end of the tag.
func (p *parser) end() {
	if p.tok.kind != tEnd {
		p.fail(unsupported("%v behind a value", p.tok))
	}
}

// output reads the inside of {{ }}. What depends on no variable is evaluated
// now; if that fails, the rendering will, unless it is in a branch not taken.
func (p *parser) output(t *Template) {
	e := p.expr()
	if p.end(); p.err != nil {
		return
	}
	if !p.open {
		if v, err := e.eval(nil); err == nil {
			p.text(t, v.str())
			return
		}
	}
	t.parts = append(t.parts, part{expr: e})
}

// conditional reads from behind the word if to endif.
func (p *parser) conditional() expr {
	p.deeper()
	defer func() { p.depth-- }()
	test := p.condition()
	p.end()
	then, word := p.template()
	other := &Template{}
	if word == "else" {
		p.end()
		other, word = p.template()
	}
	if p.end(); word != "endif" {
		p.fail(errors.New(`"if" without "endif"`))
	}
	return choice(expr{eval: then.render}, test, expr{eval: other.render})
}

// condition reads a test: a value, or two to compare.
func (p *parser) condition() condition {
	a, op := p.operation(0), p.tok.text
	if p.tok.kind != tWord || !slices.Contains(comparisons, op) {
		return truth(a)
	}
	p.advance()
	return compared(op, a, p.operation(0))
}

func (p *parser) deeper() {
	if p.depth++; p.depth > maxDepth {
		p.fail(errors.New("nested too deep"))
	}
}

// expr reads an expression, perhaps "a if b else c".
func (p *parser) expr() expr {
	p.deeper()
	defer func() { p.depth-- }()
	e := p.operation(0)
	if p.skip("if") {
		test := p.condition()
		p.expect("else")
		e = choice(e, test, p.expr())
	}
	return e
}

// levels are the binary operators, loosest first. All group from the left.
var levels = [...][]string{{"+", "-"}, {"~"}, {"*", "//", "%"}, {"**"}}

func (p *parser) operation(level int) expr {
	if level == len(levels) {
		return p.filtered()
	}
	e := p.operation(level + 1)
	for p.tok.kind == tWord && slices.Contains(levels[level], p.tok.text) {
		op := p.tok.text
		p.advance()
		e = binary(op, e, p.operation(level+1))
	}
	return e
}

// filtered reads an operand with its filters.
func (p *parser) filtered() expr {
	e := p.signed()
	for p.skip("|") {
		name := p.tok
		f, ok := filters[name.text]
		if !ok || name.kind != tWord {
			p.fail(unsupported("filter %v", name))
			return e
		}
		p.advance()
		args := []expr{e}
		if p.skip("(") {
			list, _ := p.list()
			args = append(args, list...)
		}
		if n := len(args) - 1; n > f.most {
			p.fail(unsupported("filter %v with %d arguments", name, n))
		}
		e = apply(f.fn, args...)
	}
	return e
}

// signed reads an operand with its signs.
func (p *parser) signed() expr {
	if p.skip("-") {
		return apply(negative, p.signed())
	}
	return p.primary()
}

// list reads from behind "(" to ")". comma tells (a,) from (a).
func (p *parser) list() (items []expr, comma bool) {
	for p.err == nil && !p.skip(")") {
		items = append(items, p.expr())
		if !p.skip(",") {
			p.expect(")")
			return items, comma
		}
		comma = true
	}
	return items, comma
}

func (p *parser) primary() expr {
	t := p.tok
	switch {
	case t.kind == tConst:
		p.advance()
		return constant(t.value)
	case t.isName():
		p.advance()
		return p.name(t.text)
	case p.skip("("):
		items, comma := p.list()
		if len(items) == 1 && !comma {
			return items[0]
		}
		tuple := func([]Value) (Value, error) { return Value{}, unsupported("a tuple here") }
		return expr{eval: tuple, items: items}
	}
	p.fail(unsupported("%v in place of a value", t))
	return expr{}
}

func (p *parser) name(name string) expr {
	sym, ok := p.scope.names[name]
	if !ok {
		if !p.scope.free {
			p.fail(fmt.Errorf("%q is not defined", clip(name)))
			return expr{}
		}
		sym = symbol{slot: p.scope.vars}
		p.scope.define(name, sym)
		p.scope.vars++
	}
	switch {
	case sym.fn != nil:
		return p.call(name, sym.fn)
	case sym.slot >= 0:
		p.open = true
		return variable(sym.slot)
	}
	return constant(sym.value)
}

// call reads the arguments of a template, which all have names. Those that the
// template does not use are left out.
func (p *parser) call(name string, f *function) expr {
	if !p.skip("(") {
		p.fail(fmt.Errorf("%q is a template with names of its own: call it", clip(name)))
	}
	args := make([]expr, len(f.args))
	for p.err == nil && !p.skip(")") {
		arg := p.tok
		if p.advance(); !arg.isName() || !p.skip("=") {
			p.fail(fmt.Errorf("arguments of template %q need names", clip(name)))
		}
		value := p.expr()
		if slot, ok := f.args[arg.text]; ok {
			if args[slot].eval != nil {
				p.fail(fmt.Errorf("argument %q is given twice", clip(arg.text)))
			}
			args[slot] = value
		}
		if !p.skip(",") {
			p.expect(")")
			break
		}
	}
	for arg, slot := range f.args {
		if args[slot].eval == nil {
			p.fail(fmt.Errorf("template %q needs an argument %q", clip(name), clip(arg)))
		}
	}
	return apply(f.body.render, args...)
}
