package cli

import (
	"context"
	"fmt"
	"image/png"
	"io"

	"github.com/zarrdb/zarrdb/internal/picture"
)

// png writes a picture; see [picture.Check].
func (r *reading) png(ctx context.Context, w io.Writer) error {
	if err := picture.Check(r.a.Type(), r.shape); err != nil {
		return err
	}
	const most = 1 << 15
	if r.shape[0] > most || r.shape[1] > most {
		return fmt.Errorf("a picture of %d × %d is too large: use --select", r.shape[0], r.shape[1])
	}
	b, err := r.bytes(ctx)
	if err != nil {
		return err
	}
	return png.Encode(w, picture.Of(r.a.Type(), r.shape, b))
}
