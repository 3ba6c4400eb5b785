package icechunk

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/internal/msgpack"
)

// Metadata of a snapshot: names with values, which are MessagePack in files of version
// 1 and flexbuffers in files of version 2. Strings, numbers and bools are read; other
// values are left out, because nothing here gives them a meaning.

// authorName is the name of the metadata that an author is read from and written to.
const authorName = "author"

// parseMetadata returns the metadata that a vector of a flatbuffer has: strings as they
// are, other values as JSON.
func parseMetadata(v vector, spec byte) map[string]string {
	if v.n == 0 {
		return nil
	}
	found := map[string]string{}
	for i := range v.n {
		t := v.table(i)
		name, value := t.needBytes(0, "the name of metadata"), t.needBytes(1, "the value of metadata")
		if v.f.err != nil {
			return nil
		}
		var x any
		ok := false
		if spec == spec1 {
			x, ok = parseMessage(value)
		} else {
			root, _ := parseFlex(value)
			x, ok = root.scalar()
		}
		if !ok || !utf8.Valid(name) {
			continue
		}
		if s, is := x.(string); is {
			found[string(name)] = s
		} else if b, err := json.Marshal(x); err == nil {
			found[string(name)] = string(b)
		}
	}
	return found
}

// parseMessage reads a scalar of MessagePack.
func parseMessage(b []byte) (x any, ok bool) {
	r := msgpack.Reader{Src: b}
	switch it := r.Head(); it.Kind {
	case msgpack.Nil:
		return nil, true
	case msgpack.False, msgpack.True:
		return it.Kind == msgpack.True, true
	case msgpack.Uint:
		return it.N, true
	case msgpack.Int:
		return int64(it.N), true
	case msgpack.Float:
		return it.Float, true
	case msgpack.Text:
		text := r.Next(it.N)
		return string(text), uint64(len(text)) == it.N && utf8.Valid(text)
	}
	return nil, false
}
