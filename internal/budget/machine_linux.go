package budget

import "golang.org/x/sys/unix"

// machine returns the bytes of memory that the machine has, 0 if unknown.
func machine() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
