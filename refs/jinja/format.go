package jinja

import (
	"errors"
	"fmt"
	"strconv"
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
	case verb == "f" && v.numeric():
		arg = v.number()
	case verb == "d" && v.numeric() && !precision:
		i, err := v.truncate()
		if err != nil {
			return nil, err
		}
		arg = i
	case (verb == "x" || verb == "X" || verb == "o") && v.integral() && !precision:
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

// strFormat is v[0].format(v[1], …).
func strFormat(v []Value) (Value, error) {
	if v[0].kind != kStr {
		return Value{}, unsupported("format of %s", v[0].kind)
	}
	s, next, numbered := v[0].s, 0, false
	var out []byte
	for {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			break
		}
		out = append(out, s[:i]...)
		if strings.HasPrefix(s[i+1:], s[i:i+1]) {
			out, s = append(out, s[i]), s[i+2:]
			continue
		}
		field, rest, found := strings.Cut(s[i+1:], "}")
		if s[i] == '}' || !found {
			return Value{}, errors.New("single brace in the format")
		}
		name, spec, _ := strings.Cut(field, ":")
		at := next
		if name == "" {
			next++
		} else if n, err := strconv.ParseUint(name, 10, 16); err == nil {
			at, numbered = int(n), true
		} else {
			return Value{}, unsupported("field %q", clip(name))
		}
		switch {
		case numbered && next > 0:
			return Value{}, errors.New("fields with and without numbers")
		case at+1 >= len(v):
			return Value{}, errArguments
		}
		var err error
		if out, err = addFormat(out, spec, v[at+1]); err != nil {
			return Value{}, err
		}
		if s = rest; len(out) > MaxOutput {
			return Value{}, errOutput // before the next one adds as much
		}
	}
	return text(string(append(out, s...)))
}

// addFormat appends format(v, spec) for a spec of 0, width, precision and type.
func addFormat(dst []byte, spec string, v Value) ([]byte, error) {
	if spec == "" {
		return v.appendStr(dst), nil
	}
	size, verb, err := sizeOf(spec)
	if verb == "" && v.integral() {
		verb = "d"
	}
	if err == nil && (!v.integral() && (v.kind == kStr || verb != "f") || verb == "s" || strings.HasSuffix(size, ".")) {
		err = unsupported("format %q of %s", clip(spec), v.kind)
	}
	if err != nil {
		return nil, err
	}
	return add(dst, "", size, verb, v)
}

// builtin is a filter or method. v[0] is what it is applied to.
type builtin struct {
	least, most int // arguments
	fn          func(v []Value) (Value, error)
}

// methods are those of strings.
var methods = map[string]builtin{"format": {0, maxTokens, strFormat}, "zfill": {1, 1, zfill}}

var filters = map[string]builtin{
	"format": {0, maxTokens, func(v []Value) (Value, error) {
		return printf(v[0].str(), v[1:])
	}},
	"int":     {0, 0, toInt},
	"lower":   {0, 0, func(v []Value) (Value, error) { return mapped(v[0], strings.ToLower) }},
	"replace": {2, 2, replace},
	"string":  {0, 0, func(v []Value) (Value, error) { return Str(v[0].str()), nil }},
	"trim":    {0, 0, func(v []Value) (Value, error) { return Str(strings.TrimFunc(v[0].str(), isSpace)), nil }},
	"upper":   {0, 0, func(v []Value) (Value, error) { return mapped(v[0], strings.ToUpper) }},
}

// mapped maps letters. Go and Python map some beyond ASCII differently.
func mapped(v Value, fn func(string) string) (Value, error) {
	s := v.str()
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return Value{}, unsupported("upper or lower case of %q", clip(s))
		}
	}
	return Str(fn(s)), nil
}

// zfill fills with zeros behind the sign.
func zfill(v []Value) (Value, error) {
	if v[0].kind != kStr || !v[1].integral() {
		return Value{}, unsupported("zfill of %s and %s", v[0].kind, v[1].kind)
	}
	if v[1].n > MaxOutput {
		return Value{}, errOutput
	}
	s, sign := v[0].s, 0
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign = 1
	}
	missing := max(0, int(max(v[1].n, 0))-utf8.RuneCountInString(s))
	return Str(s[:sign] + strings.Repeat("0", missing) + s[sign:]), nil
}

// toInt is the filter int. Jinja2 makes 0 of what is no number.
func toInt(v []Value) (Value, error) {
	if v[0].kind != kStr {
		i, err := v[0].truncate()
		return Int(i), err
	}
	i, ok, err := ParseInt(v[0].s)
	if err == nil && !ok {
		err = unsupported("int of %q", clip(v[0].s))
	}
	return Int(i), err
}

func replace(v []Value) (Value, error) {
	s, old, with := v[0].str(), v[1].str(), v[2].str()
	if len(s)+strings.Count(s, old)*max(len(with)-len(old), 0) > MaxOutput {
		return Value{}, errOutput
	}
	return Str(strings.ReplaceAll(s, old, with)), nil
}
