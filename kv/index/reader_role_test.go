package index

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// readForParent is the other process of TestReaderWithoutPermission. It opens the
// index twice and closes one of them, so that it holds what the other has.
func readForParent(dir string) {
	err := func() error {
		x, err := Open(dir, &Options{ReadOnly: true})
		if err != nil {
			return err
		}
		again, err := Open(dir, &Options{ReadOnly: true})
		if err != nil {
			return errors.Join(err, x.Close())
		}
		_, wrong := Open(dir, nil)
		b, err := x.Get(SpaceMeta, []byte("k"))
		if err = errors.Join(err, again.Close()); err == nil && string(b) != "v" {
			err = fmt.Errorf("value %q", b)
		}
		if wrong == nil {
			err = errors.New("a writer beside readers")
		}
		fmt.Println("open", err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return errors.Join(err, x.Close())
	}()
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}
