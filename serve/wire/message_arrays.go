package wire

// CapMemory means that the server decodes results of any length into a memory
// file of the client that is sealed against truncation.
const CapMemory = "memory"

// ArrayMany names several selections of an array. Their elements follow each other.
type ArrayMany struct {
	View    uint32   `json:"view"`
	Path    string   `json:"path"`
	Selects []string `json:"selects"`
	// At is the offset of the first selection's elements in a file.
	At int64 `json:"at,omitempty"`
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
