package collect

import (
	"slices"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/care"
)

// DiskUse says how much room the directory of a database takes: blocks on disk where the
// system tells them, else sizes of files. A file with several names in the directory
// counts once, if the system tells that too.
type DiskUse struct {
	// IndexBytes is the index with its logs.
	IndexBytes int64
	// PackBytes are the payloads; Packs is how many packs there are.
	PackBytes int64
	Packs     int
	// CheckpointBytes is what checkpoints take that the index does not share.
	CheckpointBytes int64
	// OtherBytes is all else: what repairs set aside, and the directories.
	OtherBytes int64
	// IndexWritten is what was written to the log of the index since it was
	// opened.
	IndexWritten int64
}

// Total is all of the directory.
func (u *DiskUse) Total() int64 {
	return u.IndexBytes + u.PackBytes + u.CheckpointBytes + u.OtherBytes
}

// Measure adds the sizes of the files of a database. Files that are removed meanwhile do not count.
func (u *DiskUse) Measure(fs index.FS, dir string) {
	parts := map[string]*int64{care.IndexDir: &u.IndexBytes, care.PackDir: &u.PackBytes, care.CheckpointDir: &u.CheckpointBytes}
	names, _ := fs.List(dir)
	if i := slices.Index(names, care.IndexDir); i > 0 { // what others share with it counts as its own
		names[0], names[i] = names[i], names[0]
	}
	seen := map[index.FileKey]bool{}
	for _, name := range names {
		to := parts[name]
		if to == nil {
			to = &u.OtherBytes
		}
		measure(fs, fs.PathJoin(dir, name), to, &u.OtherBytes, seen)
	}
	if fi, err := fs.Stat(dir); err == nil {
		_, n := index.OnDisk(fi)
		u.OtherBytes += n
	}
}

// measure adds a file to files, or all files below a directory, but those that were seen.
// Directories are added to dirs.
func measure(fs index.FS, path string, files, dirs *int64, seen map[index.FileKey]bool) {
	fi, err := fs.Stat(path)
	if err != nil {
		return
	}
	key, n := index.OnDisk(fi)
	switch {
	case fi.IsDir():
		*dirs += n
		names, _ := fs.List(path)
		for _, name := range names {
			measure(fs, fs.PathJoin(path, name), files, dirs, seen)
		}
	case !seen[key]:
		*files += n
		seen[key] = key != index.FileKey{}
	}
}
