package wire

// CapMemory says that the server decodes into memory that the client passes and that
// cannot be cut off, of any length.
const CapMemory = "memory"

// ArrayMany names several selections of an array. Their elements follow each other.
type ArrayMany struct {
	View    uint32   `json:"view"`
	Path    string   `json:"path"`
	Selects []string `json:"selects"`
	// At is where the elements of the first one begin in a file.
	At int64 `json:"at,omitempty"`
}

// ElementsMany describes them: C order, little-endian.
type ElementsMany struct {
	Shapes   [][]int64 `json:"shapes"`
	ItemSize int       `json:"item_size"`
	NumPy    string    `json:"numpy,omitempty"`
}

// Selected is a selection by labels as one by numbers.
type Selected struct {
	// Select has numbers only, one item for each dimension.
	Select string  `json:"select"`
	Shape  []int64 `json:"shape"`
	// Empty has a line for each range of labels that selects nothing.
	Empty []string `json:"empty,omitempty"`
}
