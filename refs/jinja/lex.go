package jinja

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tEnd   tokenKind = iota // of the tag
	tWord                   // a name or an operator
	tConst                  // a number or string
)

type token struct {
	kind  tokenKind
	text  string
	value Value // of tConst
}

func (t token) String() string {
	if t.kind == tEnd {
		return "end of the expression"
	}
	return strconv.Quote(clip(t.text))
}

// isName reports whether t is a name, perhaps a reserved one.
func (t token) isName() bool {
	r, _ := utf8.DecodeRuneInString(t.text)
	return t.kind == tWord && (r == '_' || unicode.IsLetter(r))
}

// maxTokens bounds one tag: evaluation may cost the square of it.
const maxTokens = 2000

var (
	numbers = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?[0-9A-Za-z_]*`)
	words   = regexp.MustCompile(`^([\pL_][\pL\p{Nd}_]*|//|\*\*|[=!<>]=|[-+*/%~()\[\]{}<>=.:|,])`)
)

// advance reads the next token of a tag. At its end, it also removes the white
// space behind it where a "-" asks for that.
func (p *parser) advance() {
	p.tok = token{}
	if p.err != nil {
		return
	}
	if p.count++; p.count > maxTokens {
		p.fail(errors.New("expression too long"))
		return
	}
	p.src = trimLeft(p.src)
	if rest, ok := strings.CutPrefix(p.src, p.close); ok {
		p.src = rest
		return
	}
	if rest, ok := strings.CutPrefix(p.src, "-"+p.close); ok {
		p.src = trimLeft(rest)
		return
	}
	if p.src == "" {
		p.fail(fmt.Errorf("tag without %q", p.close))
		return
	}
	if p.src[0] == '\'' || p.src[0] == '"' {
		p.quoted()
		return
	}
	text := numbers.FindString(p.src)
	if text != "" {
		v, err := number(text)
		if err != nil {
			p.fail(err)
			return
		}
		p.tok = token{tConst, text, v}
	} else {
		if text = words.FindString(p.src); text == "" {
			r, _ := utf8.DecodeRuneInString(p.src)
			p.fail(fmt.Errorf("unexpected %q", r))
			return
		}
		p.tok = token{kind: tWord, text: text}
	}
	p.src = p.src[len(text):]
}

// number reads a decimal integer or float.
func number(s string) (Value, error) {
	f, err := strconv.ParseFloat(s, 64)
	plain := strings.Trim(s, "0123456789") == ""
	if err != nil || strings.Trim(s, "0123456789.eE+-") != "" || plain && len(s) > 1 && s[0] == '0' {
		return Value{}, unsupported("number %q", clip(s))
	}
	if !plain {
		return Float(f), nil
	}
	i, _, err := ParseInt(s)
	return Int(i), err
}

// quoted reads a string.
func (p *parser) quoted() {
	const escapes, meaning = `\'"nrt`, "\\'\"\n\r\t"
	var b []byte
	for i := 1; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == p.src[0]:
			p.tok, p.src = token{tConst, p.src[:i+1], Str(string(b))}, p.src[i+1:]
			return
		case c != '\\':
			b = append(b, c)
		default:
			i++
			if i == len(p.src) {
				break
			}
			at := strings.IndexByte(escapes, p.src[i])
			if at < 0 {
				p.fail(unsupported("escape %q", p.src[i-1:i+1]))
				return
			}
			b = append(b, meaning[at])
		}
	}
	p.fail(errors.New("string without end"))
}

func trimLeft(s string) string { return strings.TrimLeftFunc(s, isSpace) }

// clip shortens what an error message quotes.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
