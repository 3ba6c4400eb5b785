package txn

import (
	"fmt"

	"github.com/zarrdb/zarrdb/kv"
)

// corrupt is an error about stored bytes.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("txn: "+format+": %w", append(args, kv.ErrCorrupt)...)
}

// wrap adds the operation to an error of a function, which defers it.
func wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}
