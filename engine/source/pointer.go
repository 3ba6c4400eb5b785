package source

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
)

// maxJSON is how large a document json: reads, which has to be in memory.
const maxJSON = 64 << 20

// openJSON opens json:POINTER, the value that a JSON pointer (RFC 6901) names
// in a document. It is a file with the text of that value, and an array without
// dimensions whose one element it is (ZEP 8, "json").
func openJSON(ctx context.Context, _ *Env, from Place, part zurl.Part) (Place, error) {
	v, err := from.File(ctx)
	if err != nil {
		return from, err
	}
	if v.Size() > maxJSON {
		return from, fmt.Errorf("json: a document of %d bytes is too large, %d are possible", v.Size(), maxJSON)
	}
	doc, err := kv.ReadValue(ctx, v, kv.All())
	if err != nil {
		return from, err
	}
	if !json.Valid(doc) {
		return from, fmt.Errorf("%w: json: the file is not a JSON document", kv.ErrCorrupt)
	}
	pointer, err := part.Pointer()
	if err != nil {
		return from, err
	}
	text, err := pointed(doc, pointer)
	if err != nil {
		return from, fmt.Errorf("json:%s: %w", part.Path, err)
	}
	view, err := jsonArray(ctx, text)
	return Place{View: view, Kind: dataset, Value: kv.Bytes(text)}, err
}

// pointed returns the text of the value that a pointer names in a valid
// document.
func pointed(doc json.RawMessage, pointer string) (json.RawMessage, error) {
	if pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("a JSON pointer begins with a slash: %w", kv.ErrNotFound)
	}
	for pointer != "" {
		token, rest, more := strings.Cut(pointer[1:], "/")
		if pointer = ""; more {
			pointer = "/" + rest
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		next, err := member(doc, token)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return nil, fmt.Errorf("there is no %q: %w", token, kv.ErrNotFound)
		}
		doc = next
	}
	return doc, nil
}

// member returns a member of an object or an element of an array, nil if it is
// missing; the last of two members with one name.
func member(doc json.RawMessage, token string) (json.RawMessage, error) {
	switch doc = bytes.TrimLeft(doc, " \t\r\n"); doc[0] {
	case '{':
		var members map[string]json.RawMessage
		err := json.Unmarshal(doc, &members)
		return members[token], err
	case '[':
		i, err := strconv.ParseUint(token, 10, 31)
		if err != nil || strconv.FormatUint(i, 10) != token {
			return nil, nil
		}
		var elements []json.RawMessage
		if err := json.Unmarshal(doc, &elements); err != nil || i >= uint64(len(elements)) {
			return nil, err
		}
		return elements[i], nil
	}
	return nil, nil
}

// jsonArray is a store with an array of one JSON value.
func jsonArray(ctx context.Context, text []byte) (*kv.Mem, error) {
	m := kv.NewMem()
	const array = `{"zarr_format":2,"shape":[],"chunks":[],"dtype":"|O","order":"C","fill_value":null,
"compressor":null,"filters":[{"id":"json2"}]}`
	if err := m.Set(ctx, names.V2Array, []byte(array)); err != nil {
		return nil, err
	}
	// numcodecs' json2: the elements, then data type and shape.
	return m, m.Set(ctx, "0", fmt.Appendf(nil, `[%s,"|O",[]]`, text))
}
