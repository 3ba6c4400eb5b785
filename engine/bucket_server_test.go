package engine

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// TestServerBucket exports to a bucket of a real server, imports from it, and
// links what is in it; see scripts/s3.sh.
func TestServerBucket(t *testing.T) {
	endpoint := os.Getenv("ZARRDB_S3_ENDPOINT")
	if endpoint == "" {
		t.Skip("ZARRDB_S3_ENDPOINT names no server")
	}
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": endpoint, "AWS_ACCESS_KEY_ID": os.Getenv("ZARRDB_S3_KEY"), "AWS_SECRET_ACCESS_KEY": os.Getenv("ZARRDB_S3_SECRET"), "AWS_SESSION_TOKEN": "",
		"AWS_NO_SIGN_REQUEST": "", "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	store := storeAt(t, "s3://bucket/")
	must.Do(t, kv.DeletePrefix(bg, store, ""))
	keys := smallStore(t)
	must.Get(Export(bg, openURL(t, memoryURL(t, keys)), "s3://bucket/out", ExportOptions{}))(t)
	sameContents(t, contents(t, storeAt(t, "s3://bucket/out")), keys)
	db := openDB(t, memOptions())
	must.Get(db.Import(bg, openURL(t, "s3://bucket/out"), ImportOptions{}))(t)
	got := contents(t, at(t, db, ""))
	maps.DeleteFunc(got, func(k, _ string) bool { _, ok := keys[k]; return !ok })
	sameContents(t, got, keys)

	data := numbered(1000)
	must.Do(t, store.Set(bg, "files/a b+c", data))
	var refs []string
	for i := range 10 {
		refs = append(refs, fmt.Sprintf(`["s3://bucket/files/a b+c",%d,50]`, i*100))
	}
	set := tiles(50, "null", refs)
	linked := follows(t, set, Follow{Allow: []string{"s3://bucket/files/"}})
	want := make([]byte, 0, 500)
	for i := range 10 {
		want = append(want, data[i*100:i*100+50]...)
	}
	if got := readAll(t, at(t, linked, "")); !bytes.Equal(got, want) {
		t.Error("virtual chunks: other values")
	}
	if _, err := values(t, at(t, follows(t, set, Follow{}), "")); !errors.Is(err, ErrForbidden) {
		t.Error(err)
	}
	must.Do(t, store.Delete(bg, "files/a b+c"))
	if _, err := values(t, at(t, linked, "")); !errors.Is(err, ErrUnreachable) {
		t.Errorf("the object is gone: %v", err)
	}
}
