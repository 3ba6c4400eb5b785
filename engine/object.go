package engine

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// object is a JSON object that keeps the order of its members and their values
// as they were written.
type object struct {
	keys   []string
	values map[string]json.RawMessage
}

// parseObject takes an object apart. Bare NaN and Infinity, which Python
// writes, are values like others.
func parseObject(b []byte) (*object, error) {
	members, err := zarr.ParseAttributes(b)
	if err != nil {
		return nil, err
	}
	o := &object{values: make(map[string]json.RawMessage, members.Len())}
	for key, raw := range members.All() {
		o.set(key, raw)
	}
	return o, nil
}

func (o *object) set(key string, v json.RawMessage) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = v
}

func (o *object) remove(key string) {
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
}

// print gives the object with an indentation of two, as Zarr writers do.
func (o *object) print() []byte {
	var flat bytes.Buffer
	flat.WriteByte('{')
	for i, k := range o.keys {
		if i > 0 {
			flat.WriteByte(',')
		}
		flat.Write(dtype.AppendString(nil, k))
		flat.WriteByte(':')
		flat.Write(o.values[k])
	}
	flat.WriteByte('}')
	var out bytes.Buffer
	if json.Indent(&out, flat.Bytes(), "", "  ") != nil {
		return flat.Bytes()
	}
	return out.Bytes()
}

// unionKeys lists the keys of a in order, then those only b has.
func unionKeys(a, b *object) []string {
	keys := slices.Clone(a.keys)
	for _, k := range b.keys {
		if _, ok := a.values[k]; !ok {
			keys = append(keys, k)
		}
	}
	return keys
}

// sameJSON reports whether two values are the same but for white space. nil
// stands for absent.
func sameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
