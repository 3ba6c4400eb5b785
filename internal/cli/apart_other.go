//go:build !unix

package cli

import "syscall"

func apart() *syscall.SysProcAttr { return nil }
