//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package index

import "os"

// knock does nothing here: only processes that find the socket are let in.
func knock(string) {}

func endKnock(string, *os.File) {}

// Knocked is false here.
func Knocked(string) bool { return false }
