package txn

import (
	"errors"
	"fmt"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
)

// quarantineDir keeps what was found to be damaged. Nothing in it is read or
// removed by this program.
const quarantineDir = "quarantine"

// quarantined returns a new name in the quarantine of a database.
func quarantined(fs index.FS, dir, what string, now time.Time) (string, error) {
	parent := fs.PathJoin(dir, quarantineDir)
	if err := makeDir(fs, parent); err != nil {
		return "", err
	}
	name := fs.PathJoin(parent, what+"-"+now.UTC().Format("20060102T150405Z"))
	for i := 1; ; i++ {
		path := name
		if i > 1 {
			path = fmt.Sprintf("%s.%d", name, i)
		}
		if _, err := fs.Stat(path); err != nil {
			return path, nil
		}
	}
}

// writeQuarantine puts a file into the quarantine, durably. What was there under
// this name before is there until then.
func writeQuarantine(fs index.FS, path string, b []byte) error {
	tmp := path + ".tmp"
	f, err := fs.Create(tmp, index.WriteCategory)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(fs, fs.PathDir(path))
}
