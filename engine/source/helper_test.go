package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
)

var bg = context.Background()

// openedPlace is a place that a URL leads to, with what was opened on the way.
type openedPlace struct {
	Place
	env *Env
}

func (p *openedPlace) Close() error { return p.env.Close() }

func openPlace(ctx context.Context, url string) (*openedPlace, error) {
	u, err := zurl.Parse(url)
	if err != nil {
		return nil, err
	}
	p := &openedPlace{env: &Env{Adapters: DefaultAdapters()}}
	if p.Place, err = p.env.Open(ctx, u); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func openURL(t testing.TB, url string) *openedPlace {
	t.Helper()
	p, err := openPlace(bg, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func fileOf(t testing.TB, p *openedPlace) []byte {
	t.Helper()
	v, err := p.File(bg)
	if err != nil {
		t.Fatal(err)
	}
	b, err := kv.ReadValue(bg, v, kv.All())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var memoryCount atomic.Int64

// memoryURL is the URL of a new store in memory with those keys.
func memoryURL(t testing.TB, keys map[string]string) string {
	t.Helper()
	name := strings.NewReplacer("/", "-", "#", "-").Replace(fmt.Sprintf("%s-%d", t.Name(), memoryCount.Add(1)))
	for k, v := range keys {
		if err := Memory(name).Set(bg, k, []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	return "memory:" + name + "/"
}

func validJSON(s string) bool { return json.Valid([]byte(s)) }

// mustPart is an adapter without a path.
func mustPart(t testing.TB, scheme string) zurl.Part {
	t.Helper()
	u, err := zurl.Parse("memory:x|" + scheme + ":")
	if err != nil {
		t.Fatal(err)
	}
	return u.Last()
}
