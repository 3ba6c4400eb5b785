package kv

// FileID identifies an open file: no other file has the same while it is open.
type FileID [24]byte

// Place is the position of a value in a local file.
type Place struct {
	File   FileID
	Offset int64
}

// Placed is an optional interface of a Value that is stored unchanged in a local
// file, so that another process can get the file instead of the bytes.
type Placed interface {
	// Place returns the position of the value, or errors.ErrUnsupported if it is
	// not in a file. The bytes there were not verified, and may be overwritten
	// later: Lease keeps them.
	Place() (Place, error)

	// Lease opens the file. The bytes stay as they are until every descriptor
	// and every mapping of it is closed, in any process. The position may differ
	// from the position of Place. The error is errors.ErrUnsupported if the file
	// cannot be leased, now or ever.
	Lease() (Lease, error)
}

// Lease is a file that was opened for reading by [Placed]. The caller closes it.
type Lease interface {
	Place() Place
	Fd() uintptr
	Close() error
}
