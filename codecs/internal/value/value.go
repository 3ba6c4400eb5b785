package value

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Absent reports whether a member is missing or null.
func Absent(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// Clip shortens a JSON value for an error text.
func Clip(raw json.RawMessage) string {
	if len(raw) > 40 {
		return fmt.Sprintf("%s…", raw[:40])
	}
	return string(raw)
}

// Elements returns the number of elements of a shape from a configuration or a
// chunk, -1 if a size is negative or the product far beyond any chunk.
func Elements(shape []int) int64 {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || int64(d) > 1<<31 || n > 1<<31 {
			return -1
		}
		n *= int64(d)
	}
	return n
}
