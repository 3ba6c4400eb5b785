//go:build !unix

package web

// descriptors is how many files this process may open at a time, 0 if that is not known.
func descriptors() int { return 0 }
