package wire

// Rebase merges the new commits of its branch into a session.
type Rebase struct {
	Handle
	Choices []Choice `json:"choices,omitempty"`
}

// Savepoint stores a session.
type Savepoint struct {
	Handle
	Label string `json:"label,omitempty"`
}

// Fork opens a session that begins with all changes of another one.
type Fork struct {
	Handle
}

// Join merges the changes of a fork into its original session.
type Join struct {
	Handle
	Session string   `json:"session"` // id of the fork
	Choices []Choice `json:"choices,omitempty"`
}
