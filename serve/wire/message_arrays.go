package wire

// CapBodies means that the server takes bodies of requests in blocks of clients of the same
// user; see [FlagBlock].
const CapBodies = "bodies"

// Destination is a place in a block. A block is memory of the
// client that is sealed against shrinking. The descriptor comes with its first request.
// Then the server has it mapped, until the client forgets it or the connection ends.
type Destination struct {
	Block uint32 `json:"block,omitempty"` // a number that the client chooses, not 0
	At    int64  `json:"at,omitempty"`
}

// Watch has the writes to a session counted: each write by any process adds 1 to the 8 bytes at the
// place, a number in the order of the machine, before the write is acknowledged.
//
// With the view 0 the moves of refs are counted, each before somebody can see it.
type Watch struct {
	Handle
	Destination
}
