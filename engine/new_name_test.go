package engine

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/txn"
)

// URLs and places in a database make no directory, through whatever function.
func TestNewNames(t *testing.T) {
	t.Chdir(t.TempDir())
	db := openAt(t, "w.zdb", &Options{Create: true})
	for name, want := range map[string]string{
		"s3://bucket/x.zdb": "it is a URL; a database is a directory", "zarrdb://z.zdb": "write z.zdb", "https://me:secret@host/x.zdb": "it is a URL",
		"n.zdb@main": "place in the database n.zdb", "w.zdb:grp": "place in the database w.zdb", "n.zdb@main:grp": "write the name of the database alone",
	} {
		for what, make := range map[string]func() error{
			"open":    func() error { _, err := Open(bg, name, &Options{Create: true}); return err },
			"create":  func() error { _, err := Create(bg, name, nil); return err },
			"backup":  func() error { _, err := db.Backup(bg, name, txn.TransferOptions{}); return err },
			"clone":   func() error { _, err := db.Clone(bg, name, txn.TransferOptions{}); return err },
			"restore": func() error { _, err := db.RestoreTo(bg, name, txn.TransferOptions{}); return err },
			"salvage": func() error { _, err := Salvage(bg, "w.zdb", name, nil, nil); return err },
		} {
			if err := make(); !errors.Is(err, ErrName) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s %s: %v", what, name, err)
			}
		}
	}
	list, err := os.ReadDir(".")
	if err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	// Other names may have the characters.
	openAt(t, "./a@b:c d.zdb", &Options{Create: true})
}
