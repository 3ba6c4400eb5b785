package jinja

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A piece is a stretch of template source: text, or what stands in a tag.
type piece struct {
	kind   pieceKind
	text   string  // of pieceText
	tokens []token // of the others; the last one is an end
}

type pieceKind uint8

const (
	pieceText  pieceKind = iota
	pieceExpr            // {{ … }}
	pieceBlock           // {% … %}
)

type tokenKind uint8

const (
	tEnd tokenKind = iota
	tName
	tConst // a number
	tStr
	tOp
)

type token struct {
	kind  tokenKind
	text  string // of tName and tOp
	value Value  // of tConst and tStr
}

func (t token) String() string {
	switch t.kind {
	case tEnd:
		return "end of the expression"
	case tConst, tStr:
		return string(t.value.appendRepr(nil))
	}
	return strconv.Quote(t.text)
}

// isSpace is what \s matches and str.rstrip removes.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func trimLeft(s string) string  { return strings.TrimLeftFunc(s, isSpace) }
func trimRight(s string) string { return strings.TrimRightFunc(s, isSpace) }

// normalNewlines gives every line end as "\n".
func normalNewlines(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// split cuts a template into pieces. As in Jinja2, one newline at the end of
// the source does not count, a "-" beside a delimiter removes white space
// beyond it, and a "+" there means nothing.
func split(src string) ([]piece, error) {
	src = strings.TrimSuffix(normalNewlines(src), "\n")
	var pieces []piece
	text := func(s string) {
		if s != "" {
			pieces = append(pieces, piece{kind: pieceText, text: s})
		}
	}
	for src != "" {
		at, raw := nextTag(src)
		if at < 0 {
			text(src)
			break
		}
		before, tag, rest := src[:at], src[at+1], src[at+2:]
		if rest != "" && (rest[0] == '-' || rest[0] == '+') {
			if rest[0] == '-' {
				before = trimRight(before)
			}
			rest = rest[1:]
		}
		text(before)
		var err error
		switch {
		case raw:
			var body string
			if body, src, err = rawBody(rest); err == nil {
				text(body)
			}
		case tag == '#':
			src, err = skipComment(rest)
		default:
			p := piece{kind: pieceExpr}
			if tag == '%' {
				p.kind = pieceBlock
			}
			p.tokens, src, err = tokenize(rest, p.kind)
			pieces = append(pieces, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return pieces, nil
}

// nextTag finds the first delimiter, and whether it opens a raw block.
func nextTag(src string) (at int, raw bool) {
	for at = 0; ; at++ {
		i := strings.IndexByte(src[at:], '{')
		if i < 0 || at+i+1 >= len(src) {
			return -1, false
		}
		at += i
		switch src[at+1] {
		case '{', '#':
			return at, false
		case '%':
			return at, rawTag(src[at+2:], "raw") >= 0
		}
	}
}

// rawTag returns the length of `[-+] name -%}`, without what white space
// control removes behind it, or -1.
func rawTag(s, name string) int {
	rest := s
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		rest = rest[1:]
	}
	rest, ok := strings.CutPrefix(trimLeft(rest), name)
	if !ok {
		return -1
	}
	rest = trimLeft(rest)
	if name == "endraw" {
		rest = strings.TrimPrefix(rest, "+")
	}
	if rest, ok = strings.CutPrefix(strings.TrimPrefix(rest, "-"), "%}"); !ok {
		return -1
	}
	return len(s) - len(rest)
}

// rawBody takes a raw block from behind its opening "{%".
func rawBody(s string) (body, rest string, err error) {
	n := rawTag(s, "raw")
	strip := s[n-3] == '-'
	if s = s[n:]; strip {
		s = trimLeft(s)
	}
	for from := 0; ; {
		i := strings.Index(s[from:], "{%")
		if i < 0 {
			return "", "", errors.New("raw block without end")
		}
		at := from + i
		inner := s[at+2:]
		if n = rawTag(inner, "endraw"); n < 0 {
			from = at + 2
			continue
		}
		body, rest = s[:at], inner[n:]
		if inner[0] == '-' {
			body = trimRight(body)
		}
		if inner[n-3] == '-' {
			rest = trimLeft(rest)
		}
		return body, rest, nil
	}
}

func skipComment(s string) (rest string, err error) {
	i := strings.Index(s, "#}")
	if i < 0 {
		return "", errors.New("comment without end")
	}
	if rest = s[i+2:]; i > 0 && s[i-1] == '-' {
		rest = trimLeft(rest)
	}
	return rest, nil
}

// maxTokens bounds one tag: evaluation may cost the square of it.
const maxTokens = 2000

// operators, longer ones first.
var operators = []string{
	"//", "**", "==", "!=", ">=", "<=",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";",
}

// tokenize reads the inside of a tag up to its end and returns what follows.
func tokenize(s string, in pieceKind) (tokens []token, rest string, err error) {
	end, what := "}}", "{{"
	if in == pieceBlock {
		end, what = "%}", "{%"
	}
	depth := 0 // open brackets: in them "}}" is no end
	for {
		s = trimLeft(s)
		if s == "" {
			return nil, "", fmt.Errorf("%q without %q", what, end)
		}
		if depth == 0 {
			switch {
			case strings.HasPrefix(s, end):
				return append(tokens, token{}), s[2:], nil
			case strings.HasPrefix(s, "-"+end):
				return append(tokens, token{}), trimLeft(s[3:]), nil
			case in == pieceBlock && strings.HasPrefix(s, "+"+end):
				return append(tokens, token{}), s[3:], nil
			}
		}
		var t token
		var n int
		r, _ := utf8.DecodeRuneInString(s)
		switch {
		case r >= '0' && r <= '9':
			t, n, err = lexNumber(s)
		case r == '_' || unicode.IsLetter(r):
			t, n = lexName(s)
		case r == '\'' || r == '"':
			t, n, err = lexString(s)
		default:
			t, n, err = lexOperator(s)
		}
		if err != nil {
			return nil, "", err
		}
		if t.kind == tOp {
			switch t.text {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				if depth--; depth < 0 {
					return nil, "", fmt.Errorf("unexpected %q", t.text)
				}
			}
		}
		if tokens, s = append(tokens, t), s[n:]; len(tokens) > maxTokens {
			return nil, "", errors.New("expression too long")
		}
	}
}

func lexOperator(s string) (token, int, error) {
	for _, op := range operators {
		if strings.HasPrefix(s, op) {
			return token{kind: tOp, text: op}, len(op), nil
		}
	}
	r, _ := utf8.DecodeRuneInString(s)
	return token{}, 0, fmt.Errorf("unexpected %q", r)
}

func lexName(s string) (token, int) {
	n := strings.IndexFunc(s, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if n < 0 {
		n = len(s)
	}
	return token{kind: tName, text: s[:n]}, n
}

// lexNumber reads an integer (also in base 2, 8 or 16, also with "_") or a
// float.
func lexNumber(s string) (token, int, error) {
	if len(s) > 2 && s[0] == '0' && strings.IndexByte("bBoOxX", s[1]) >= 0 {
		if n := 2 + digits(s[2:], s[1], true); n > 2 {
			return intToken(s[:n])
		}
	}
	whole := digits(s, 'd', false)
	n := whole
	if n < len(s) && s[n] == '.' {
		if d := digits(s[n+1:], 'd', false); d > 0 {
			n += 1 + d
		}
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		e := n + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if d := digits(s[e:], 'd', false); d > 0 {
			n = e + d
		}
	}
	if n > whole {
		f, err := strconv.ParseFloat(strings.ReplaceAll(s[:n], "_", ""), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // too large is infinite, as in Python
			return token{}, 0, fmt.Errorf("number %q", s[:n])
		}
		return token{kind: tConst, value: Float(f)}, n, nil
	}
	if s[0] == '0' && strings.Trim(s[:whole], "0_") != "" {
		return token{}, 0, fmt.Errorf("number %q: integers have no leading zeros", s[:whole])
	}
	return intToken(s[:whole])
}

// digits counts leading digits of a base; single "_" may stand between them.
func digits(s string, base byte, lead bool) int {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] == '_' && (n > 0 || lead) && n == i {
			continue
		}
		ok := false
		switch c := s[i]; base | 0x20 {
		case 'b':
			ok = c == '0' || c == '1'
		case 'o':
			ok = c >= '0' && c <= '7'
		case 'x':
			ok = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
		default:
			ok = c >= '0' && c <= '9'
		}
		if !ok {
			break
		}
		n = i + 1
	}
	return n
}

func intToken(s string) (token, int, error) {
	plain := strings.ReplaceAll(s, "_", "")
	base := 10
	if len(plain) > 1 && plain[0] == '0' && plain[1] > '9' {
		base = 0
	}
	i, err := strconv.ParseInt(plain, base, 64)
	if err != nil {
		return token{}, 0, fmt.Errorf("number %q: %w", clip(s), errInteger)
	}
	return token{kind: tConst, value: Int(i)}, len(s), nil
}

func lexString(s string) (token, int, error) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			v, err := unescape(s[1:i])
			return token{kind: tStr, value: Str(v)}, i + 1, err
		}
	}
	return token{}, 0, errors.New("string without end")
}

// unescape resolves backslashes as in a Python string.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if j := strings.IndexByte("abfnrtv\\'\"\n", s[i]); j >= 0 {
			if s[i] != '\n' { // an escaped line end is nothing
				b.WriteByte("\a\b\f\n\r\t\v\\'\""[j])
			}
			continue
		}
		n, base := 0, 16
		switch s[i] {
		case 'x':
			n = 2
		case 'u':
			n = 4
		case 'U':
			n = 8
		case 'N':
			return "", errors.New(`string: \N is not supported`)
		default:
			if s[i] < '0' || s[i] > '7' {
				b.WriteByte('\\')
				b.WriteByte(s[i])
				continue
			}
			base = 8
			for i--; n < 3 && i+1+n < len(s) && s[i+1+n] >= '0' && s[i+1+n] <= '7'; {
				n++
			}
		}
		if i+1+n > len(s) {
			return "", fmt.Errorf("string: short escape %q", clip(s[i-1:]))
		}
		r, err := strconv.ParseUint(s[i+1:i+1+n], base, 32)
		if err != nil || !utf8.ValidRune(rune(r)) {
			return "", fmt.Errorf("string: escape %q", clip(s[i-1:]))
		}
		b.WriteRune(rune(r))
		i += n
	}
	return b.String(), nil
}

// clip shortens what an error message quotes.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
