package dirkv

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

const errorSharingViolation = syscall.Errno(32)

// openLocked opens a file, which is made if it is missing, such that no other can open it.
func openLocked(_ *os.Root, dir, rel string) (*os.File, error) {
	path := filepath.Join(dir, rel)
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errorSharingViolation) {
		err = errLocked
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), path), nil
}
