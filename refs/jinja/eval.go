package jinja

import (
	"cmp"
	"fmt"
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

func failing(err error) expr {
	return expr{eval: func([]Value) (Value, error) { return Value{}, err }}
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

// choice is "then if test else other".
func choice(then, test, other expr) expr {
	return expr{eval: func(vars []Value) (Value, error) {
		v, err := test.eval(vars)
		switch {
		case err != nil:
			return Value{}, err
		case v.truth():
			return then.eval(vars)
		}
		return other.eval(vars)
	}}
}

func not(v []Value) (Value, error) { return boolean(!v[0].truth()), nil }

func negative(v []Value) (Value, error) {
	if v[0].kind == kFloat {
		return Float(-v[0].number()), nil // 0 - 0.0 is no negative zero
	}
	return operate("-", Int(0), v[0])
}

// binary is an operator with two operands. "and" and "or" evaluate the right
// one if they need it.
func binary(op string, left, right expr) expr {
	if op == "%" && right.items != nil {
		return apply(func(v []Value) (Value, error) {
			if v[0].kind != kStr {
				return Value{}, unsupported("%% of %s and a tuple", v[0].kind)
			}
			return printf(v[0].s, v[1:])
		}, append([]expr{left}, right.items...)...)
	}
	logic := op == "and" || op == "or"
	return expr{eval: func(vars []Value) (Value, error) {
		a, err := left.eval(vars)
		if err != nil || logic && a.truth() == (op == "or") {
			return a, err
		}
		b, err := right.eval(vars)
		if err != nil || logic {
			return b, err
		}
		return operate(op, a, b)
	}}
}

func operate(op string, a, b Value) (Value, error) {
	switch op {
	case "~":
		return text(a.str() + b.str())
	case "==", "!=", "<", "<=", ">", ">=":
		return compare(op, a, b)
	}
	switch {
	case a.integral() && b.integral() && op != "/":
		return integers(op, a.n, b.n)
	case a.numeric() && b.numeric():
		return floats(op, a, b)
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

// floats is arithmetic with floats, and division of integers.
func floats(op string, a, b Value) (Value, error) {
	x, y := a.number(), b.number()
	switch op {
	case "+":
		return finite(x + y)
	case "-":
		return finite(x - y)
	case "*":
		return finite(x * y)
	case "/":
		switch {
		case y == 0:
			return Value{}, errZero
		case a.integral() && b.integral() && !(a.exact() && b.exact()):
			return Value{}, unsupported("/ of integers beyond 2**53")
		}
		return finite(x / y)
	}
	return Value{}, unsupported("%s of %s and %s", op, a.kind, b.kind)
}

func compare(op string, a, b Value) (Value, error) {
	c := 1 // different types are not equal
	switch {
	case a.integral() && b.integral():
		c = cmp.Compare(a.n, b.n)
	case a.numeric() && b.numeric():
		if !a.exact() || !b.exact() {
			return Value{}, unsupported("comparison of floats with integers beyond 2**53")
		}
		c = cmp.Compare(a.number(), b.number())
	case a.kind == kStr && b.kind == kStr:
		c = strings.Compare(a.s, b.s)
	case op != "==" && op != "!=":
		return Value{}, fmt.Errorf("%s and %s have no order", a.kind, b.kind)
	}
	switch op {
	case "==":
		return boolean(c == 0), nil
	case "!=":
		return boolean(c != 0), nil
	case "<":
		return boolean(c < 0), nil
	case "<=":
		return boolean(c <= 0), nil
	case ">":
		return boolean(c > 0), nil
	}
	return boolean(c >= 0), nil
}
