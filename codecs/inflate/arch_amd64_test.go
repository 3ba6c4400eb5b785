//go:build amd64 && !noasm

package inflate

// eachArch runs f with every inner loop that this processor can run.
func eachArch(f func(arch string)) {
	has := hasBMI2
	defer func() { hasBMI2 = has }()
	if has {
		f("bmi2")
	}
	hasBMI2 = false
	f("generic")
}
