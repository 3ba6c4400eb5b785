//go:build !linux

package mmap

func preferHuge([]byte) {}
