package jinja

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

var errZero = errors.New("division by zero")

// intOp is arithmetic of integers as Python does it, within 64 bits.
func intOp(op string, a, b int64) (Value, error) {
	over := false
	switch op {
	case "+":
		c := a + b
		over, a = (c > a) != (b > 0), c
	case "-":
		c := a - b
		over, a = (c < a) != (b > 0), c
	case "*":
		if a != 0 && b != 0 {
			c := a * b
			over, a = c/b != a || a == -1 && b == math.MinInt64 || b == -1 && a == math.MinInt64, c
		} else {
			a = 0
		}
	case "/":
		if b == 0 {
			return Value{}, errZero
		}
		return Float(quotient(a, b)), nil
	case "//", "%":
		if b == 0 {
			return Value{}, errZero
		}
		if b == -1 { // MinInt64 / -1
			if op == "%" {
				return Int(0), nil
			}
			return intOp("-", 0, a)
		}
		q, r := a/b, a%b
		if r != 0 && (r < 0) != (b < 0) {
			q, r = q-1, r+b
		}
		if a = q; op == "%" {
			a = r
		}
	case "**":
		return intPower(a, b)
	}
	if over {
		return Value{}, errInteger
	}
	return Int(a), nil
}

// quotient is a / b, rounded once.
func quotient(a, b int64) float64 {
	const exact = 1 << 53
	if -exact <= a && a <= exact && -exact <= b && b <= exact {
		return float64(a) / float64(b)
	}
	f, _ := big.NewRat(a, b).Float64()
	return f
}

func intPower(a, b int64) (Value, error) {
	if b < 0 {
		if a == 0 {
			return Value{}, errZero
		}
		v, err := intPower(a, -b)
		if err != nil || v.n > 1<<53 || v.n < -1<<53 {
			return Value{}, errInteger
		}
		return Float(1 / float64(v.n)), nil
	}
	if a == 0 || a == 1 || b == 0 {
		if b == 0 {
			a = 1
		}
		return Int(a), nil
	}
	if a == -1 {
		return Int(1 - 2*(b&1)), nil
	}
	if b > 62 && a != -2 || b > 63 {
		return Value{}, errInteger
	}
	out := Int(1)
	for range b {
		var err error
		if out, err = intOp("*", out.n, a); err != nil {
			return Value{}, err
		}
	}
	return out, nil
}

// operate is arithmetic of anything.
func operate(op string, a, b Value) (Value, error) {
	switch {
	case op == "~":
		return join(a.str(), b.str())
	case op == "%" && a.kind == kStr:
		s, err := printf(a.s, b)
		return Str(s), err
	case op == "+" && a.kind == kStr && b.kind == kStr:
		return join(a.s, b.s)
	case op == "*" && a.kind == kStr && b.integral():
		return repeat(a.s, b.n)
	case op == "*" && b.kind == kStr && a.integral():
		return repeat(b.s, a.n)
	case !a.numeric() || !b.numeric():
		return Value{}, fmt.Errorf("%s of %s and %s is not supported", op, a.typeName(), b.typeName())
	case a.integral() && b.integral():
		return intOp(op, a.n, b.n)
	}
	x, y := a.number(), b.number()
	switch op {
	case "+":
		x += y
	case "-":
		x -= y
	case "*":
		x *= y
	case "/", "//", "%":
		if y == 0 {
			return Value{}, errZero
		}
		if op == "/" {
			x /= y
			break
		}
		q, r := floatDivMod(x, y)
		if x = q; op == "%" {
			x = r
		}
	case "**":
		// C and Go round such powers differently.
		return Value{}, errors.New("** of floats is not supported")
	}
	return Float(x), nil
}

// floatDivMod is Python's divmod of floats: the remainder has the sign of y.
func floatDivMod(x, y float64) (q, r float64) {
	r = math.Mod(x, y)
	q = (x - r) / y
	if r != 0 {
		if (y < 0) != (r < 0) {
			r += y
			q--
		}
	} else {
		r = math.Copysign(0, y)
	}
	if q == 0 {
		return math.Copysign(0, x/y), r
	}
	floor := math.Floor(q)
	if q-floor > 0.5 {
		floor++
	}
	return floor, r
}

func join(a, b string) (Value, error) {
	if len(a)+len(b) > MaxOutput {
		return Value{}, errOutput
	}
	return Str(a + b), nil
}

func repeat(s string, n int64) (Value, error) {
	if n <= 0 || s == "" {
		return Str(""), nil
	}
	if n > int64(MaxOutput/len(s)) {
		return Value{}, errOutput
	}
	return Str(strings.Repeat(s, int(n))), nil
}

func runeLen(s string) int { return utf8.RuneCountInString(s) }
