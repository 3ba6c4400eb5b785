package policy

import (
	"testing"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
)

// A store whose documents are corrected is a view as others are, also if it cannot be listed.
func TestCorrectedView(t *testing.T) {
	for name, plain := range map[string]func(m *kv.Mem) kv.Reader{
		"listed": func(m *kv.Mem) kv.Reader { return m },
		"read":   func(m *kv.Mem) kv.Reader { return struct{ kv.Reader }{m} },
	} {
		t.Run(name, func(t *testing.T) {
			kvtest.Run(t, nil, kvtest.Options{Fill: func(t *testing.T, content map[string][]byte) kv.Reader {
				m := kv.NewMem()
				for k, v := range content {
					if err := m.Set(t.Context(), k, v); err != nil {
						t.Fatal(err)
					}
				}
				return WithSeparators(plain(m))
			}})
		})
	}
}
