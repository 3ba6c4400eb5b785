package depot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/kv"
)

// ErrUnfit means that a store does not keep the promises of [kv.Conditional], so that two machines
// could publish over each other. Such a store can still be read.
var ErrUnfit = errors.New("depot: the store does not keep its promises")

const (
	probePrefix = "probe/"
	racers      = 8
)

// Probe tries whether a store keeps its promises: it makes and replaces values below probe/ under
// conditions that hold and that do not, the last ones by 8 at a time. A machine calls it once
// for each depot, before its first push. A store may pass and still fail later; see [ErrLost]. Only
// tests set rand.
func Probe(ctx context.Context, store kv.Store, rand func() uint64) error {
	c, ok := store.(kv.Conditional)
	if !ok {
		return fmt.Errorf("%w: %w: it has no conditional writes", ErrUnfit, errors.ErrUnsupported)
	}
	if rand == nil {
		rand = randomNumber
	}
	var err error
	for range 5 { // while answers are lost, nothing is known
		b := &probe{c: c, key: fmt.Sprintf("%s%016x", probePrefix, rand())}
		err = b.run(ctx)
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		for _, end := range []string{"", "-none", "-race"} {
			_ = store.Delete(tidy, b.key+end) // who may not delete leaves 3 small objects
		}
		cancel()
		if ctx.Err() != nil || !errors.Is(err, kv.ErrUnknown) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("depot: probe of the store: %w", err)
	}
	return nil
}

type probe struct {
	c   kv.Conditional
	key string
}

func unfit(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnfit, fmt.Sprintf(format, args...))
}

func (b *probe) run(ctx context.Context) error {
	first, err := b.c.SetTagged(ctx, b.key, []byte("1"), kv.NoValue)
	if errors.Is(err, kv.ErrChanged) {
		return unfit("it does not make an object where none is")
	}
	if err != nil {
		return err
	}
	if err := b.refuses(ctx, "makes an object that exists", b.key, kv.NoValue); err != nil {
		return err
	}
	second, err := b.c.SetTagged(ctx, b.key, []byte("2"), first)
	if err != nil {
		if errors.Is(err, kv.ErrChanged) {
			return unfit("it does not replace an object by its tag")
		}
		return err
	}
	if err := b.refuses(ctx, "replaces an object by an old tag", b.key, first); err != nil {
		return err
	}
	if err := b.refuses(ctx, "replaces an object that does not exist", b.key+"-none", second); err != nil {
		return err
	}
	if err := b.holds(ctx, b.key, "2", second); err != nil {
		return err
	}
	if _, err := b.c.GetTagged(ctx, b.key+"-none", kv.NoValue, 100); !errors.Is(err, kv.ErrNotFound) {
		if err == nil {
			err = unfit("a refused write made an object")
		}
		return err
	}
	if err := b.race(ctx, "makes one object", b.key+"-race", kv.NoValue); err != nil {
		return err
	}
	return b.race(ctx, "replaces one object by one tag", b.key, second)
}

// refuses checks that a write under a condition that does not hold is refused.
func (b *probe) refuses(ctx context.Context, what, key string, want kv.Tag) error {
	_, err := b.c.SetTagged(ctx, key, []byte("x"), want)
	if err == nil {
		return unfit("it %s", what)
	}
	if errors.Is(err, kv.ErrChanged) {
		return nil
	}
	return err
}

// holds checks that a key has a value and its tag.
func (b *probe) holds(ctx context.Context, key, value string, tag kv.Tag) error {
	got, err := b.c.GetTagged(ctx, key, kv.NoValue, 1<<20)
	if err == nil && (string(got.Value) != value || got.Tag != tag) || errors.Is(err, kv.ErrNotFound) {
		return unfit("an object is not the one that was written last")
	}
	return err
}

// racerValue is what a racer writes. It is long enough for [kv.WithHold].
func racerValue(i int) string { return fmt.Sprintf("racer %-16000d", i) }

// race writes one key by several at a time under one condition: exactly one must succeed. A server that looks at the
// condition when a request begins has the beginnings of all before it gets the rest of one.
func (b *probe) race(ctx context.Context, what, key string, want kv.Tag) error {
	var met atomic.Int32
	all := make(chan struct{})
	ctx = kv.WithHold(ctx, func() {
		if met.Add(1) == racers {
			time.AfterFunc(100*time.Millisecond, func() { close(all) }) // the server gets what was sent
		}
		select {
		case <-all:
		case <-time.After(time.Second): // one has failed, or the server takes fewer at a time
		case <-ctx.Done():
		}
	})
	var wg sync.WaitGroup
	var tags [racers]kv.Tag
	var errs [racers]error
	for i := range racers {
		wg.Go(func() { tags[i], errs[i] = b.c.SetTagged(ctx, key, []byte(racerValue(i)), want) })
	}
	wg.Wait()
	winners, winner := 0, 0
	for i, err := range errs {
		switch {
		case err == nil:
			winners, winner = winners+1, i
		case !errors.Is(err, kv.ErrChanged) && !errors.Is(err, kv.ErrUnknown):
			return err
		}
	}
	switch {
	case winners > 1:
		return unfit("of %d writers of which each %s, %d succeed", racers, what, winners)
	case winners == 1:
		return b.holds(ctx, key, racerValue(winner), tags[winner])
	}
	for _, err := range errs {
		if errors.Is(err, kv.ErrUnknown) {
			return err
		}
	}
	return unfit("of %d writers of which each %s, none succeeds", racers, what)
}
