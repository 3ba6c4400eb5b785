package jinja

import (
	"errors"
	"fmt"
	"strings"
)

// node is an expression.
type node interface {
	eval(vars []Value) (Value, error)
	// fixed reports whether the value depends on no variable.
	fixed() bool
}

// fold replaces a node that depends on no variable by its value. One that
// fails is left for the rendering: it may stand in a branch that is not taken.
func fold(n node, err error) (node, error) {
	if err != nil || !n.fixed() {
		return n, err
	}
	if v, err := n.eval(nil); err == nil {
		return constant{v}, nil
	}
	return n, nil
}

func fixed(nodes ...node) bool {
	for _, n := range nodes {
		if n != nil && !n.fixed() {
			return false
		}
	}
	return true
}

type (
	constant struct{ v Value }
	variable struct{ slot int }
	sequence struct {
		kind  kind
		items []node
	}
	choice struct{ then, test, other node }
	logic  struct {
		or          bool
		left, right node
	}
	negation   struct{ of node }
	comparison struct {
		first node
		ops   []string
		rest  []node
	}
	arith struct {
		op          string
		left, right node
	}
	signed struct {
		minus bool
		of    node
	}
	call struct {
		fn   *function
		args []node // by slot
	}
	subscript struct {
		of, from, to node
		slice        bool
	}
	apply struct {
		name  string
		fn    func(v Value, a arguments) (Value, error)
		of    node
		args  []node
		names []string
	}
)

func (constant) fixed() bool     { return true }
func (variable) fixed() bool     { return false }
func (n sequence) fixed() bool   { return fixed(n.items...) }
func (n choice) fixed() bool     { return fixed(n.then, n.test, n.other) }
func (n logic) fixed() bool      { return fixed(n.left, n.right) }
func (n negation) fixed() bool   { return fixed(n.of) }
func (n comparison) fixed() bool { return fixed(n.first) && fixed(n.rest...) }
func (n arith) fixed() bool      { return fixed(n.left, n.right) }
func (n signed) fixed() bool     { return fixed(n.of) }
func (n call) fixed() bool       { return fixed(n.args...) }
func (n subscript) fixed() bool  { return fixed(n.of, n.from, n.to) }
func (n apply) fixed() bool      { return fixed(n.of) && fixed(n.args...) }

func (n constant) eval([]Value) (Value, error)      { return n.v, nil }
func (n variable) eval(vars []Value) (Value, error) { return vars[n.slot], nil }

func evalAll(nodes []node, vars []Value) ([]Value, error) {
	out := make([]Value, len(nodes))
	for i, n := range nodes {
		var err error
		if out[i], err = n.eval(vars); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (n sequence) eval(vars []Value) (Value, error) {
	items, err := evalAll(n.items, vars)
	return Value{kind: n.kind, list: items}, err
}

func (n choice) eval(vars []Value) (Value, error) {
	test, err := n.test.eval(vars)
	if err != nil {
		return Value{}, err
	}
	if test.truth() {
		return n.then.eval(vars)
	}
	if n.other == nil {
		return Value{}, errors.New(`"if" without "else" has no value`)
	}
	return n.other.eval(vars)
}

func (n logic) eval(vars []Value) (Value, error) {
	v, err := n.left.eval(vars)
	if err != nil || v.truth() == n.or {
		return v, err
	}
	return n.right.eval(vars)
}

func (n negation) eval(vars []Value) (Value, error) {
	v, err := n.of.eval(vars)
	return Bool(!v.truth()), err
}

func (n comparison) eval(vars []Value) (Value, error) {
	left, err := n.first.eval(vars)
	if err != nil {
		return Value{}, err
	}
	for i, op := range n.ops {
		right, err := n.rest[i].eval(vars)
		if err != nil {
			return Value{}, err
		}
		if ok, err := holds(op, left, right); err != nil || !ok {
			return Bool(false), err
		}
		left = right
	}
	return Bool(true), nil
}

func holds(op string, a, b Value) (bool, error) {
	switch op {
	case "==":
		return equal(a, b), nil
	case "!=":
		return !equal(a, b), nil
	case "in", "not in":
		ok, err := contains(b, a)
		return ok == (op == "in"), err
	}
	c, ordered, err := compare(a, b)
	if err != nil || !ordered {
		return false, err
	}
	switch op {
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	}
	return c >= 0, nil
}

func contains(in, v Value) (bool, error) {
	switch in.kind {
	case kStr:
		if v.kind != kStr {
			return false, fmt.Errorf("%s in str", v.typeName())
		}
		return strings.Contains(in.s, v.s), nil
	case kList, kTuple:
		for _, e := range in.list {
			if equal(e, v) {
				return true, nil
			}
		}
		return false, nil
	}
	return false, fmt.Errorf("in %s", in.typeName())
}

func (n arith) eval(vars []Value) (Value, error) {
	if i, ok := n.integer(vars); ok {
		return Int(i), nil
	}
	a, err := n.left.eval(vars)
	if err != nil {
		return Value{}, err
	}
	b, err := n.right.eval(vars)
	if err != nil {
		return Value{}, err
	}
	if a.kind == kInt && b.kind == kInt && n.op != "~" {
		return intOp(n.op, a.n, b.n)
	}
	return operate(n.op, a, b)
}

// integer evaluates what is nothing but + - * of integers, without the detour
// over Values. ok is false for everything else and for what overflows.
func (n arith) integer(vars []Value) (i int64, ok bool) {
	a, ok := integer(n.left, vars)
	if !ok {
		return 0, false
	}
	b, ok := integer(n.right, vars)
	if !ok {
		return 0, false
	}
	switch n.op {
	case "+":
		c := a + b
		return c, (c > a) == (b > 0)
	case "-":
		c := a - b
		return c, (c < a) == (b > 0)
	case "*":
		const small = 1 << 31
		return a * b, -small < a && a < small && -small < b && b < small
	}
	return 0, false
}

func integer(n node, vars []Value) (int64, bool) {
	switch n := n.(type) {
	case variable:
		return vars[n.slot].n, vars[n.slot].kind == kInt
	case constant:
		return n.v.n, n.v.kind == kInt
	case arith:
		return n.integer(vars)
	}
	return 0, false
}

func (n signed) eval(vars []Value) (Value, error) {
	v, err := n.of.eval(vars)
	switch {
	case err != nil:
		return Value{}, err
	case !v.numeric():
		return Value{}, fmt.Errorf("sign of %s", v.typeName())
	case v.kind == kFloat && n.minus:
		return Float(-v.float()), nil
	case v.kind == kFloat:
		return v, nil
	case n.minus:
		return intOp("-", 0, v.n)
	}
	return Int(v.n), nil
}

func (n call) eval(vars []Value) (Value, error) {
	args := make([]Value, len(n.args))
	for i, a := range n.args {
		var err error
		if args[i], err = a.eval(vars); err != nil {
			return Value{}, err
		}
	}
	b, err := n.fn.body.Append(nil, args)
	return Str(string(b)), err
}

func (n subscript) eval(vars []Value) (Value, error) {
	of, err := n.of.eval(vars)
	if err != nil {
		return Value{}, err
	}
	var runes []rune
	size := len(of.list)
	switch of.kind {
	case kStr:
		runes = []rune(of.s)
		size = len(runes)
	case kList, kTuple:
	default:
		return Value{}, fmt.Errorf("subscript of %s is not supported", of.typeName())
	}
	bound := func(b node, missing int) (int, error) {
		if b == nil {
			return missing, nil
		}
		v, err := b.eval(vars)
		switch {
		case err != nil:
			return 0, err
		case v.kind == kNone && n.slice:
			return missing, nil
		case !v.integral():
			return 0, fmt.Errorf("subscript is a %s", v.typeName())
		}
		i := v.n
		if i < 0 {
			i += int64(size)
		}
		if !n.slice && (i < 0 || i >= int64(size)) {
			return 0, fmt.Errorf("subscript %d of %d elements", v.n, size)
		}
		return int(min(max(i, 0), int64(size))), nil
	}
	from, err := bound(n.from, 0)
	if err != nil {
		return Value{}, err
	}
	if !n.slice {
		if of.kind == kStr {
			return Str(string(runes[from])), nil
		}
		return of.list[from], nil
	}
	to, err := bound(n.to, size)
	if err != nil {
		return Value{}, err
	}
	to = max(to, from)
	if of.kind == kStr {
		return Str(string(runes[from:to])), nil
	}
	return Value{kind: of.kind, list: of.list[from:to]}, nil
}

func (n apply) eval(vars []Value) (Value, error) {
	v, err := n.of.eval(vars)
	if err != nil {
		return Value{}, err
	}
	args, err := evalAll(n.args, vars)
	if err != nil {
		return Value{}, err
	}
	if v, err = n.fn(v, arguments{args, n.names}); err != nil {
		return Value{}, fmt.Errorf("%s: %w", n.name, err)
	}
	return v, nil
}
