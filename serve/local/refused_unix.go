//go:build unix

package local

import "syscall"

// errRefused is the error of connecting to the socket of a process that has
// ended.
const errRefused = syscall.ECONNREFUSED
