//go:build !amd64 || noasm

package inflate

func fastLoop(d *decoder) int { return fastGeneric(d) }
