package jinja

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
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

// isName reports whether t is a name.
func (t token) isName() bool {
	r, _ := utf8.DecodeRuneInString(t.text)
	return t.kind == tWord && (r == '_' || unicode.IsLetter(r)) && !Reserved(t.text)
}

var reserved = []string{"true", "false", "none", "True", "False", "None", "not", "and", "or", "if", "else", "in", "is"}

// Reserved reports whether a word belongs to the language and cannot be a name.
func Reserved(word string) bool { return slices.Contains(reserved, word) }

// maxTokens bounds one tag: evaluation may cost the square of it.
const maxTokens = 2000

var (
	numbers = regexp.MustCompile(`^[0-9][0-9A-Za-z_]*(\.[0-9]+)?`)
	words   = regexp.MustCompile(`^(?s:[\pL_][\pL\p{Nd}_]*|//|\*\*|[=!<>]=|.)`)
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
	p.src = strings.TrimLeftFunc(p.src, isSpace)
	if rest, ok := strings.CutPrefix(p.src, p.close); ok {
		p.src = rest
		return
	}
	if rest, ok := strings.CutPrefix(p.src, "-"+p.close); ok {
		p.src = strings.TrimLeftFunc(rest, isSpace)
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
	if text := numbers.FindString(p.src); text != "" {
		p.number(text)
	} else {
		p.tok = token{kind: tWord, text: words.FindString(p.src)}
	}
	p.src = p.src[len(p.tok.text):]
}

// number makes a token of a decimal integer.
func (p *parser) number(s string) {
	i, ok, err := ParseInt(s)
	if err == nil && (!ok || len(s) > 1 && s[0] == '0') {
		err = unsupported("number %q", clip(s))
	}
	if p.tok = (token{tConst, s, Int(i)}); err != nil {
		p.fail(err)
	}
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

// clip shortens what an error message quotes.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
