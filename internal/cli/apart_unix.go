//go:build unix

package cli

import "syscall"

// apart starts a program in a session of its own: signals of the terminal do not reach it.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
