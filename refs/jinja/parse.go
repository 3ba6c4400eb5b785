package jinja

import (
	"errors"
	"fmt"
)

// maxDepth bounds how deep expressions and blocks nest.
const maxDepth = 64

var errDepth = errors.New("nested too deep")

type parser struct {
	scope  *Scope
	pieces []piece
	toks   []token // of the tag being read
	depth  int
}

// parts reads pieces up to the end or to elif, else or endif, which it
// returns; the tokens behind that word are then in p.toks.
func (p *parser) parts(level int) (out []part, word string, err error) {
	if level > maxDepth {
		return nil, "", errDepth
	}
	for len(p.pieces) > 0 {
		next := p.pieces[0]
		p.pieces = p.pieces[1:]
		switch p.toks = next.tokens; next.kind {
		case pieceText:
			out = append(out, part{text: next.text})
		case pieceExpr:
			pt, err := p.output()
			if err != nil {
				return nil, "", err
			}
			out = append(out, pt)
		case pieceBlock:
			word := p.toks[0].text
			if p.toks[0].kind != tName {
				return nil, "", fmt.Errorf("unexpected %v", p.toks[0])
			}
			p.toks = p.toks[1:]
			switch word {
			case "elif", "else", "endif":
				return out, word, nil
			case "if":
				pt, err := p.conditional(level)
				if err != nil {
					return nil, "", err
				}
				out = append(out, pt)
			default:
				return nil, "", fmt.Errorf("statement %q is not supported", clip(word))
			}
		}
	}
	return out, "", nil
}

// output reads the inside of {{ }}.
func (p *parser) output() (part, error) {
	n, err := p.tuple(false)
	if err != nil {
		return part{}, err
	}
	if err := p.end(); err != nil {
		return part{}, err
	}
	if c, ok := n.(constant); ok {
		text := c.v.str()
		if len(text) > MaxOutput {
			return part{}, errOutput
		}
		return part{text: text}, nil
	}
	return part{expr: n}, nil
}

// conditional reads from behind the word if to endif.
func (p *parser) conditional(level int) (part, error) {
	c := &conditional{}
	for word := "if"; word != "endif"; {
		if word != "else" {
			test, err := p.or() // as Jinja2: no "a if b" in here
			if err != nil {
				return part{}, err
			}
			c.tests = append(c.tests, test)
		}
		if err := p.end(); err != nil {
			return part{}, err
		}
		body, next, err := p.parts(level + 1)
		if err != nil {
			return part{}, err
		}
		if next == "" {
			return part{}, fmt.Errorf("%q without %q", "if", "endif")
		}
		if word == "else" && next != "endif" {
			return part{}, fmt.Errorf("%q after %q", next, "else")
		}
		c.then = append(c.then, merge(body))
		word = next
	}
	return part{cond: c}, p.end()
}

func (p *parser) end() error {
	if p.toks[0].kind != tEnd {
		return fmt.Errorf("unexpected %v", p.toks[0])
	}
	return nil
}

func (p *parser) next() token {
	t := p.toks[0]
	if t.kind != tEnd {
		p.toks = p.toks[1:]
	}
	return t
}

func (p *parser) is(k tokenKind, text string) bool {
	return p.toks[0].kind == k && p.toks[0].text == text
}

func (p *parser) skip(k tokenKind, text string) bool {
	if p.is(k, text) {
		p.toks = p.toks[1:]
		return true
	}
	return false
}

func (p *parser) expect(op string) error {
	if !p.skip(tOp, op) {
		return fmt.Errorf("%v instead of %q", p.toks[0], op)
	}
	return nil
}

// tuple reads one expression, or several with commas between them.
func (p *parser) tuple(parens bool) (node, error) {
	closing := func() bool { return p.toks[0].kind == tEnd || p.is(tOp, ")") }
	var items []node
	comma := false
	for !closing() {
		n, err := p.expr()
		if err != nil {
			return nil, err
		}
		items = append(items, n)
		if !p.skip(tOp, ",") {
			break
		}
		comma = true
	}
	if !comma {
		if len(items) == 1 {
			return items[0], nil
		}
		if !parens {
			return nil, fmt.Errorf("%v instead of an expression", p.toks[0])
		}
	}
	return fold(sequence{kTuple, items}, nil)
}

// expr reads an expression, perhaps "a if b else c".
func (p *parser) expr() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errDepth
	}
	defer func() { p.depth-- }()
	n, err := p.or()
	for err == nil && p.skip(tName, "if") {
		c := choice{then: n}
		if c.test, err = p.or(); err != nil {
			break
		}
		if p.skip(tName, "else") {
			c.other, err = p.expr()
		}
		n, err = fold(c, err)
	}
	return n, err
}

func (p *parser) or() (node, error)  { return p.logic("or", p.and) }
func (p *parser) and() (node, error) { return p.logic("and", p.not) }

func (p *parser) logic(word string, operand func() (node, error)) (node, error) {
	n, err := operand()
	for err == nil && p.skip(tName, word) {
		var right node
		right, err = operand()
		n, err = fold(logic{word == "or", n, right}, err)
	}
	return n, err
}

func (p *parser) not() (node, error) {
	if !p.is(tName, "not") {
		return p.comparison()
	}
	if p.depth++; p.depth > maxDepth {
		return nil, errDepth
	}
	defer func() { p.depth-- }()
	p.next()
	n, err := p.not()
	return fold(negation{n}, err)
}

func (p *parser) comparison() (node, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := comparison{first: first}
	for {
		op := ""
		switch t := p.toks[0]; {
		case t.kind == tOp && (t.text == "==" || t.text == "!=" || t.text == "<" || t.text == "<=" || t.text == ">" || t.text == ">="):
			op = t.text
		case p.is(tName, "in"):
			op = "in"
		case p.is(tName, "not") && p.toks[1].kind == tName && p.toks[1].text == "in":
			p.next()
			op = "not in"
		}
		if op == "" {
			if len(c.ops) == 0 {
				return first, nil
			}
			return fold(c, nil)
		}
		p.next()
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, right)
	}
}

// The levels of arithmetic, loosest first. All group from the left, "**" too.
func (p *parser) sum() (node, error)     { return p.arith(p.concat, "+", "-") }
func (p *parser) concat() (node, error)  { return p.arith(p.product, "~") }
func (p *parser) product() (node, error) { return p.arith(p.power, "*", "/", "//", "%") }
func (p *parser) power() (node, error)   { return p.arith(p.filtered, "**") }

func (p *parser) arith(operand func() (node, error), ops ...string) (node, error) {
	n, err := operand()
	for err == nil {
		op := ""
		for _, o := range ops {
			if p.skip(tOp, o) {
				op = o
				break
			}
		}
		if op == "" {
			break
		}
		var right node
		right, err = operand()
		n, err = fold(arith{op, n, right}, err)
	}
	return n, err
}

// filtered reads an operand with signs, subscripts, calls and filters.
func (p *parser) filtered() (node, error) {
	n, err := p.unary()
	for err == nil && p.skip(tOp, "|") {
		n, err = p.filter(n)
	}
	if err == nil && p.is(tName, "is") {
		err = errors.New(`tests ("is") are not supported`)
	}
	return n, err
}

func (p *parser) unary() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errDepth
	}
	defer func() { p.depth-- }()
	var n node
	var err error
	switch {
	case p.skip(tOp, "-"):
		n, err = p.unary()
		n, err = fold(signed{true, n}, err)
	case p.skip(tOp, "+"):
		n, err = p.unary()
		n, err = fold(signed{false, n}, err)
	default:
		n, err = p.primary()
	}
	for err == nil {
		switch {
		case p.skip(tOp, "["):
			n, err = p.subscript(n)
		case p.skip(tOp, "."):
			n, err = p.method(n)
		case p.is(tOp, "("):
			return nil, errors.New("only templates can be called")
		default:
			return n, nil
		}
	}
	return nil, err
}

func (p *parser) primary() (node, error) {
	switch t := p.next(); {
	case t.kind == tConst:
		return constant{t.value}, nil
	case t.kind == tStr:
		s := t.value.s
		for p.toks[0].kind == tStr {
			s += p.next().value.s
		}
		return constant{Str(s)}, nil
	case t.kind == tName:
		return p.name(t.text)
	case t.kind == tOp && t.text == "(":
		n, err := p.tuple(true)
		if err != nil {
			return nil, err
		}
		return n, p.expect(")")
	case t.kind == tOp && t.text == "[":
		items, _, err := p.arguments("]", false)
		return fold(sequence{kList, items}, err)
	default:
		return nil, fmt.Errorf("unexpected %v", t)
	}
}

func (p *parser) name(name string) (node, error) {
	switch name {
	case "true", "True":
		return constant{Bool(true)}, nil
	case "false", "False":
		return constant{Bool(false)}, nil
	case "none", "None":
		return constant{None()}, nil
	}
	sym, ok := p.scope.names[name]
	if !ok {
		if !p.scope.free {
			return nil, fmt.Errorf("%q is not defined", clip(name))
		}
		if err := p.scope.Var(name); err != nil {
			return nil, err
		}
		sym = p.scope.names[name]
	}
	switch {
	case sym.fn != nil:
		if !p.skip(tOp, "(") {
			return nil, fmt.Errorf("%q is a template with names of its own: call it", clip(name))
		}
		return p.call(sym.fn)
	case sym.slot >= 0:
		return variable{sym.slot}, nil
	}
	return constant{sym.value}, nil
}

// arguments reads a list up to a closing bracket; named ones where allowed.
func (p *parser) arguments(closing string, named bool) (items []node, names []string, err error) {
	for !p.skip(tOp, closing) {
		if len(items) > 0 {
			if err := p.expect(","); err != nil {
				return nil, nil, err
			}
			if p.skip(tOp, closing) {
				break
			}
		}
		name := ""
		if named && p.toks[0].kind == tName && p.toks[1].kind == tOp && p.toks[1].text == "=" {
			name = p.next().text
			p.next()
		}
		n, err := p.expr()
		if err != nil {
			return nil, nil, err
		}
		items, names = append(items, n), append(names, name)
	}
	return items, names, nil
}

func (p *parser) call(f *function) (node, error) {
	items, names, err := p.arguments(")", true)
	if err != nil {
		return nil, err
	}
	c := call{fn: f, args: make([]node, len(f.args))}
	given := map[string]bool{}
	for i, n := range items {
		name := names[i]
		if name == "" {
			return nil, fmt.Errorf("arguments of template %q need names", clip(f.name))
		}
		if given[name] {
			return nil, fmt.Errorf("argument %q is given twice", clip(name))
		}
		given[name] = true
		if slot, ok := f.args[name]; ok {
			c.args[slot] = n
		}
	}
	for name := range f.args {
		if !given[name] {
			return nil, fmt.Errorf("template %q needs an argument %q", clip(f.name), clip(name))
		}
	}
	return fold(c, nil)
}

// subscript reads from behind "[".
func (p *parser) subscript(n node) (node, error) {
	s := subscript{of: n}
	var err error
	if !p.is(tOp, ":") {
		if s.from, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if s.slice = p.skip(tOp, ":"); s.slice && !p.is(tOp, "]") {
		if p.is(tOp, ":") {
			return nil, errors.New("slices with a step are not supported")
		}
		if s.to, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if err := p.expect("]"); err != nil {
		return nil, err
	}
	return fold(s, nil)
}

// method reads from behind ".": two methods of strings are known.
func (p *parser) method(n node) (node, error) {
	t := p.next()
	if t.kind != tName || t.text != "format" && t.text != "zfill" || !p.skip(tOp, "(") {
		return nil, fmt.Errorf("attribute %v is not supported", t)
	}
	args, names, err := p.arguments(")", true)
	if err != nil {
		return nil, err
	}
	return fold(apply{name: "." + t.text, fn: methods[t.text], of: n, args: args, names: names}, nil)
}

// filter reads from behind "|".
func (p *parser) filter(n node) (node, error) {
	t := p.next()
	if t.kind != tName {
		return nil, fmt.Errorf("%v instead of a filter", t)
	}
	fn, ok := filters[t.text]
	if !ok {
		return nil, fmt.Errorf("filter %q is not supported", clip(t.text))
	}
	a := apply{name: "filter " + t.text, fn: fn, of: n}
	if p.skip(tOp, "(") {
		var err error
		if a.args, a.names, err = p.arguments(")", true); err != nil {
			return nil, err
		}
	}
	return fold(a, nil)
}
