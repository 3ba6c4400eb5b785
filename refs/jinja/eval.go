package jinja

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
)

// operate applies a binary operator, or the filter format.
func operate(op string, a, b Value) (Value, error) {
	switch {
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
	}
	return Value{}, errInteger
}

// verbs matches what a format replaces, and everything else that begins with "%".
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
