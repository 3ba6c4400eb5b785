package txn

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// diskFull reports whether err means that there is no space on a disk.
func diskFull(err error) bool {
	return errors.Is(err, index.ErrFull) || errors.Is(err, pack.ErrFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// wrap adds the operation to an error of a function, which defers it.
func wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}
