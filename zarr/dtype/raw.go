package dtype

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The text parsed here is part of a document whose syntax, nesting and names
// have been checked.

// asString returns the value of raw if it is a JSON string. One with half a
// surrogate pair is refused: it is not text.
func asString(raw json.RawMessage) (string, bool) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	if json.Unmarshal(raw, &s) != nil || !utf8.Valid(raw) || loneSurrogate(raw) {
		return "", false
	}
	return s, true
}

// loneSurrogate reports whether a valid JSON string escapes half a surrogate
// pair. The decoder would quietly replace it.
func loneSurrogate(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		r, ok := unicodeEscape(raw[i:])
		i++
		if !ok || !utf16.IsSurrogate(r) {
			continue
		}
		low, ok := unicodeEscape(raw[min(i+5, len(raw)):])
		if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
			return true
		}
		i += 10
	}
	return false
}

// unicodeEscape returns the code unit of the escape that text begins with.
func unicodeEscape(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

// asObject returns the members of the object that raw is, if it is one.
func asObject(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	var m map[string]json.RawMessage
	err := json.Unmarshal(raw, &m)
	return m, err == nil
}

// asList returns the elements of the list that raw is, if it is one.
func asList(raw json.RawMessage) ([]json.RawMessage, bool) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	var l []json.RawMessage
	err := json.Unmarshal(raw, &l)
	return l, err == nil
}

// asInt returns the integer that raw is: no fraction, no exponent.
func asInt(raw json.RawMessage) (int64, error) {
	raw = bytes.TrimSpace(raw)
	if !isNumber(raw) {
		return 0, errors.New("not an integer")
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errRange
	case err != nil:
		return 0, errors.New("not an integer")
	}
	return n, nil
}

// isNumber reports whether raw is a JSON number.
func isNumber(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') && json.Valid(raw)
}
