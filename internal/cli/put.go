package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/kv"
)

// putMemory is the length up to which the value of put is held in memory. A longer one goes
// through a temporary file in the database directory, which is mapped: the value is hashed
// before its bytes are stored, and other programs may change the file that was named.
const putMemory = 1 << 20

// withInput calls fn with the bytes of a file, or of standard input. dir is a directory on
// the disk of the database.
func withInput(cmd *cobra.Command, name, dir string, fn func([]byte) error) error {
	in := cmd.InOrStdin()
	if name != "" && name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	head, err := io.ReadAll(io.LimitReader(in, putMemory+1))
	if err != nil {
		return err
	}
	if len(head) <= putMemory {
		return fn(head)
	}
	temp, err := os.CreateTemp(dir, ".zarrdb-put-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	_ = os.Remove(temp.Name()) // where the system allows that, a killed process leaves nothing
	n, in := int64(0), io.MultiReader(bytes.NewReader(head), in)
	for {
		piece, err := io.CopyN(temp, in, 16*putMemory)
		n += piece
		if n > engine.MaxValueBytes {
			return fmt.Errorf("%w: a value has at most %d bytes (engine.MaxValueBytes)", kv.ErrTooLarge, int64(engine.MaxValueBytes))
		}
		if errors.Is(err, io.EOF) {
			return mmap.With(temp, n, fn)
		}
		if err == nil {
			err = cmd.Context().Err()
		}
		if free, unknown := diskFree(dir); err == nil && unknown == nil && free < uint64(n) {
			err = fmt.Errorf("%w: the value has more than %d bytes, and its disk has %d free to store them", kv.ErrTooLarge, n, free)
		}
		if err != nil {
			return err
		}
	}
}
