package transfer

import "context"

// Relay makes batches in a goroutine of its own while the caller's goroutine
// uses earlier batches, in their order, and hands them back so that their
// memory serves again:
//
//	fill ──▶ batch ──▶ batch ──▶ use
//	  ▲                           │
//	  └────────── batch ◀─────────┘
//
// fill begins with a batch of its own; pass gives one away and returns another,
// a fresh one or one that use has returned from, as use left it. So use keeps
// nothing of a batch.
//
// An error of use is returned at once and cancels the context of fill, after
// which pass fails; one of fill is returned when everything that was passed
// before has been used. In any case, a panic in use too, fill has returned when
// Relay does.
func Relay[B any](ctx context.Context, fresh func() B, fill func(ctx context.Context, pass func(B) (B, error)) error, use func(B) error) error {
	// One batch is being filled, two wait, one is in use.
	full, used := make(chan B, 2), make(chan B, 4)
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		for range full { // until fill has returned
		}
	}()
	var failed error // of fill
	go func() {
		defer close(full)
		failed = fill(ctx, func(b B) (next B, err error) {
			select {
			case full <- b:
			case <-ctx.Done():
				return next, context.Cause(ctx)
			}
			select {
			case next = <-used:
			default:
				next = fresh()
			}
			return next, nil
		})
	}()
	for b := range full {
		if err := use(b); err != nil {
			return err
		}
		select {
		case used <- b:
		default:
		}
	}
	return failed
}
