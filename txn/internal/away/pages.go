package away

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// pageFlight is a page that is being fetched.
type pageFlight struct {
	done chan struct{}
	one  bool // no other page was asked for with it
	by   bucket.Asker
	page []byte
	err  error
}

// Pages are the committed pages, of which some are away.
type Pages struct {
	Local
	a *Part
}

var (
	_ tree.Pages      = Pages{}
	_ tree.PageViewer = Pages{}
	_ tree.FarPages   = Pages{}
)

// Over returns pages of which some are away.
func (a *Part) Over(p Local) tree.Pages { return Pages{p, a} }

func (p Pages) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	b, err := p.Local.GetPage(ctx, name)
	if errors.Is(err, tree.ErrMissing) {
		return p.a.page(ctx, name)
	}
	return b, err
}

func (p Pages) ViewPage(ctx context.Context, name tree.Name, fn func([]byte) error) error {
	called := false
	err := p.Local.ViewPage(ctx, name, func(b []byte) error {
		called = true
		return fn(b)
	})
	if called || !errors.Is(err, tree.ErrMissing) {
		return err
	}
	b, err := p.a.page(ctx, name)
	if err != nil {
		return err
	}
	return fn(b)
}

// Far implements [tree.FarPages].
func (p Pages) Far() int { return tree.MaxFar }

// GetPages gets all that are away with one batch of requests.
func (p Pages) GetPages(ctx context.Context, names []tree.Name) ([][]byte, error) {
	from, out := p.Batch(ctx, names), make([][]byte, len(names))
	for i, name := range names {
		err := tree.ViewPage(ctx, from, name, func(b []byte) error { out[i] = slices.Clone(b); return nil })
		if err != nil && i > 0 {
			return out[:i], nil
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// flightPages are pages of which those that are away are being fetched.
type flightPages struct {
	Pages
	flights map[tree.Name]*pageFlight
}

// Batch has all pages that are away fetched with one batch of requests.
func (p Pages) Batch(ctx context.Context, names []tree.Name) tree.Pages {
	missing := p.missing(names)
	b := flightPages{p, make(map[tree.Name]*pageFlight, len(missing))}
	for i, f := range p.a.fetch(ctx, missing) {
		b.flights[missing[i]] = f
	}
	return b
}

func (p flightPages) ViewPage(ctx context.Context, name tree.Name, fn func([]byte) error) error {
	if f := p.flights[name]; f != nil {
		select {
		case <-f.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if f.err == nil { // nothing keeps it where the index is only read
			return fn(f.page)
		}
	}
	return p.Pages.ViewPage(ctx, name, fn)
}

// GetPath gets one page: the next one is not known before.
func (p Pages) GetPath(ctx context.Context, name tree.Name, _ []byte) ([][]byte, error) {
	b, err := p.GetPage(ctx, name)
	return [][]byte{b}, err
}

// missing returns the names of pages that are not here.
func (p Pages) missing(names []tree.Name) (out []tree.Name) {
	for _, name := range names {
		if errors.Is(p.Local.ViewPage(context.Background(), name, func([]byte) error { return nil }), tree.ErrMissing) {
			out = append(out, name)
		}
	}
	return out
}

// page fetches a page.
func (a *Part) page(ctx context.Context, name tree.Name) ([]byte, error) {
	if ctx.Value(lockedKey{}) != nil {
		return nil, ErrLocked
	}
	var f *pageFlight
	for f == nil || f.err != nil && (!f.one || f.by != bucket.AskerOf(ctx)) { // the error may be that of another page or process
		f = a.fetch(ctx, []tree.Name{name})[0]
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if errors.Is(f.err, depot.ErrLeft) {
		return nil, fmt.Errorf("page %v, which is not in the remote %s either: %w", name, a.At.URL, tree.ErrMissing)
	}
	if f.err != nil {
		return nil, a.Failed(ctx, fmt.Sprintf("page %v", name), f.err)
	}
	return f.page, nil
}

// fetch has pages fetched, each once, whoever asks at the same time. It does not wait.
func (a *Part) fetch(ctx context.Context, names []tree.Name) []*pageFlight {
	out := make([]*pageFlight, len(names))
	if len(names) == 0 || ctx.Value(lockedKey{}) != nil {
		return out
	}
	by := bucket.AskerOf(ctx)
	var own []tree.Name
	var flights []*pageFlight
	a.mu.Lock()
	for i, name := range names {
		f := a.pages[name]
		if f == nil {
			f = &pageFlight{done: make(chan struct{}), one: len(names) == 1, by: by}
			a.pages[name] = f
			own, flights = append(own, name), append(flights, f)
		}
		out[i] = f
	}
	defer a.mu.Unlock()
	switch {
	case a.closed:
		a.landed(own, flights, nil, catalog.ErrClosed)
	case len(own) > 0:
		a.out.Go(func() { a.land(a.as(by), own, flights) })
	}
	return out
}

// pagesBeside bounds the bytes that come with a page that is fetched alone.
const pagesBeside = 256 << 10

// land fetches pages and puts them into the index.
func (a *Part) land(ctx context.Context, names []tree.Name, flights []*pageFlight) {
	keep := !a.host.ReadOnly
	all, pages, err := a.get(ctx, names, keep)
	if half := len(names) / 2; half > 0 && (errors.Is(err, kv.ErrCorrupt) || errors.Is(err, depot.ErrLeft)) { // of one of them
		a.land(ctx, names[:half], flights[:half])
		a.land(ctx, names[half:], flights[half:])
		return
	}
	if err == nil && keep {
		came := make(map[tree.Name][]byte, len(all))
		for i, name := range all {
			came[name] = pages[i]
		}
		_ = a.host.Pages.Spill(context.Background(), came) // on a full disk, they are fetched again
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.landed(names, flights, pages, err)
}

// landed ends flights. mu is held.
func (a *Part) landed(names []tree.Name, flights []*pageFlight, pages [][]byte, err error) {
	for i, f := range flights {
		delete(a.pages, names[i])
		if f.err = err; err == nil {
			f.page = pages[i]
		}
		close(f.done)
	}
}

// get returns pages in the order of names. With keep, those that lie beside a lone page follow.
func (a *Part) get(ctx context.Context, names []tree.Name, keep bool) ([]tree.Name, [][]byte, error) {
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	ids := make([]depot.ID, len(names))
	for i, name := range names {
		ids[i] = depot.ID(name)
	}
	d, err := a.Depot(ctx)
	if err != nil {
		return nil, nil, err
	}
	if keep && len(ids) == 1 {
		if more, err := d.PagesBeside(ctx, ids[0], pagesBeside); err == nil && len(more) > 1 {
			beside := make([]tree.Name, 0, len(more))
			for _, id := range more[1:] {
				beside = append(beside, tree.Name(id))
			}
			all := append(names[:1:1], Pages{a.host.Pages, a}.missing(beside)...)
			more = more[:1]
			for _, name := range all[1:] {
				more = append(more, depot.ID(name))
			}
			if pages, err := d.Pages(ctx, more); err == nil {
				return all, pages, nil
			}
		} // or the page alone, if it is sound
	}
	pages, err := d.Pages(ctx, ids)
	return names, pages, err
}

// Lists returns nil if the bucket has a page, and tree.ErrMissing if not. It reads the index of the bucket, which is mostly here.
func (a *Part) Lists(ctx context.Context, name tree.Name) error {
	d, err := a.Depot(ctx)
	for try := 0; err == nil; try++ {
		var has []bool
		if has, err = d.HasPages(ctx, []depot.ID{depot.ID(name)}); err != nil {
			break
		}
		if has[0] {
			return nil
		}
		missing := fmt.Errorf("page %v, which is not in the remote %s either: %w", name, a.At.URL, tree.ErrMissing)
		if try > 0 {
			return missing
		}
		if err := d.Refresh(ctx); err != nil { // another process may have pulled
			return a.unasked(ctx, missing, err)
		}
	}
	return a.Failed(ctx, fmt.Sprintf("page %v", name), err)
}
