//go:build !linux

package local

import (
	"errors"
	"os"
)

const canShare = false

func newSealed(string, int) (*os.File, []byte, error) { return nil, nil, errors.ErrUnsupported }

func mapSealed(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

// messages makes a file for the messages of a process.
func messages() (*os.File, error) {
	f, err := os.CreateTemp("", "zarrdb-messages")
	if err == nil {
		_ = os.Remove(f.Name()) // where the system removes files that are open
	}
	return f, err
}
