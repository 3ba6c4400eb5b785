package jinja

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// arguments are those of a filter or method; names[i] is "" where there is
// none.
type arguments struct {
	values []Value
	names  []string
}

// named returns the argument with a name.
func (a arguments) named(name string) (Value, error) {
	for i, n := range a.names {
		if n == name && n != "" {
			return a.values[i], nil
		}
	}
	return Value{}, fmt.Errorf("argument %q is missing", clip(name))
}

// bind sorts arguments by the parameters' names. What is not given is None
// and given[i] false.
func (a arguments) bind(params ...string) (out []Value, given []bool, err error) {
	out, given = make([]Value, len(params)), make([]bool, len(params))
	position := 0
	for i, v := range a.values {
		at := -1
		if a.names[i] == "" {
			at = position
			position++
		} else {
			for k, p := range params {
				if p == a.names[i] {
					at = k
				}
			}
		}
		if at < 0 || at >= len(params) || given[at] {
			return nil, nil, errors.New("arguments do not fit")
		}
		out[at], given[at] = v, true
	}
	return out, given, nil
}

type filter = func(v Value, a arguments) (Value, error)

// methods are those of strings.
var methods = map[string]filter{"format": strFormat, "zfill": zfill}

var filters = map[string]filter{
	"abs":     plain(abs),
	"count":   plain(length),
	"first":   plain(func(v Value) (Value, error) { return edge(v, 0) }),
	"float":   toFloat,
	"format":  format,
	"int":     toInt,
	"last":    plain(func(v Value) (Value, error) { return edge(v, -1) }),
	"length":  plain(length),
	"lower":   plain(func(v Value) (Value, error) { return Str(strings.ToLower(v.str())), nil }),
	"replace": replace,
	"round":   round,
	"string":  plain(func(v Value) (Value, error) { return Str(v.str()), nil }),
	"trim":    trim,
	"upper":   plain(func(v Value) (Value, error) { return Str(strings.ToUpper(v.str())), nil }),
}

// plain makes a filter without arguments.
func plain(fn func(Value) (Value, error)) filter {
	return func(v Value, a arguments) (Value, error) {
		if len(a.values) > 0 {
			return Value{}, errors.New("it takes no arguments")
		}
		return fn(v)
	}
}

func abs(v Value) (Value, error) {
	switch {
	case v.kind == kFloat:
		return Float(math.Abs(v.float())), nil
	case v.integral() && v.n < 0:
		return intOp("-", 0, v.n)
	case v.integral():
		return Int(v.n), nil
	}
	return Value{}, fmt.Errorf("of %s", v.typeName())
}

func length(v Value) (Value, error) {
	switch v.kind {
	case kStr:
		return Int(int64(runeLen(v.s))), nil
	case kList, kTuple:
		return Int(int64(len(v.list))), nil
	}
	return Value{}, fmt.Errorf("of %s", v.typeName())
}

func edge(v Value, at int64) (Value, error) {
	return subscript{of: constant{v}, from: constant{Int(at)}}.eval(nil)
}

// format is the filter: like %, with the arguments that are given.
func format(v Value, a arguments) (Value, error) {
	for _, n := range a.names {
		if n != "" {
			return Value{}, errors.New("named arguments are not supported")
		}
	}
	s, err := printf(v.str(), Value{kind: kTuple, list: a.values})
	return Str(s), err
}

// zfill fills with zeros behind the sign.
func zfill(v Value, a arguments) (Value, error) {
	args, given, err := a.bind("width")
	switch {
	case err != nil:
		return Value{}, err
	case v.kind != kStr || !given[0] || !args[0].integral():
		return Value{}, errors.New("it takes a string and a width")
	case args[0].n > MaxOutput:
		return Value{}, errOutput
	}
	sign, body := "", v.s
	if body != "" && (body[0] == '+' || body[0] == '-') {
		sign, body = body[:1], body[1:]
	}
	sp := spec{fill: '0', align: '=', width: int(max(args[0].n, 0))}
	return Str(string(sp.pad(nil, sign, body))), nil
}

// toInt is Jinja2's int: what cannot be converted is the default, 0.
func toInt(v Value, a arguments) (Value, error) {
	args, given, err := a.bind("default", "base")
	if err != nil {
		return Value{}, err
	}
	fallback, base := Int(0), 10
	if given[0] {
		fallback = args[0]
	}
	if given[1] {
		if !args[1].integral() || args[1].n != 0 && (args[1].n < 2 || args[1].n > 36) {
			return Value{}, errors.New("base")
		}
		base = int(args[1].n)
	}
	if v.integral() {
		return Int(v.n), nil
	}
	f := v.float()
	switch v.kind {
	case kStr:
		if base == 10 {
			i, ok, err := ParseInt(v.s)
			if ok || err != nil {
				return Int(i), err
			}
		} else if i, err := strconv.ParseInt(basePrefix(v.s, base), base, 64); err == nil {
			return Int(i), nil
		}
		var ok bool
		if f, ok = parseFloat(v.s); !ok {
			return fallback, nil
		}
	case kFloat:
	default:
		return fallback, nil
	}
	if f != f || math.IsInf(f, 0) {
		return fallback, nil
	}
	i, err := truncate(f)
	return Int(i), err
}

// basePrefix removes the prefix that Python allows with an explicit base.
func basePrefix(s string, base int) string {
	s = strings.TrimFunc(s, isSpace)
	prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	if prefix != "" && len(s) > 2 && strings.EqualFold(s[:2], prefix) {
		s = s[2:]
	}
	return sign + s
}

// ParseInt is int(s) of a decimal text: surrounding white space, a sign and
// single "_" between digits are allowed. ok is false where it is no integer; an
// integer beyond 64 bits is an error.
func ParseInt(s string) (i int64, ok bool, err error) {
	s = strings.TrimFunc(s, isSpace)
	body := s
	if body != "" && (body[0] == '-' || body[0] == '+') {
		body = body[1:]
	}
	if body == "" || digits(body, 'd', false) != len(body) {
		return 0, false, nil
	}
	i, err = strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil {
		return 0, false, errInteger
	}
	return i, true, nil
}

func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	if strings.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

func toFloat(v Value, a arguments) (Value, error) {
	args, given, err := a.bind("default")
	if err != nil {
		return Value{}, err
	}
	if v.numeric() {
		return Float(v.number()), nil
	}
	if v.kind == kStr {
		if f, ok := parseFloat(v.s); ok {
			return Float(f), nil
		}
	}
	if given[0] {
		return args[0], nil
	}
	return Float(0), nil
}

func replace(v Value, a arguments) (Value, error) {
	args, given, err := a.bind("old", "new", "count")
	if err != nil || !given[0] || !given[1] || given[2] && !args[2].integral() && args[2].kind != kNone {
		return Value{}, errors.New("it takes what is replaced and by what")
	}
	count := -1
	if given[2] && args[2].kind != kNone {
		count = int(min(max(args[2].n, -1), MaxOutput+1))
	}
	s, old, with := v.str(), args[0].str(), args[1].str()
	times := strings.Count(s, old)
	if count >= 0 {
		times = min(times, count)
	}
	if len(s)+times*max(len(with)-len(old), 0) > MaxOutput {
		return Value{}, errOutput
	}
	return Str(strings.Replace(s, old, with, count)), nil
}

// round rounds to the nearest, ties to even, as Python does; or up or down.
func round(v Value, a arguments) (Value, error) {
	args, given, err := a.bind("precision", "method")
	if err != nil {
		return Value{}, err
	}
	precision, method := int64(0), "common"
	if given[0] {
		if precision = args[0].n; !args[0].integral() || precision < 0 || precision > 100 {
			return Value{}, errors.New("precision")
		}
	}
	if given[1] {
		method = args[1].str()
	}
	if !v.numeric() {
		return Value{}, fmt.Errorf("of %s", v.typeName())
	}
	f, ten := v.number(), math.Pow10(int(precision))
	switch method {
	case "common":
		if v.integral() {
			return Int(v.n), nil
		}
		if f, err = strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(precision), 64), 64); err != nil {
			return Value{}, err
		}
		return Float(f), nil
	case "ceil":
		return Float(math.Ceil(f*ten) / ten), nil
	case "floor":
		return Float(math.Floor(f*ten) / ten), nil
	}
	return Value{}, fmt.Errorf("method %q", clip(method))
}

func trim(v Value, a arguments) (Value, error) {
	args, given, err := a.bind("chars")
	if err != nil {
		return Value{}, err
	}
	if given[0] && args[0].kind != kNone {
		return Str(strings.Trim(v.str(), args[0].str())), nil
	}
	return Str(strings.TrimFunc(v.str(), isSpace)), nil
}
