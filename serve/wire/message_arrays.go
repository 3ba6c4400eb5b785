package wire

// CapBlocks means that the server keeps blocks of the client mapped, and decodes into
// them; see [Destination].
const CapBlocks = "blocks"

// CapBodies means that the server takes bodies of requests in blocks of clients of the same
// user; see [FlagBlock].
const CapBodies = "bodies"

// Destination is where the elements of a request lie if they are not its body: in a file
// whose descriptor comes with the request, or in a block. A block is memory of the
// client that is sealed against shrinking. The descriptor comes with its first request.
// Then the server has it mapped, until the client forgets it or the connection ends.
type Destination struct {
	Block uint32 `json:"block,omitempty"` // a number that the client chooses; 0 for no block
	// At is the offset of the first element in the file or block.
	At int64 `json:"at,omitempty"`
}

// Watch has the writes to a session counted: each write by any process adds 1 to the 8 bytes at the
// place, a number in the order of the machine, before the write is acknowledged.
type Watch struct {
	Handle
	Destination
}

// ArrayMany names several selections of an array. Their elements follow each other.
type ArrayMany struct {
	View    uint32   `json:"view"`
	Path    string   `json:"path"`
	Selects []string `json:"selects"`
	Destination
}

// ElementsMany describes them: C order, little-endian.
type ElementsMany struct {
	Shapes   [][]int64 `json:"shapes"`
	ItemSize int       `json:"item_size"`
	NumPy    string    `json:"numpy,omitempty"`
}

// Selected is a selection by labels, converted to one by index.
type Selected struct {
	// Select has numbers only, one item for each dimension.
	Select string  `json:"select"`
	Shape  []int64 `json:"shape"`
	// Empty has a line for each range of labels that selects nothing.
	Empty []string `json:"empty,omitempty"`
}
