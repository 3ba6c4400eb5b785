// Command zarrdb is a versioned database for Zarr arrays in a directory.
//
//	zarrdb import weather.zdb ./era5.zarr
//	zarrdb read weather.zdb@main:temp --select '0:24,::2,5' -o t.npy
//	zarrdb log weather.zdb
//
// Type "zarrdb help" for the rest. Exit codes: 0 fine, 1 failed, 2 usage,
// 3 conflict, 4 not found, 5 corrupt data, 130 interrupted.
package main

import (
	"github.com/zarrdb/zarrdb/internal/arrowfile"
	"github.com/zarrdb/zarrdb/internal/cli"
)

func main() { cli.Main(arrowfile.Formats()) }
