package jinja

import (
	"cmp"
	"math"
	"strings"
)

// expr is a compiled expression.
type expr struct {
	eval  func(vars []Value) (Value, error)
	items []expr // of a tuple, which only "%" takes
}

func constant(v Value) expr {
	return expr{eval: func([]Value) (Value, error) { return v, nil }}
}

func variable(slot int) expr {
	return expr{eval: func(vars []Value) (Value, error) { return vars[slot], nil }}
}

// apply evaluates all arguments and calls fn with them.
func apply(fn func(args []Value) (Value, error), args ...expr) expr {
	return expr{eval: func(vars []Value) (Value, error) {
		values := make([]Value, len(args))
		for i, a := range args {
			var err error
			if values[i], err = a.eval(vars); err != nil {
				return Value{}, err
			}
		}
		return fn(values)
	}}
}

// condition is a compiled test.
type condition func(vars []Value) (bool, error)

// choice is "then if test else other".
func choice(then expr, test condition, other expr) expr {
	return expr{eval: func(vars []Value) (Value, error) {
		ok, err := test(vars)
		switch {
		case err != nil:
			return Value{}, err
		case ok:
			return then.eval(vars)
		}
		return other.eval(vars)
	}}
}

// truth is bool(e).
func truth(e expr) condition {
	return func(vars []Value) (bool, error) {
		v, err := e.eval(vars)
		return v.s != "" || v.kind != kStr && v.number() != 0, err
	}
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

// compared compares two integers or two strings.
func compared(op string, a, b expr) condition {
	return func(vars []Value) (bool, error) {
		v, err := a.eval(vars)
		if err != nil {
			return false, err
		}
		w, err := b.eval(vars)
		if err == nil && (v.kind != w.kind || v.kind == kFloat) {
			err = unsupported("%s of %s and %s", op, v.kind, w.kind)
		}
		c := cmp.Or(cmp.Compare(v.n, w.n), strings.Compare(v.s, w.s))
		switch op {
		case "==":
			return c == 0, err
		case "!=":
			return c != 0, err
		case "<":
			return c < 0, err
		case "<=":
			return c <= 0, err
		case ">":
			return c > 0, err
		}
		return c >= 0, err
	}
}

func negative(v []Value) (Value, error) { return operate("-", Int(0), v[0]) }

// binary is an operator with two operands.
func binary(op string, left, right expr) expr {
	if op == "%" && right.items != nil {
		return apply(func(v []Value) (Value, error) {
			if v[0].kind != kStr {
				return Value{}, unsupported("%% of %s and a tuple", v[0].kind)
			}
			return printf(v[0].s, v[1:])
		}, append([]expr{left}, right.items...)...)
	}
	return expr{eval: func(vars []Value) (Value, error) {
		a, err := left.eval(vars)
		if err != nil {
			return a, err
		}
		b, err := right.eval(vars)
		if err != nil {
			return b, err
		}
		return operate(op, a, b)
	}}
}

func operate(op string, a, b Value) (Value, error) {
	switch {
	case op == "~":
		return text(a.str() + b.str())
	case a.kind == kInt && b.kind == kInt:
		return integers(op, a.n, b.n)
	case a.kind == kStr && op == "%":
		return printf(a.s, []Value{b})
	case a.kind == kStr && b.kind == kStr && op == "+":
		return text(a.s + b.s)
	}
	return Value{}, unsupported("%s of %s and %s", op, a.kind, b.kind)
}

// integers is arithmetic of integers as Python does it, within 64 bits.
func integers(op string, a, b int64) (Value, error) {
	switch op {
	case "+":
		if c := a + b; (c > a) == (b > 0) {
			return Int(c), nil
		}
	case "-":
		if c := a - b; (c < a) == (b > 0) {
			return Int(c), nil
		}
	case "*":
		c := a * b
		if a == 0 || c/a == b && !(a == -1 && b == math.MinInt64) {
			return Int(c), nil
		}
	case "//", "%":
		if b == 0 {
			return Value{}, errZero
		}
		q, r := a/b, a%b
		if r != 0 && (r < 0) != (b < 0) {
			q, r = q-1, r+b
		}
		if op == "%" {
			return Int(r), nil
		}
		if a != math.MinInt64 || b != -1 {
			return Int(q), nil
		}
	case "**":
		return power(a, b)
	}
	return Value{}, errInteger
}

func power(a, b int64) (Value, error) {
	if b < 0 {
		return Value{}, unsupported("** with a negative exponent")
	}
	if -1 <= a && a <= 1 && b > 2 {
		b = 2 - b&1 // only even or odd matters
	}
	c := Int(1)
	for range b { // ends by 64, when |a| > 1 is beyond 64 bits
		var err error
		if c, err = integers("*", c.n, a); err != nil {
			return Value{}, err
		}
	}
	return c, nil
}
