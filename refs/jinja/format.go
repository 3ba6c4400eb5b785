package jinja

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is how one value is laid out: the common part of '%5d' and '{:5d}'.
type spec struct {
	fill  rune // 0: a space
	align byte // < > = ^, or 0 for the default of the type
	sign  byte // - + or space
	alt   bool
	comma byte // , or _ between thousands, or 0
	width int
	prec  int // -1: not given
	verb  byte
}

// printf is s % v.
func printf(format string, v Value) (string, error) {
	args := []Value{v}
	if v.kind == kTuple {
		args = v.list
	}
	var out []byte
	for {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			break
		}
		out, format = append(out, format[:i]...), format[i+1:]
		sp, rest, err := printfSpec(format)
		if err != nil {
			return "", err
		}
		format = rest
		if sp.verb == '%' {
			out = append(out, '%')
			continue
		}
		if len(args) == 0 {
			return "", errors.New("not enough arguments for the format")
		}
		if out, err = sp.appendPrintf(out, args[0]); err != nil {
			return "", err
		}
		if len(out) > MaxOutput {
			return "", errOutput
		}
		args = args[1:]
	}
	if len(args) > 0 && (v.kind == kTuple || v.kind != kList) {
		return "", errors.New("not all arguments are used by the format")
	}
	return string(append(out, format...)), nil
}

// printfSpec reads what follows a percent sign.
func printfSpec(s string) (sp spec, rest string, err error) {
	sp = spec{align: '>', sign: '-', prec: -1}
	i, zero := 0, false
	for ; i < len(s); i++ {
		switch s[i] {
		case '-':
			sp.align = '<'
		case '+':
			sp.sign = '+'
		case ' ':
			if sp.sign != '+' {
				sp.sign = ' '
			}
		case '0':
			zero = true
		case '#':
			sp.alt = true
		default:
			goto width
		}
	}
width:
	if zero && sp.align == '>' {
		sp.fill, sp.align = '0', '='
	}
	var n int
	if sp.width, n, err = number(s[i:]); err != nil {
		return sp, "", err
	}
	if i += n; i < len(s) && s[i] == '.' {
		if sp.prec, n, err = number(s[i+1:]); err != nil {
			return sp, "", err
		}
		i += 1 + n
	}
	for i < len(s) && (s[i] == 'l' || s[i] == 'h' || s[i] == 'L') {
		i++
	}
	if i == len(s) {
		return sp, "", errors.New("incomplete format")
	}
	if sp.verb = s[i]; strings.IndexByte("diuxXosrceEfFgG%", sp.verb) < 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return sp, "", fmt.Errorf("format character %q is not supported", r)
	}
	return sp, s[i+1:], nil
}

// number reads a width or precision.
func number(s string) (v, n int, err error) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		if v = v*10 + int(s[n]-'0'); v > MaxOutput {
			return 0, 0, errOutput
		}
		n++
	}
	return v, n, nil
}

func (sp spec) appendPrintf(dst []byte, v Value) ([]byte, error) {
	switch sp.verb {
	case 's', 'r', 'c':
		if sp.fill, sp.comma = 0, 0; sp.align == '=' {
			sp.align = '>'
		}
		var s string
		switch {
		case sp.verb == 'r':
			s = string(v.appendRepr(nil))
		case sp.verb == 's' || v.kind == kStr && runeLen(v.s) == 1:
			s = v.str()
		case v.kind == kStr:
			return nil, errors.New("%c needs one character")
		case !v.integral() || v.n < 0 || v.n > utf8.MaxRune || !utf8.ValidRune(rune(v.n)):
			return nil, errors.New("%c needs a character")
		default:
			s = string(rune(v.n))
		}
		if sp.verb == 'c' {
			sp.prec = -1
		}
		return sp.pad(dst, "", sp.cut(s)), nil
	case 'd', 'i', 'u':
		if v.kind == kFloat {
			i, err := truncate(v.float())
			if err != nil {
				return nil, err
			}
			v = Int(i)
		}
		sp.verb = 'd'
		return sp.appendInt(dst, v)
	case 'x', 'X', 'o':
		return sp.appendInt(dst, v)
	}
	if !v.numeric() {
		return nil, fmt.Errorf("%%%c of %s", sp.verb, v.typeName())
	}
	return sp.appendFloat(dst, v.number()), nil
}

// cut applies the precision of a string.
func (sp spec) cut(s string) string {
	if sp.prec < 0 {
		return s
	}
	n := 0
	for i := range s {
		if n == sp.prec {
			return s[:i]
		}
		n++
	}
	return s
}

func (sp spec) appendInt(dst []byte, v Value) ([]byte, error) {
	if !v.integral() {
		return nil, fmt.Errorf("%%%c of %s", sp.verb, v.typeName())
	}
	base := 10
	prefix := ""
	switch sp.verb {
	case 'x', 'X':
		base, prefix = 16, "0"+string(sp.verb)
	case 'o':
		base, prefix = 8, "0o"
	case 'b':
		base, prefix = 2, "0b"
	}
	if !sp.alt {
		prefix = ""
	}
	u := uint64(v.n)
	if v.n < 0 {
		u = -u
	}
	digits := strconv.FormatUint(u, base)
	if sp.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if sp.prec > len(digits) {
		digits = strings.Repeat("0", sp.prec-len(digits)) + digits
	}
	return sp.pad(dst, signOf(v.n < 0, sp.sign)+prefix, sp.group(digits)), nil
}

func signOf(negative bool, positive byte) string {
	switch {
	case negative:
		return "-"
	case positive == '+' || positive == ' ':
		return string(positive)
	}
	return ""
}

func (sp spec) appendFloat(dst []byte, f float64) []byte {
	sign := signOf(math.Signbit(f) && f == f, sp.sign)
	return sp.pad(dst, sign, sp.group(sp.floatText(math.Abs(f))))
}

// floatText prints a float that is not negative.
func (sp spec) floatText(f float64) string {
	prec := sp.prec
	if prec < 0 && sp.verb != 0 {
		prec = 6
	}
	s := ""
	switch verb := sp.verb | 0x20; {
	case math.IsInf(f, 1):
		s = "inf"
	case f != f:
		s = "nan"
	case verb == 'f':
		s = strconv.FormatFloat(f, 'f', prec, 64)
		if sp.alt && prec == 0 {
			s += "."
		}
	case verb == 'e':
		s = strconv.FormatFloat(f, 'e', prec, 64)
	case sp.verb == '%':
		s = strconv.FormatFloat(f*100, 'f', prec, 64) + "%"
	case sp.verb == 0 && prec < 0:
		s = string(AppendFloat(nil, f))
	default: // g, or no verb and a precision, which then keeps ".0"
		s = general(f, max(prec, 1), sp.verb == 0)
	}
	if sp.verb >= 'A' && sp.verb <= 'Z' {
		s = strings.ToUpper(s)
	}
	return s
}

// general is %g: an exponent where it is below -4 or not below prec.
func general(f float64, prec int, keepPoint bool) string {
	e := strconv.FormatFloat(f, 'e', prec-1, 64)
	mantissa, exponent, _ := strings.Cut(e, "e")
	x, _ := strconv.Atoi(exponent)
	limit := prec
	if keepPoint {
		limit-- // room for the ".0"
	}
	if x < -4 || x >= limit {
		if strings.IndexByte(mantissa, '.') >= 0 {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		return mantissa + "e" + exponent
	}
	s := strconv.FormatFloat(f, 'f', max(prec-1-x, 0), 64)
	if strings.IndexByte(s, '.') >= 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if keepPoint && strings.IndexByte(s, '.') < 0 {
		s += ".0"
	}
	return s
}

// group puts separators between thousands of the integral part.
func (sp spec) group(digits string) string {
	if sp.comma == 0 {
		return digits
	}
	every := 3
	if sp.comma == '_' && (sp.verb == 'x' || sp.verb == 'X' || sp.verb == 'o' || sp.verb == 'b') {
		every = 4
	}
	end := strings.IndexAny(digits, ".e%")
	if end < 0 || every == 4 {
		end = len(digits)
	}
	var b []byte
	for i := range end {
		if i > 0 && (end-i)%every == 0 {
			b = append(b, sp.comma)
		}
		b = append(b, digits[i])
	}
	return string(append(b, digits[end:]...))
}

// pad lays out sign and digits in the width.
func (sp spec) pad(dst []byte, sign, body string) []byte {
	missing := sp.width - runeLen(sign) - runeLen(body)
	fill := sp.fill
	if fill == 0 {
		fill = ' '
	}
	left, inner, right := 0, 0, 0
	switch {
	case missing <= 0:
	case sp.align == '<':
		right = missing
	case sp.align == '=':
		inner = missing
	case sp.align == '^':
		left, right = missing/2, missing-missing/2
	default:
		left = missing
	}
	fills := func(n int) {
		for range n {
			dst = utf8.AppendRune(dst, fill)
		}
	}
	fills(left)
	dst = append(dst, sign...)
	fills(inner)
	dst = append(dst, body...)
	fills(right)
	return dst
}

// strFormat is format.format(…).
func strFormat(v Value, a arguments) (Value, error) {
	if v.kind != kStr {
		return Value{}, fmt.Errorf("format of %s", v.typeName())
	}
	s, next := v.s, 0
	var out []byte
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			break
		}
		out = append(out, s[:i]...)
		if i+1 < len(s) && s[i+1] == s[i] {
			out, s = append(out, s[i]), s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			return Value{}, errors.New("single brace in the format")
		}
		field, layout, _ := strings.Cut(s[i+1:i+end], ":")
		s = s[i+end+1:]
		if strings.ContainsAny(field, "{[.!]") || strings.IndexByte(layout, '{') >= 0 {
			return Value{}, fmt.Errorf("field %q is not supported", clip(field))
		}
		arg, err := a.field(field, &next)
		if err != nil {
			return Value{}, err
		}
		sp, err := formatSpec(layout)
		if err != nil {
			return Value{}, err
		}
		if out, err = sp.appendFormat(out, arg); err != nil {
			return Value{}, err
		}
		if len(out) > MaxOutput {
			return Value{}, errOutput
		}
	}
	return Str(string(append(out, s...))), nil
}

// field finds the argument of a replacement field; next counts those without
// a name and is -1 once they are numbered.
func (a arguments) field(name string, next *int) (Value, error) {
	i := *next
	if name == "" {
		if i < 0 {
			return Value{}, errors.New("fields with and without numbers")
		}
		*next++
	} else if n, err := strconv.ParseUint(name, 10, 16); err == nil {
		if i > 0 {
			return Value{}, errors.New("fields with and without numbers")
		}
		i, *next = int(n), -1
	} else {
		return a.named(name)
	}
	for k, v := range a.values {
		if a.names[k] == "" {
			if i == 0 {
				return v, nil
			}
			i--
		}
	}
	return Value{}, errors.New("not enough arguments for the format")
}

// formatSpec parses [[fill]align][sign][#][0][width][,][.precision][type].
func formatSpec(s string) (spec, error) {
	sp := spec{sign: '-', prec: -1}
	whole := s
	if r, n := utf8.DecodeRuneInString(s); n > 0 && len(s) > n && strings.IndexByte("<>=^", s[n]) >= 0 {
		sp.fill, sp.align, s = r, s[n], s[n+1:]
	} else if s != "" && strings.IndexByte("<>=^", s[0]) >= 0 {
		sp.align, s = s[0], s[1:]
	}
	if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
		sp.sign, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, "#") {
		sp.alt, s = true, s[1:]
	}
	if strings.HasPrefix(s, "0") && sp.align == 0 {
		sp.fill, sp.align = '0', '='
	}
	var n int
	var err error
	if sp.width, n, err = number(s); err != nil {
		return sp, err
	}
	if s = s[n:]; s != "" && (s[0] == ',' || s[0] == '_') {
		sp.comma, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, ".") {
		if sp.prec, n, err = number(s[1:]); err != nil {
			return sp, err
		}
		if n == 0 {
			return sp, fmt.Errorf("format %q: precision is missing", clip(whole))
		}
		s = s[1+n:]
	}
	if len(s) > 1 || s != "" && strings.IndexByte("bdoxXsfFeEgG%", s[0]) < 0 {
		return sp, fmt.Errorf("format %q is not supported", clip(whole))
	}
	if s != "" {
		sp.verb = s[0]
	}
	return sp, nil
}

func (sp spec) appendFormat(dst []byte, v Value) ([]byte, error) {
	if sp == (spec{sign: '-', prec: -1}) {
		return v.appendStr(dst), nil
	}
	integer := sp.verb == 0 || strings.IndexByte("bdoxX", sp.verb) >= 0
	switch {
	case v.kind == kStr && (sp.verb == 0 || sp.verb == 's') && sp.sign == '-' && !sp.alt && sp.comma == 0:
		if sp.align == '=' && sp.fill != '0' {
			break
		}
		if sp.align == 0 || sp.align == '=' {
			sp.align = '<'
		}
		return sp.pad(dst, "", sp.cut(v.s)), nil
	case v.integral() && integer && sp.prec < 0 && (sp.comma != ',' || sp.verb == 0 || sp.verb == 'd'):
		if sp.comma != 0 && sp.align == '=' {
			break // separators among the filling zeros
		}
		if sp.verb == 0 {
			sp.verb = 'd'
		}
		return sp.appendInt(dst, v)
	case v.numeric() && (!integer || v.kind == kFloat && sp.verb == 0) && sp.verb != 's' && !sp.alt:
		if sp.comma != 0 && sp.align == '=' {
			break
		}
		return sp.appendFloat(dst, v.number()), nil
	}
	return nil, fmt.Errorf("this format of %s is not supported", v.typeName())
}

// truncate is int(f).
func truncate(f float64) (int64, error) {
	if f != f || math.IsInf(f, 0) {
		return 0, errors.New("not a finite number")
	}
	if f = math.Trunc(f); f >= 1<<63 || f < -1<<63 {
		return 0, errInteger
	}
	return int64(f), nil
}
