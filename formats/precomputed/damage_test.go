package precomputed

import (
	"testing"

	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/kv"
)

// Volumes whose files are cut or changed are refused, or read.
func TestDamage(t *testing.T) {
	for _, name := range []string{"raw", "jpeg", "png", "compressed_segmentation_uint64", "sharded_murmur_gzip", "sharded_identity_raw"} {
		t.Run(name, func(t *testing.T) {
			formattest.Damage(t, Format(), formattest.Folder(t, "testdata/"+name+"/vol").(kv.ReadLister), "")
		})
	}
}
