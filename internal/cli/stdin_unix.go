//go:build unix

package cli

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// closedInput returns the error of reading from standard input if that was closed when the process began. The runtime of Go
// then opens the null device in its place, to read and to write, which a shell's "< /dev/null" does
// not: an empty value that nobody gave would be stored.
func closedInput(in io.Reader) error {
	f, ok := in.(*os.File)
	if !ok || f != os.Stdin {
		return nil
	}
	var have, null unix.Stat_t
	if unix.Fstat(int(f.Fd()), &have) != nil || unix.Stat(os.DevNull, &null) != nil || have.Rdev != null.Rdev || have.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil
	}
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		return nil
	}
	return errors.New("standard input is closed; name a file, or give an empty value with < /dev/null")
}
