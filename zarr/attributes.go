package zarr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Attributes are the user attributes of a node: names with JSON values, in the
// order in which they are stored, each value as its text. It is a value:
// copies are independent of each other, and the zero Attributes is empty.
// Reading it is safe for concurrent use.
//
// A value may hold a bare NaN, Infinity or -Infinity, which Python writes and
// encoding/json refuses; MarshalJSON turns them into strings.
type Attributes struct {
	list []jsonMember // never changed in place
}

// ParseAttributes parses a JSON object. Errors say where it is none, or none
// that is safe to keep: names that stand twice, deep nesting.
func ParseAttributes(text []byte) (Attributes, error) {
	if err := checkJSON(text); err != nil {
		return Attributes{}, err
	}
	list, ok := members(bytes.Clone(text))
	if !ok {
		return Attributes{}, errors.New("not an object")
	}
	return Attributes{list}, nil
}

// Len returns the number of attributes.
func (a Attributes) Len() int { return len(a.list) }

// Keys returns the names in stored order. The caller owns the slice.
func (a Attributes) Keys() []string {
	keys := make([]string, len(a.list))
	for i, m := range a.list {
		keys[i] = m.name
	}
	return keys
}

// All yields names and values in stored order. The values must not be changed.
func (a Attributes) All() iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for _, m := range a.list {
			if !yield(m.name, m.value) {
				return
			}
		}
	}
}

func (a Attributes) index(key string) int {
	return slices.IndexFunc(a.list, func(m jsonMember) bool { return m.name == key })
}

// Get returns the value of an attribute, which must not be changed. It compares
// one name after the other: to look at every attribute use All.
func (a Attributes) Get(key string) (json.RawMessage, bool) {
	if i := a.index(key); i >= 0 {
		return a.list[i].value, true
	}
	return nil, false
}

// Set gives an attribute a value: JSON text if it is a json.RawMessage, else
// what encoding/json makes of it. A new attribute comes last.
func (a *Attributes) Set(key string, value any) error {
	raw, ok := value.(json.RawMessage)
	if ok {
		raw = bytes.Clone(bytes.TrimSpace(raw))
	} else {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(value); err != nil {
			return fmt.Errorf("attribute %q: %w", key, err)
		}
		raw = bytes.TrimSpace(b.Bytes())
	}
	if err := checkJSON(raw); err != nil {
		return fmt.Errorf("attribute %q: %w", key, err)
	}
	a.put(key, raw)
	return nil
}

func (a *Attributes) put(key string, raw json.RawMessage) {
	list := slices.Clone(a.list)
	if i := a.index(key); i >= 0 {
		list[i].value = raw
	} else {
		list = append(list, jsonMember{key, raw})
	}
	a.list = list
}

// Delete removes an attribute and reports whether it was there.
func (a *Attributes) Delete(key string) bool {
	i := a.index(key)
	if i < 0 {
		return false
	}
	a.list = slices.Delete(slices.Clone(a.list), i, i+1)
	return true
}

// Equal reports whether a and b have the same names with values that mean the
// same. Order and spelling do not matter, but 1 and 1.0 differ.
func (a Attributes) Equal(b Attributes) bool {
	if len(a.list) != len(b.list) {
		return false
	}
	sameOrder := true
	for i, m := range a.list {
		if m.name != b.list[i].name {
			sameOrder = false
			break
		}
	}
	x, y := a.list, b.list
	if !sameOrder {
		x, y = a.byName(), b.byName()
	}
	return slices.EqualFunc(x, y, func(m, n jsonMember) bool { return m.name == n.name && sameJSON(m.value, n.value) })
}

func (a Attributes) byName() []jsonMember {
	list := slices.Clone(a.list)
	sortMembers(list)
	return list
}

func (a Attributes) values() map[string]json.RawMessage {
	byName := make(map[string]json.RawMessage, len(a.list))
	for _, m := range a.list {
		byName[m.name] = m.value
	}
	return byName
}

func sameJSON(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || bytes.Equal(canonical(a), canonical(b))
}

// MarshalJSON returns the attributes as one object in stored order. It is
// strict JSON: a bare NaN or infinity becomes a string.
func (a Attributes) MarshalJSON() ([]byte, error) { return appendStrict(nil, a.text()), nil }

// UnmarshalJSON is [ParseAttributes].
func (a *Attributes) UnmarshalJSON(text []byte) error {
	b, err := ParseAttributes(text)
	if err == nil {
		*a = b
	}
	return err
}

// text returns the attributes as an object with every value as it is.
func (a Attributes) text() json.RawMessage { return joinMembers(a.list) }

// strict returns the attributes with bare NaNs and infinities as strings.
func (a Attributes) strict() Attributes {
	list := slices.Clone(a.list)
	for i := range list {
		list[i].value = appendStrict(nil, list[i].value)
	}
	return Attributes{list}
}
