//go:build !unix

package dirkv

// nonBlock: there are no named pipes in directories.
const nonBlock = 0
