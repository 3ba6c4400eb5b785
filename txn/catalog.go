package txn

import "github.com/zarrdb/zarrdb/txn/internal/catalog"

// Types of what the index records.
type (
	// CommitID names a commit by the hash of its record, which holds the root, the
	// parents and the message: equal ids mean equal history.
	CommitID = catalog.CommitID
	// Commit is one version with its parents and its message. It is immutable.
	Commit = catalog.Commit
	// SessionID names a session across processes.
	SessionID = catalog.SessionID
	// Ref is a named commit: a branch, which moves, or a tag, which does not.
	Ref = catalog.Ref
	// RefMove is one entry of the reflog: a ref went from Old to New. A zero id
	// stands for "did not exist".
	RefMove = catalog.RefMove
)

// ParseSessionID reads what [SessionID.String] prints.
func ParseSessionID(s string) (SessionID, error) { return catalog.ParseSessionID(s) }

// checkRefName returns an ErrRefName if s cannot name a branch or tag. Names are
// UTF-8 without spaces, control characters and the characters that revisions use
// (~ ^ : @ and \); their parts between slashes are not empty, "." or "..".
func checkRefName(s string) error { return catalog.CheckRefName(s) }

// ToRefName returns a name like s that can name a branch or tag: "_" stands for what
// cannot be in one. A name that can be stays; one that is too long does, too.
func ToRefName(s string) string { return catalog.ToRefName(s) }
