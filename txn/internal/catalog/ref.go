package catalog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv/index"
)

// Refs are stored under these prefixes.
const (
	HeadPrefix = "heads/"
	TagPrefix  = "tags/"
)

// HeadRef returns the name that the ref of a branch is stored under.
func HeadRef(branch string) string { return HeadPrefix + branch }

// TagRef returns the name that the ref of a tag is stored under.
func TagRef(tag string) string { return TagPrefix + tag }

// ErrRefName means that a string cannot be the name of a branch or tag.
var ErrRefName = errors.New("txn: invalid name")

// Ref is a named commit: a branch, which moves, or a tag, which does not.
type Ref struct {
	Name   string
	Commit CommitID
}

// CheckRefName reports whether s can name a branch or tag. Names are UTF-8
// without spaces, control characters and the characters that revisions use
// (~ ^ : @ and \); their parts between slashes are not empty, "." or "..".
func CheckRefName(s string) error {
	bad := func(why string) error { return fmt.Errorf("%w %q: %s", ErrRefName, s, why) }
	if s == "" || len(s) > 255 {
		return bad("its length must be 1 to 255 bytes")
	}
	if strings.HasPrefix(s, "-") {
		return bad("it begins with a dash")
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || r == 0xfffd || strings.ContainsRune(`~^:@\?*[`, r) {
			return bad(fmt.Sprintf("it holds %q", r))
		}
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part == "." || part == ".." {
			return bad("a part between slashes is empty or dots")
		}
	}
	return nil
}

// Refs is the table of refs, by names with prefixes.
var Refs = Table[string, Ref]{
	space:  index.SpaceRef,
	key:    func(name string) []byte { return []byte(name) },
	encode: func(r Ref) (key, value []byte) { return []byte(r.Name), r.Commit[:] },
	Decode: func(key, b []byte) (Ref, error) {
		if len(b) != len(CommitID{}) {
			return Ref{Name: string(key)}, corrupt("ref %q of %d bytes", key, len(b))
		}
		return Ref{string(key), CommitID(b)}, nil
	},
}
