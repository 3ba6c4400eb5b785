package namespace

import (
	"fmt"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
)

// ErrExists means that the destination of a move or copy is taken.
var ErrExists = fault.New("txn: exists already", fault.ErrExists)

// corrupt is an error about stored pages.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("txn: "+format+": %w", append(args, kv.ErrCorrupt)...)
}
