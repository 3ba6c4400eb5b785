package jinja

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"
)

// compare compares two integers.
func compare(op string, a, b Value) (bool, error) {
	if !a.integer || !b.integer {
		return false, unsupported("a test of %s and %s", a.kind(), b.kind())
	}
	c := cmp.Compare(a.n, b.n)
	switch op {
	case "==":
		return c == 0, nil
	case "!=":
		return c != 0, nil
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	}
	return c >= 0, nil
}

func operate(op string, a, b Value) (Value, error) {
	switch {
	case op == "~":
		if s := a.text() + b.text(); len(s) <= MaxOutput {
			return Str(s), nil
		}
		return Value{}, errOutput
	case op == "format", op == "%" && !a.integer:
		return printf(a.text(), b)
	case a.integer && b.integer:
		return integers(op, a.n, b.n)
	}
	return Value{}, unsupported("%s of %s and %s", op, a.kind(), b.kind())
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
			return Value{}, errors.New("division by zero")
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
		if b < 0 || b > 63 {
			return Value{}, unsupported("** with the exponent %d", b)
		}
		c := Int(1)
		for range b {
			var err error
			if c, err = integers("*", c.n, a); err != nil {
				return Value{}, err
			}
		}
		return c, nil
	}
	return Value{}, errInteger
}

// verbs matches the verbs of a format, valid or not: everything that begins with "%".
var verbs = regexp.MustCompile(`(?s)%(?:%|(?:0?[1-9][0-9]{0,2})?d|(?:[1-9][0-9]{0,2})?s|.?)`)

// printf is format % (v,) with one verb, which means the same to package fmt.
func printf(format string, v Value) (Value, error) {
	used, err := false, error(nil)
	out := verbs.ReplaceAllStringFunc(format, func(verb string) string {
		integer := strings.HasSuffix(verb, "d") && v.integer
		switch {
		case verb == "%%":
			return "%"
		case used || !integer && !strings.HasSuffix(verb, "s"):
			err = unsupported("%s in a format of %s", quoted(verb), v.kind())
			return ""
		}
		used = true
		if integer {
			return fmt.Sprintf(verb, v.n)
		}
		return fmt.Sprintf(verb, v.text())
	})
	if err == nil && !used {
		err = unsupported("a format without a place for its value")
	}
	if err == nil && len(out) > MaxOutput {
		err = errOutput
	}
	return Str(out), err
}

// upper is the filter of that name. Go and Python map some letters beyond ASCII differently.
func upper(e expr) expr {
	return func(vars []Value) (Value, error) {
		v, err := e(vars)
		if err == nil && strings.ContainsFunc(v.text(), func(r rune) bool { return r >= utf8.RuneSelf }) {
			err = unsupported("upper case of %s", quoted(v.text()))
		}
		return Str(strings.ToUpper(v.text())), err
	}
}
