//go:build !unix

package index

import "errors"

// identify is not needed where an open directory can be neither moved nor removed.
func identify(string) (fileID, error) { return fileID{}, errors.ErrUnsupported }

func lockFileID(string) fileID { return fileID{} }
