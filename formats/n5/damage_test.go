package n5

import (
	"testing"

	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/kv"
)

// Datasets whose files are cut or changed are refused, or read.
func TestDamage(t *testing.T) {
	for _, name := range []string{"raw", "gzip", "bzip2", "xz", "lz4", "blosc_lz4", "zstd"} {
		t.Run(name, func(t *testing.T) {
			formattest.Damage(t, Format(), formattest.Folder(t, "testdata/"+name+"/store").(kv.ReadLister), "g/a")
		})
	}
}
