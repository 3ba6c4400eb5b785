package local

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// callJSON sends a request of a view and parses the reply.
func callJSON[Out any](t *testing.T, s *session, op wire.Op, in any, pass ...wire.Descriptor) (out Out, body []byte, err error) {
	t.Helper()
	meta := must.Get(json.Marshal(in))(t)
	reply, err := s.tx.l.call(bg, &wire.Frame{Op: op, Meta: meta, Pass: pass}, false)
	if err != nil {
		return out, nil, err
	}
	defer reply.Close()
	return out, slices.Clone(reply.Body), wire.ParseJSON(op, reply.Meta, &out)
}
