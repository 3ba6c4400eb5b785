package refs

import (
	"context"
	"testing"
	"time"
)

// A partition whose reading panics is read again by the next request.
func TestPartitionCacheAfterPanic(t *testing.T) {
	c := partitionCache{most: 1 << 20}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		_, _ = c.get(context.Background(), partitionID{}, func() (*partition, error) { panic("boom") })
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	want := &partition{bytes: 1}
	if p, err := c.get(ctx, partitionID{}, func() (*partition, error) { return want, nil }); p != want || err != nil {
		t.Errorf("%p, %v; want %p", p, err, want)
	}
}
