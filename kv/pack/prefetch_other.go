//go:build !amd64 || noasm

package pack

// prefetch waits for the page, as touch does.
func prefetch(page []byte) { touch(page) }
