package txn

import (
	"slices"

	"github.com/zarrdb/zarrdb/kv/index"
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

// DiskUse returns the present sizes. It looks at each file; files that are removed
// meanwhile do not count.
func (db *DB) DiskUse() DiskUse {
	var use DiskUse
	use.Packs, use.IndexWritten = db.home.usage()
	parts := map[string]*int64{indexDir: &use.IndexBytes, packDir: &use.PackBytes, checkpointDir: &use.CheckpointBytes}
	names, _ := db.opts.FS.List(db.dir)
	if i := slices.Index(names, indexDir); i > 0 { // what others share with it counts as its own
		names[0], names[i] = names[i], names[0]
	}
	seen := map[index.FileKey]bool{}
	for _, name := range names {
		to := parts[name]
		if to == nil {
			to = &use.OtherBytes
		}
		db.diskUse(db.opts.FS.PathJoin(db.dir, name), to, &use.OtherBytes, seen)
	}
	if fi, err := db.opts.FS.Stat(db.dir); err == nil {
		_, n := index.OnDisk(fi)
		use.OtherBytes += n
	}
	return use
}

// diskUse adds a file to files, or all files below a directory, but those that were seen.
// Directories are added to dirs.
func (db *DB) diskUse(path string, files, dirs *int64, seen map[index.FileKey]bool) {
	fs := db.opts.FS
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
			db.diskUse(fs.PathJoin(path, name), files, dirs, seen)
		}
	case !seen[key]:
		*files += n
		seen[key] = key != index.FileKey{}
	}
}
