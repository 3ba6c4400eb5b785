package local

import "syscall"

// errRefused is what connecting to the socket of a process that has ended says.
const errRefused = syscall.Errno(10061) // WSAECONNREFUSED
