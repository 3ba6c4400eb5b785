package jinja

import (
	"errors"
	"fmt"
	"maps"
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

func (p *parser) deeper() {
	if p.depth++; p.depth > maxDepth {
		p.fail(errors.New("nested too deep"))
	}
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

func (p *parser) end() {
	if p.tok.kind != tEnd {
		p.fail(fmt.Errorf("unexpected %v", p.tok))
	}
}

// template reads up to the end of the source or to elif, else or endif, which
// it returns; what follows that word is then not read yet. As in Jinja2, a "-"
// beside a delimiter removes white space beyond it.
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
		case '#':
			p.comment()
		case '{':
			p.close = "}}"
			p.advance()
			p.output(t)
		default:
			p.close = "%}"
			p.advance()
			switch word := p.tok.text; {
			case p.skip("if"):
				t.parts = append(t.parts, part{expr: p.conditional()})
			case word == "elif" || word == "else" || word == "endif":
				p.advance()
				return t, word
			default:
				p.fail(unsupported("statement %v", p.tok))
			}
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

func (p *parser) comment() {
	comment, rest, found := strings.Cut(p.src, "#}")
	if !found {
		p.fail(errors.New("comment without end"))
	}
	if p.src = rest; strings.HasSuffix(comment, "-") {
		p.src = trimLeft(rest)
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

// conditional reads from behind the word if, or elif, to endif.
func (p *parser) conditional() expr {
	p.deeper()
	defer func() { p.depth-- }()
	test := p.operation(0) // as Jinja2: no "a if b" in here
	p.end()
	then, word := p.template()
	other := constant(Str(""))
	switch word {
	case "elif":
		other = p.conditional()
	case "else":
		p.end()
		var t *Template
		if t, word = p.template(); word != "endif" {
			p.fail(errors.New(`"else" without "endif"`))
		}
		other = expr{eval: t.render}
		p.end()
	case "endif":
		p.end()
	default:
		p.fail(errors.New(`"if" without "endif"`))
	}
	return choice(expr{eval: then.render}, test, other)
}

// expr reads an expression, perhaps "a if b else c".
func (p *parser) expr() expr {
	p.deeper()
	defer func() { p.depth-- }()
	e := p.operation(0)
	for p.skip("if") {
		test, other := p.operation(0), failing(errors.New(`"if" without "else" has no value`))
		if p.skip("else") {
			other = p.expr()
		}
		e = choice(e, test, other)
	}
	return e
}

// levels are the binary operators, loosest first. All group from the left, "**"
// too.
var levels = [...][]string{{"or"}, {"and"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}

const comparisons = 2

func (p *parser) operation(level int) expr {
	switch {
	case level == len(levels):
		return p.filtered()
	case level == comparisons && p.skip("not"):
		return apply(not, p.operation(level))
	}
	e := p.operation(level + 1)
	for n := 0; p.tok.kind == tWord && slices.Contains(levels[level], p.tok.text); n++ {
		if level == comparisons && n > 0 {
			p.fail(unsupported("a chain of comparisons"))
		}
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
		e = p.builtin("filter", filters, e)
	}
	for text, what := range map[string]string{"is": "a test", "in": `"in"`, "not": `"not in"`, "[": "a subscript", "(": "a call of a value"} {
		if p.tok.kind == tWord && p.tok.text == text {
			p.fail(unsupported("%s", what))
		}
	}
	return e
}

// signed reads an operand with its signs and methods.
func (p *parser) signed() expr {
	if p.skip("-") {
		return apply(negative, p.signed())
	}
	e := p.primary()
	for p.skip(".") {
		e = p.builtin("method", methods, e)
	}
	return e
}

// builtin reads a method from behind "." or a filter from behind "|".
func (p *parser) builtin(what string, all map[string]builtin, of expr) expr {
	name := p.tok
	b, ok := all[name.text]
	if !ok || name.kind != tWord {
		p.fail(unsupported("%s %v", what, name))
		return of
	}
	p.advance()
	args := []expr{of}
	if p.skip("(") {
		list, _ := p.list()
		args = append(args, list...)
	} else if what == "method" {
		p.fail(unsupported("method %v without a call", name))
	}
	if n := len(args) - 1; n < b.least || n > b.most {
		p.fail(unsupported("%s %v with %d arguments", what, name, n))
	}
	return apply(b.fn, args...)
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
		return expr{eval: failing(unsupported("a tuple here")).eval, items: items}
	case t.text == "[" || t.text == "{":
		p.fail(unsupported("a list or dictionary"))
	}
	p.fail(fmt.Errorf("%v instead of a value", t))
	return expr{}
}

func (p *parser) name(name string) expr {
	if p.skip("=") {
		p.fail(unsupported("argument %q with a name", clip(name)))
	}
	switch name {
	case "true", "True":
		return constant(boolean(true))
	case "false", "False":
		return constant(boolean(false))
	case "none", "None":
		p.fail(unsupported("%q", name))
		return expr{}
	}
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
// template does not use are evaluated all the same.
func (p *parser) call(name string, f *function) expr {
	if !p.skip("(") {
		p.fail(fmt.Errorf("%q is a template with names of its own: call it", clip(name)))
	}
	slots, args := maps.Clone(f.args), make([]expr, len(f.args))
	for p.err == nil && !p.skip(")") {
		arg := p.tok
		if p.advance(); !arg.isName() || !p.skip("=") {
			p.fail(fmt.Errorf("arguments of template %q need names", clip(name)))
		}
		slot, ok := slots[arg.text]
		if !ok {
			slot, args = len(args), append(args, expr{})
			slots[arg.text] = slot
		}
		if args[slot].eval != nil {
			p.fail(fmt.Errorf("argument %q is given twice", clip(arg.text)))
		}
		args[slot] = p.expr()
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
