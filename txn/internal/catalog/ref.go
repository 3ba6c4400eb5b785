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

// MainBranch is the branch that a new database begins with.
const MainBranch = "main"

// IsHead reports whether a ref is a branch.
func IsHead(ref string) bool {
	return len(ref) > len(HeadPrefix) && strings.HasPrefix(ref, HeadPrefix)
}

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

// inRefName reports whether a character may stand in a name.
func inRefName(r rune) bool {
	return r > ' ' && r != 0x7f && r != 0xfffd && !strings.ContainsRune(`~^:@\?*[`, r)
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
		if !inRefName(r) {
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

// ToRefName returns a name like s that can name a branch or tag: "_" stands for what
// cannot be in one. A name that can be stays; one that is too long does, too.
func ToRefName(s string) string {
	if CheckRefName(s) == nil {
		return s
	}
	parts := strings.Split(s, "/")
	for i, part := range parts {
		if strings.Trim(part, ".") == "" && len(part) < 3 {
			parts[i] = strings.Repeat("_", max(len(part), 1))
			continue
		}
		parts[i] = strings.Map(func(r rune) rune {
			if !inRefName(r) {
				return '_'
			}
			return r
		}, part)
	}
	if strings.HasPrefix(parts[0], "-") {
		parts[0] = "_" + parts[0][1:]
	}
	return strings.Join(parts, "/")
}

// Refs is the table of refs, by names with prefixes.
var Refs = Table[string, Ref]{
	space:  index.SpaceRef,
	key:    func(name string) []byte { return []byte(name) },
	encode: func(r Ref) (key, value []byte) { return []byte(r.Name), r.Commit[:] },
	Decode: func(key, b []byte) (Ref, error) {
		if len(b) != len(CommitID{}) {
			return Ref{Name: string(key)}, Corrupt("ref %q of %d bytes", key, len(b))
		}
		return Ref{string(key), CommitID(b)}, nil
	},
}
