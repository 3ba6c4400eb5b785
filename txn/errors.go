package txn

import "fmt"

// wrap adds the operation to an error of a function, which defers it.
func wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}
