package refs

import (
	"context"
	"io"

	"github.com/zarrdb/zarrdb/kv"
)

// Expand writes a JSON set as version 0: templates rendered, generators written
// out, objects as text, base64 as it was. Memory is bounded as in [ReadJSON].
// After an error the output is no valid JSON.
func Expand(ctx context.Context, w io.Writer, v kv.Value, o *ReadOptions) error {
	return WriteJSON(w, ReadJSON(ctx, v, o), nil)
}
