package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Object is a JSON object that keeps the order of its members and their values
// as they were written. Keys are the keys of Values.
type Object struct {
	Keys   []string
	Values map[string]json.RawMessage
}

// ParseObject takes an object apart. Bare NaN and Infinity, which Python
// writes, are ordinary values.
func ParseObject(b []byte) (*Object, error) {
	members, err := zarr.ParseAttributes(b)
	if err != nil {
		return nil, err
	}
	return objectOf(members), nil
}

// partOf is ParseObject for a value of an object that was parsed.
func partOf(parsed []byte) (*Object, error) {
	members, ok := meta.PartOf(parsed)
	if !ok {
		return nil, errors.New("not an object")
	}
	return objectOf(members), nil
}

func objectOf(members zarr.Attributes) *Object {
	o := &Object{Values: make(map[string]json.RawMessage, members.Len())}
	for key, raw := range members.All() {
		o.Set(key, raw)
	}
	return o
}

// Set replaces a member, or adds one at the end.
func (o *Object) Set(key string, v json.RawMessage) {
	if _, ok := o.Values[key]; !ok {
		o.Keys = append(o.Keys, key)
	}
	o.Values[key] = v
}

// Remove drops a member.
func (o *Object) Remove(key string) {
	delete(o.Values, key)
	o.Keys = slices.DeleteFunc(o.Keys, func(k string) bool { return k == key })
}

// Print gives the object with an indentation of two, as Zarr writers do.
func (o *Object) Print() []byte {
	var flat bytes.Buffer
	flat.WriteByte('{')
	for i, k := range o.Keys {
		if i > 0 {
			flat.WriteByte(',')
		}
		flat.Write(dtype.AppendString(nil, k))
		flat.WriteByte(':')
		flat.Write(o.Values[k])
	}
	flat.WriteByte('}')
	var out bytes.Buffer
	if json.Indent(&out, flat.Bytes(), "", "  ") != nil {
		return flat.Bytes()
	}
	return out.Bytes()
}

// UnionKeys lists the keys of a in order, then the keys that only b has.
func UnionKeys(a, b *Object) []string {
	keys := slices.Clone(a.Keys)
	for _, k := range b.Keys {
		if _, ok := a.Values[k]; !ok {
			keys = append(keys, k)
		}
	}
	return keys
}

// SameJSON reports whether two values are equal except for white space. nil
// means absent.
func SameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// OrEmpty returns a value, or an empty object for nil.
func OrEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("{}")
	}
	return raw
}
