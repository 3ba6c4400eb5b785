package jinja

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// sizeOf cuts width and precision off a format.
func sizeOf(s string) (size, rest string, err error) {
	rest = strings.TrimLeft(s, "0123456789.")
	size = s[:len(s)-len(rest)]
	width, precision, _ := strings.Cut(size, ".")
	if len(width) > 4 || len(precision) > 4 || strings.Contains(precision, ".") {
		err = unsupported("width %q", clip(size))
	}
	return size, rest, err
}

// add appends one value. Flags (- + 0 and space), size and verb mean the same to
// package fmt as to Python, within what passes here.
func add(dst []byte, flags, size, verb string, v Value) ([]byte, error) {
	var arg any
	precision := strings.Contains(size, ".")
	switch {
	case verb == "s":
		arg = v.str()
		left := strings.Contains(flags, "-")
		if flags = ""; left { // the others mean nothing
			flags = "-"
		}
	case verb == "f" && v.kind != kStr:
		arg = v.number()
	case (verb == "d" || verb == "x" || verb == "X" || verb == "o") && v.kind == kInt && !precision:
		arg = v.n
	default:
		return nil, unsupported("format %q of %s", clip(size+verb), v.kind)
	}
	if dst = fmt.Appendf(dst, "%"+flags+size+verb, arg); len(dst) > MaxOutput {
		return nil, errOutput
	}
	return dst, nil
}

var errArguments = errors.New("not enough arguments for the format")

// printf is format % args.
func printf(format string, args []Value) (Value, error) {
	var out []byte
	for {
		plain, rest, found := strings.Cut(format, "%")
		if out = append(out, plain...); !found {
			break
		}
		if strings.HasPrefix(rest, "%") {
			out, format = append(out, '%'), rest[1:]
			continue
		}
		unflagged := strings.TrimLeft(rest, "-+ 0")
		flags := rest[:len(rest)-len(unflagged)]
		size, rest, err := sizeOf(unflagged)
		if err != nil {
			return Value{}, err
		}
		_, n := utf8.DecodeRuneInString(rest)
		verb := rest[:n]
		switch format = rest[n:]; {
		case verb == "":
			return Value{}, errors.New("incomplete format")
		case len(args) == 0:
			return Value{}, errArguments
		case verb == "i" || verb == "u":
			verb = "d"
		}
		if out, err = add(out, flags, size, verb, args[0]); err != nil {
			return Value{}, err
		}
		args = args[1:]
	}
	if len(args) > 0 {
		return Value{}, errors.New("not all arguments are used by the format")
	}
	return text(string(out))
}

// filters take a value v[0] and arguments.
var filters = map[string]struct {
	most int // arguments
	fn   func(v []Value) (Value, error)
}{
	"format": {maxTokens, func(v []Value) (Value, error) { return printf(v[0].str(), v[1:]) }},
	"int":    {0, toInt},
	"lower":  {0, func(v []Value) (Value, error) { return mapped(v[0], strings.ToLower) }},
	"string": {0, func(v []Value) (Value, error) { return Str(v[0].str()), nil }},
	"upper":  {0, func(v []Value) (Value, error) { return mapped(v[0], strings.ToUpper) }},
}

// mapped maps letters. Go and Python map some beyond ASCII differently.
func mapped(v Value, fn func(string) string) (Value, error) {
	s := v.str()
	if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return Value{}, unsupported("upper or lower case of %q", clip(s))
	}
	return Str(fn(s)), nil
}

// toInt is the filter int. Jinja2 makes 0 of what is no number.
func toInt(v []Value) (Value, error) {
	i, ok, err := ParseInt(v[0].str())
	if err == nil && !ok {
		err = unsupported("int of %q", clip(v[0].str()))
	}
	return Int(i), err
}
