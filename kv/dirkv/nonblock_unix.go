//go:build unix && !linux

package dirkv

import "syscall"

// nonBlock keeps opening a named pipe from waiting for its writer.
const nonBlock = syscall.O_NONBLOCK
