package tree

import (
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/internal/fault"
)

var (
	// ErrMissing is the error, wrapped or not, of [Pages.GetPage] for a page
	// that it does not have.
	ErrMissing = fault.New("tree: page is missing", fault.ErrCorrupt)

	// ErrCorrupt marks a page whose bytes do not fit its name or the page
	// above. The error names the page.
	ErrCorrupt = fault.New("tree: corrupt page", fault.ErrCorrupt)

	// errLimit marks a key or value that is larger than a page may hold.
	errLimit = errors.New("tree: over the limit")

	// errOrder marks keys that were not passed in strictly ascending order.
	errOrder = errors.New("tree: keys are not ascending")

	// errInvalid marks an argument that has no meaning, like a value of an
	// unknown kind.
	errInvalid = errors.New("tree: invalid argument")
)

// corrupt returns an ErrCorrupt that names the page and the fault.
func corrupt(name Name, format string, args ...any) error {
	return fmt.Errorf("%w %v: %s", ErrCorrupt, name, fmt.Sprintf(format, args...))
}

// quoteKey prints a key for an error, shortened if it is long.
func quoteKey(key []byte) string {
	if len(key) > 64 {
		return fmt.Sprintf("%q… (%d bytes)", key[:64], len(key))
	}
	return fmt.Sprintf("%q", key)
}
