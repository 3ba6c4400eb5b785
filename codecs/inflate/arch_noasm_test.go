//go:build !amd64 || noasm

package inflate

func eachArch(f func(arch string)) { f("generic") }
