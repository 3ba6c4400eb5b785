//go:build !linux

package dirkv

import "os"

type source struct{ rootSource }

func newSource(root *os.Root, _ string) *source { return &source{rootSource{root}} }
