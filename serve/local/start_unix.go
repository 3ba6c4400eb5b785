//go:build unix

package local

import (
	"os/exec"
	"syscall"
)

// detach has a process go on without this one, and without its terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
