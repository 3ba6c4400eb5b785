package zurl

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Characters that need no escape (RFC 3986): in a path the characters of pchar
// and the slash, in a version the same without the slash, in a query also "?".
const (
	unreserved = "-._~"
	subDelims  = "!$&'()*+,;="
	inPath     = unreserved + subDelims + ":@/"
	inVersion  = unreserved + subDelims + ":@"
	inQuery    = inPath + "?"
	inHost     = unreserved + subDelims + ":@[]%"
)

var errNUL = errors.New("a NUL in it")

func mayStand(c byte, set string) bool {
	return isLetter(c) || isDigit(c) || strings.IndexByte(set, c) >= 0
}

// escape returns s with all bytes percent-encoded except the bytes of set.
func escape(s, set string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; mayStand(c, set) {
			b.WriteByte(c)
		} else {
			escapeByte(&b, c)
		}
	}
	return b.String()
}

func escapeByte(b *strings.Builder, c byte) { fmt.Fprintf(b, "%%%02X", c) }

// unescape decodes all percent-encoded bytes. NUL, raw control characters and
// the characters in forbidden are refused.
func unescape(s, forbidden string) (string, error) {
	if err := checkRaw(s, forbidden); err != nil {
		return "", err
	}
	text, err := url.PathUnescape(s)
	if strings.IndexByte(text, 0) >= 0 {
		err = errNUL
	}
	return text, err
}

// checkRaw checks the text of a URL before it is decoded.
func checkRaw(s, forbidden string) error {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == 0:
			return errNUL
		case c < ' ' || c == 0x7f:
			return fmt.Errorf("the control character %q", c)
		case strings.IndexByte(forbidden, c) >= 0:
			return fmt.Errorf("%q, which must be written %%%02X", c, c)
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return fmt.Errorf("the broken escape %q", s[i:min(i+3, len(s))])
			}
			i += 2
		}
	}
	return nil
}

// reescape normalizes the escapes of an escaped string (RFC 3986, 6.2.2):
// unreserved characters are decoded, characters that need an escape are encoded,
// and digits are in upper case.
func reescape(s, set, forbidden string) (string, error) {
	if err := checkRaw(s, forbidden); err != nil {
		return "", err
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '%' {
			b.WriteString(escape(s[i:i+1], set))
			continue
		}
		text, err := unescape(s[i:i+3], "")
		if err != nil {
			return "", err
		}
		b.WriteString(escape(text, unreserved))
		i += 2
	}
	return b.String(), nil
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
