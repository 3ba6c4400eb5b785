//go:build amd64 && !noasm

package inflate

import "github.com/klauspost/cpuid/v2"

var hasBMI2 = cpuid.CPU.Supports(cpuid.BMI2)

// fastBMI2 is fastGeneric in assembly.
//
//go:noescape
func fastBMI2(d *decoder) (end int)

func fastLoop(d *decoder) int {
	if hasBMI2 {
		return fastBMI2(d)
	}
	return fastGeneric(d)
}
