//go:build amd64 && !noasm

package pack

// prefetch has the processor fetch a page, and does not wait. Unlike a load it
// cannot fault.
//
//go:noescape
func prefetch(page []byte)
