//go:build !unix

package cli

import "io"

// closedInput returns nil: reading a closed standard input is an error here.
func closedInput(io.Reader) error { return nil }
