//go:build unix

package cli

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// closedInput returns an error if standard input was closed when the process began. Go's runtime then opens the
// null device in its place, and put would store an empty value. The runtime opens the device to read and to write;
// a shell's "< /dev/null" opens it to read only.
func closedInput(in io.Reader) error {
	if f, ok := in.(*os.File); !ok || f != os.Stdin {
		return nil
	}
	var have, null unix.Stat_t
	if unix.Fstat(unix.Stdin, &have) != nil || unix.Stat(os.DevNull, &null) != nil || have.Rdev != null.Rdev || have.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil
	}
	if flags, err := unix.FcntlInt(uintptr(unix.Stdin), unix.F_GETFL, 0); err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		return nil
	}
	return errors.New("standard input is closed; name a file, or give an empty value with < /dev/null")
}
