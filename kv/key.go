package kv

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidKey returns nil for a valid key, otherwise an error that is
// [ErrInvalidKey] and quotes the key. A valid key is UTF-8, is not empty,
// neither begins nor ends with a slash and has no NUL (Zarr v3 core, "Abstract
// store interface": the final character is not "/"). Empty names as in "a//b"
// are valid.
//
// Stores ([Mem], sessions, archives) call it on Set. Views that only read need
// not: a key that was never set is not found. Some stores, such as directories,
// refuse more keys. It does not allocate for a valid key.
func ValidKey(key string) error {
	reason := ""
	switch {
	case key == "":
		reason = "empty"
	case key[0] == '/':
		reason = "begins with a slash"
	case key[len(key)-1] == '/':
		reason = "ends with a slash"
	case strings.IndexByte(key, 0) >= 0:
		reason = "has a NUL"
	case !utf8.ValidString(key):
		reason = "is not UTF-8"
	default:
		return nil
	}
	return fmt.Errorf("%w %s: %s", ErrInvalidKey, quoteKey(key), reason)
}

// quoteKey prints a key for an error message, cut where it is absurdly long.
func quoteKey(key string) string {
	const most = 200
	if len(key) > most {
		return fmt.Sprintf("%q… (%d bytes)", key[:most], len(key))
	}
	return fmt.Sprintf("%q", key)
}

// validDirPrefix checks the prefix of a directory listing.
func validDirPrefix(prefix string) error {
	if prefix == "" || prefix[len(prefix)-1] == '/' {
		return nil
	}
	return fmt.Errorf("%w: prefix %s of a directory does not end with a slash", ErrInvalidKey, quoteKey(prefix))
}

// subtreeEnd returns a string greater than every valid key below dir, which ends
// in a slash: UTF-8 has no byte 0xff.
func subtreeEnd(dir string) string { return dir + "\xff" }
