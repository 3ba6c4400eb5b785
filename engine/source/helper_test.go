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
	"github.com/zarrdb/zarrdb/internal/must"
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
	p := must.Get(openPlace(bg, url))(t)
	t.Cleanup(func() { p.Close() })
	return p
}

func fileOf(t testing.TB, p *openedPlace) []byte {
	t.Helper()
	v := must.Get(p.File(bg))(t)
	b := must.Get(kv.ReadValue(bg, v, kv.All()))(t)
	return b
}

var memoryCount atomic.Int64

// memoryURL is the URL of a new store in memory with those keys.
func memoryURL(t testing.TB, keys map[string]string) string {
	t.Helper()
	name := strings.NewReplacer("/", "-", "#", "-").Replace(fmt.Sprintf("%s-%d", t.Name(), memoryCount.Add(1)))
	for k, v := range keys {
		must.Do(t, Memory(name).Set(bg, k, []byte(v)))
	}
	return "memory:" + name + "/"
}

func validJSON(s string) bool { return json.Valid([]byte(s)) }

// mustPart is an adapter without a path.
func mustPart(t testing.TB, scheme string) zurl.Part {
	t.Helper()
	u := must.Get(zurl.Parse("memory:x|" + scheme + ":"))(t)
	return u.Last()
}
