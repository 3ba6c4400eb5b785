//go:build !amd64 || noasm

package kernels

func eachArch(f func(arch string)) { f("generic") }
