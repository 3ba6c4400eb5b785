//go:build !linux

package pack

import "github.com/cockroachdb/pebble/v2/vfs"

const mapAhead = false

func startWriting(vfs.File, int64, int64) {}

func trim(vfs.File) {}
