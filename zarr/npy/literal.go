package npy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Python literals, as many of them as headers consist of. A value is a string,
// an int64, a bool, nil, a tuple, a list or a dict.
type (
	tuple []any
	list  []any
	dict  map[string]any
)

// maxDepth bounds how deep literals are nested.
const maxDepth = 64

var errLiteral = errors.New("not a Python literal")

// literal parses a whole text.
func literal(text string) (any, error) {
	p := parser{text: text}
	v, err := p.value(0)
	if err == nil {
		if p.skipBlanks(); p.text != "" {
			err = p.fail()
		}
	}
	return v, err
}

type parser struct{ text string } // the rest of the text

func (p *parser) fail() error {
	return fmt.Errorf("%w at %.20q", errLiteral, p.text)
}

func (p *parser) skipBlanks() { p.text = strings.TrimLeft(p.text, " \t\r\n") }

// accept skips blanks and then s, and reports whether s was there.
func (p *parser) accept(s string) bool {
	p.skipBlanks()
	rest, ok := strings.CutPrefix(p.text, s)
	if ok {
		p.text = rest
	}
	return ok
}

func (p *parser) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: nested too deep", errLiteral)
	}
	switch {
	case p.accept("("):
		items, comma, err := p.items(")", depth)
		if len(items) == 1 && !comma {
			return items[0], err // parentheses alone
		}
		return tuple(items), err
	case p.accept("["):
		items, _, err := p.items("]", depth)
		return list(items), err
	case p.accept("{"):
		return p.dict(depth)
	case p.accept("True"):
		return true, nil
	case p.accept("False"):
		return false, nil
	case p.accept("None"):
		return nil, nil
	}
	for _, open := range []string{"'", `"`, "u'", `u"`} {
		if p.accept(open) {
			return p.string(open[len(open)-1])
		}
	}
	end := strings.IndexFunc(p.text, func(c rune) bool { return c != '-' && (c < '0' || c > '9') })
	if end < 0 {
		end = len(p.text)
	}
	n, err := strconv.ParseInt(p.text[:end], 10, 64)
	if err != nil {
		return nil, p.fail()
	}
	p.text = strings.TrimPrefix(p.text[end:], "L") // Python 2 wrote long integers so
	return n, nil
}

// items parses up to the closing mark. comma reports a comma behind the last item.
func (p *parser) items(end string, depth int) (items []any, comma bool, err error) {
	for !p.accept(end) {
		if len(items) > 0 && !comma {
			return nil, false, p.fail()
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, false, err
		}
		items, comma = append(items, v), p.accept(",")
	}
	return items, comma, nil
}

func (p *parser) dict(depth int) (any, error) {
	d, comma := dict{}, true
	for !p.accept("}") {
		if !comma {
			return nil, p.fail()
		}
		key, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if _, twice := d[name]; !ok || twice || !p.accept(":") {
			return nil, p.fail()
		}
		if d[name], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		comma = p.accept(",")
	}
	return d, nil
}

// string parses a string after its opening quote.
func (p *parser) string(quote byte) (any, error) {
	var b strings.Builder
	for i := 0; i < len(p.text); {
		switch c := p.text[i]; c {
		case quote:
			p.text = p.text[i+1:]
			return b.String(), nil
		case '\\':
			n, err := unescape(&b, p.text[i+1:])
			if err != nil {
				return nil, err
			}
			i += 1 + n
		default:
			b.WriteByte(c)
			i++
		}
	}
	return nil, fmt.Errorf("%w: a string without an end", errLiteral)
}

// unescape writes the character of an escape and returns its length.
func unescape(b *strings.Builder, s string) (int, error) {
	if s == "" {
		return 0, errLiteral
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]
	if i := strings.IndexByte(`\'"abfnrtv`, s[0]); i >= 0 {
		b.WriteByte("\\'\"\a\b\f\n\r\t\v"[i])
		return 1, nil
	}
	if digits == 0 || len(s) < 1+digits {
		return 0, fmt.Errorf("%w: escape \\%.1q", errLiteral, s)
	}
	c, err := strconv.ParseUint(s[1:1+digits], 16, 32)
	if err != nil || c > utf8.MaxRune || !utf8.ValidRune(rune(c)) {
		return 0, fmt.Errorf("%w: escape \\%.9q", errLiteral, s)
	}
	b.WriteRune(rune(c))
	return 1 + digits, nil
}
