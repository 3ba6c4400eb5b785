package kv

// FileID names the bytes of a file: no other file ever has the same while one is
// open that had it.
type FileID [24]byte

// Place is where the bytes of a value lie in a file of this machine.
type Place struct {
	File   FileID
	Offset int64
}

// Placed is an optional interface of a Value whose bytes lie in a file as they
// are, so that another process can be given the file instead of the bytes.
type Placed interface {
	// Place says where the value lies. It is errors.ErrUnsupported where that is no
	// file. The bytes there were not verified, and another value may take their
	// place later: Lease keeps them.
	Place() (Place, error)

	// Lease opens the file. The bytes stay as they are until every descriptor and
	// every map that was made of it is closed, in whatever process. The place may be
	// another one than Place said. It is errors.ErrUnsupported where that cannot be
	// had, for now or for good.
	Lease() (Lease, error)
}

// Lease is a file that was opened for reading by [Placed]. The caller closes it.
type Lease interface {
	Place() Place
	Fd() uintptr
	Close() error
}
