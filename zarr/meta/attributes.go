package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// Attributes are the user attributes of a node: names with JSON values, in the
// order in which they are stored, each value as its text. It is a value:
// copies are independent of each other, and the zero Attributes is empty.
// Reading it is safe for concurrent use.
//
// A value may hold a bare NaN, Infinity or -Infinity, which Python writes and
// encoding/json refuses; MarshalJSON turns them into strings.
type Attributes struct {
	list []jsontext.Member // never changed in place
}

// ParseAttributes parses a JSON object. Errors have the position of a syntax
// error, a duplicate name or deep nesting.
func ParseAttributes(text []byte) (Attributes, error) {
	if err := jsontext.Check(text); err != nil {
		return Attributes{}, err
	}
	list, ok := jsontext.Members(bytes.Clone(text))
	if !ok {
		return Attributes{}, errors.New("not an object")
	}
	return Attributes{list}, nil
}

// PartOf takes an object apart that is a part of parsed text, such as a value of other attributes. It does
// not check the text again. ok is false for other values.
func PartOf(parsed json.RawMessage) (a Attributes, ok bool) {
	if parsed = bytes.TrimSpace(parsed); len(parsed) == 0 || parsed[0] != '{' {
		return a, false
	}
	a.list, ok = jsontext.Members(parsed)
	return a, ok
}

// Len returns the number of attributes.
func (a Attributes) Len() int { return len(a.list) }

// Keys returns the names in stored order. The caller owns the slice.
func (a Attributes) Keys() []string {
	keys := make([]string, len(a.list))
	for i, m := range a.list {
		keys[i] = m.Name
	}
	return keys
}

// All yields names and values in stored order. The values must not be changed.
func (a Attributes) All() iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for _, m := range a.list {
			if !yield(m.Name, m.Value) {
				return
			}
		}
	}
}

func (a Attributes) index(key string) int {
	return slices.IndexFunc(a.list, func(m jsontext.Member) bool { return m.Name == key })
}

// Get returns the value of an attribute, which must not be changed. It compares
// one name after the other: to look at every attribute use All.
func (a Attributes) Get(key string) (json.RawMessage, bool) {
	if i := a.index(key); i >= 0 {
		return a.list[i].Value, true
	}
	return nil, false
}

// Set sets an attribute: to the JSON text of a json.RawMessage, else to the
// output of encoding/json. A new attribute comes last.
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
	if err := jsontext.Check(raw); err != nil {
		return fmt.Errorf("attribute %q: %w", key, err)
	}
	a.put(key, raw)
	return nil
}

func (a *Attributes) put(key string, raw json.RawMessage) {
	list := slices.Clone(a.list)
	if i := a.index(key); i >= 0 {
		list[i].Value = raw
	} else {
		list = append(list, jsontext.Member{Name: key, Value: raw})
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

// Equal reports whether a and b have the same names with equal values. Order and
// white space do not matter, but 1 and 1.0 differ.
func (a Attributes) Equal(b Attributes) bool {
	if len(a.list) != len(b.list) {
		return false
	}
	sameOrder := true
	for i, m := range a.list {
		if m.Name != b.list[i].Name {
			sameOrder = false
			break
		}
	}
	x, y := a.list, b.list
	if !sameOrder {
		x, y = a.byName(), b.byName()
	}
	return slices.EqualFunc(x, y, func(m, n jsontext.Member) bool { return m.Name == n.Name && jsontext.Same(m.Value, n.Value) })
}

func (a Attributes) byName() []jsontext.Member {
	list := slices.Clone(a.list)
	jsontext.Sort(list)
	return list
}

func (a Attributes) values() map[string]json.RawMessage {
	byName := make(map[string]json.RawMessage, len(a.list))
	for _, m := range a.list {
		byName[m.Name] = m.Value
	}
	return byName
}

// MarshalJSON returns the attributes as one object in stored order. It is
// strict JSON: a bare NaN or infinity becomes a string.
func (a Attributes) MarshalJSON() ([]byte, error) { return jsontext.AppendStrict(nil, a.Text()), nil }

// UnmarshalJSON is [ParseAttributes].
func (a *Attributes) UnmarshalJSON(text []byte) error {
	b, err := ParseAttributes(text)
	if err == nil {
		*a = b
	}
	return err
}

// Text returns the attributes as one object in stored order, every value verbatim;
// [Attributes.MarshalJSON] gives strict JSON.
func (a Attributes) Text() json.RawMessage { return jsontext.Join(a.list) }

// strict returns the attributes with bare NaNs and infinities as strings.
func (a Attributes) strict() Attributes {
	list := slices.Clone(a.list)
	for i := range list {
		list[i].Value = jsontext.AppendStrict(nil, list[i].Value)
	}
	return Attributes{list}
}

// MergeAttributes returns stored with the changes that turn base into mine.
func MergeAttributes(base, mine, stored Attributes) Attributes {
	if base.Equal(stored) {
		return mine
	}
	was, wanted := base.values(), mine.values()
	changed := func(name string) bool {
		before, had := was[name]
		now, has := wanted[name]
		return had != has || has && !jsontext.Same(before, now)
	}
	var list []jsontext.Member
	seen := make(map[string]bool, len(stored.list))
	for _, m := range stored.list {
		seen[m.Name] = true
		if changed(m.Name) {
			now, has := wanted[m.Name]
			if !has {
				continue
			}
			m.Value = now
		}
		list = append(list, m)
	}
	for _, m := range mine.list {
		if !seen[m.Name] && changed(m.Name) {
			list = append(list, m)
		}
	}
	return Attributes{list}
}
