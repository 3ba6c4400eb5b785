package engine

import "github.com/zarrdb/zarrdb/txn"

// Types of versions that programs meet often. Package txn describes them.
type (
	// Commit is a version: its id, parents, time, author and message.
	Commit = txn.Commit
	// CommitID names a commit. Its String method prints it; [DB.Resolve] finds it.
	CommitID = txn.CommitID
	// CommitOptions describe a commit, and decide its conflicts.
	CommitOptions = txn.CommitOptions
	// ConflictError lists the paths that two sides changed. It is [ErrConflict].
	ConflictError = txn.ConflictError
	// Change is one key that differs between two versions.
	Change = txn.Change
	// Ref is a branch or tag, and the commit that it names.
	Ref = txn.Ref
	// RefMove is an entry of the reflog of a branch or tag.
	RefMove = txn.RefMove
	// SessionID names a stored session.
	SessionID = txn.SessionID
	// SessionInfo describes a stored or open session.
	SessionInfo = txn.SessionInfo
)
