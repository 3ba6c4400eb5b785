package sockets

import "syscall"

// ErrRefused is the error of connecting to the socket of a process that has
// ended.
const ErrRefused = syscall.Errno(10061) // WSAECONNREFUSED
