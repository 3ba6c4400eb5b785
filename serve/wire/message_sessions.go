package wire

// Guard names paths that a session relies on: nodes, or keys of chunks and documents.
type Guard struct {
	View  uint32   `json:"view"`
	Paths []string `json:"paths"`
}

// Move renames a node of a session with everything below it.
type Move struct {
	View uint32 `json:"view"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Rebase takes into a session what its branch got.
type Rebase struct {
	View    uint32   `json:"view"`
	Choices []Choice `json:"choices,omitempty"`
}

// Fork opens a session that begins with everything that another one has written.
type Fork struct {
	View  uint32 `json:"view"`
	Label string `json:"label,omitempty"`
}

// Join takes what a fork has changed into the session that it came from.
type Join struct {
	View    uint32   `json:"view"`
	Session string   `json:"session"` // id of the fork
	Choices []Choice `json:"choices,omitempty"`
}
