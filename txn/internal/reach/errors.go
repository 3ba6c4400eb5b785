package reach

import (
	"fmt"

	"github.com/zarrdb/zarrdb/kv"
)

// corrupt is an error about stored pages.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("txn: "+format+": %w", append(args, kv.ErrCorrupt)...)
}
