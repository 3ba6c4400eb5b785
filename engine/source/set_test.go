package source

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
)

func TestDetectReferences(t *testing.T) {
	for head, want := range map[string]bool{
		`{"version": 1, "refs": {`:                               true,
		"\xef\xbb\xbf {\"version\":1,\"templates\":{\"u\":\"x":   true,
		`{"version":1,"gen":[{`:                                  true,
		`{".zgroup": "{\n`:                                       true,
		`{"a/b/.zarray": {"chunks`:                               true,
		`{"zarr.json": "{}", "`:                                  true,
		`{"t/0": ["s3://b/f", 1, 2], "t/1": [`:                   true,
		`{"t/0": ["file"]}`:                                      true,
		`{"t/0": "text", "t/1": ["x", 3, 4]}`:                    true,
		`{"refs":{}}`:                                            true,
		`{"version":1}`:                                          false,
		`{"zarr_format":3,"node_type":"array","shape":[3]}`:      false,
		`{"zarr_consolidated_format":1,"metadata":{".zgroup":1}`: false,
		`{"shape":["a","b"]}`:                                    false,
		`{"a":[1,2,3]}`:                                          false,
		`{}`:                                                     false,
		`{`:                                                      false,
		`["a"]`:                                                  false,
		``:                                                       false,
		`{"a":`:                                                  false,
		`{"a" 3`:                                                 false,
	} {
		if got := looksLikeReferences([]byte(head)); got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
}

// slowFile is read when it may be.
type slowFile struct {
	kv.Value
	read func()
}

func (f slowFile) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	f.read()
	return f.Value.View(ctx, rng, fn)
}

// A read that waits for another one to open the set waits no longer than its context
// lives.
func TestSetWaitEndsWithTheContext(t *testing.T) {
	asked, may, once := make(chan struct{}), make(chan struct{}), new(sync.Once)
	set := &Set{file: slowFile{kv.Bytes(`{"a":"b"}`), func() {
		once.Do(func() { close(asked) })
		<-may
	}}}
	first := make(chan error, 1)
	go func() { _, err := set.open(bg); first <- err }()
	<-asked
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := set.open(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled wait: %v", err)
	}
	close(may)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
