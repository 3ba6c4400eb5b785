package zarr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/ome"
)

// An array is a level of an OME-Zarr image if a group above it names it:
//
//	img.zarr         {"multiscales": [{"axes": […], "datasets": [{"path": "0"}, …]}]}
//	img.zarr/0       the names of its dimensions are the names of the axes

const (
	// imageDepth is the number of groups above an array that may describe it.
	imageDepth = 4
	// keptImages bounds the groups that are kept.
	keptImages = 1024
)

// images caches the OME-Zarr metadata of groups for the arrays that were opened together. Safe for
// concurrent use.
type images struct {
	mu     sync.Mutex
	groups map[string]imageGroup // by path, groups outside of the view after a slash
}

// imageGroup is the result of looking for a group at a path above an array.
type imageGroup struct {
	group  *ome.Group
	err    error
	exists bool
}

// levelOf is the result of a search. Level is nil for an array that belongs to no image.
type levelOf struct{ *ome.Level }

// keep parses the metadata of a group, caches the result and returns it. m is nil if there is no group.
func (im *images) keep(path string, m *Meta) (g imageGroup) {
	if m != nil {
		g.exists = true
		g.group, g.err = ome.Parse(m.Attributes)
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.groups == nil || len(im.groups) >= keptImages {
		im.groups = map[string]imageGroup{}
	}
	im.groups[path] = g
	return g
}

// Image returns the level of an OME-Zarr image that describes the array, from the nearest of up to
// four groups above it or from its own attributes (see [ome.OfArray]). It is nil for an array that
// belongs to no image. The first call that succeeds reads these groups; later calls return the same
// level, which must not be changed. The error is [ome.ErrMetadata] for an unknown version, and for
// an image with another number of axes. Safe for concurrent use.
func (a *Array) Image(ctx context.Context) (*ome.Level, error) {
	if l := a.image.Load(); l != nil {
		return l.Level, nil
	}
	m := a.Meta()
	l := ome.OfArray(m.Attributes)
	if l == nil && a.images != nil {
		f := finder{view: a.view, opts: a.opts, images: a.images}
		f.opts.Version, f.opts.Consolidated = a.loc.version, false
		var err error
		if l, err = f.level(ctx, a.loc.path); err != nil {
			return nil, a.fail("find image", err)
		}
	}
	if l != nil && l.Axes != nil && len(l.Axes) != len(m.Shape) {
		return nil, a.fail("find image", fmt.Errorf("%w: the image has %d axes, and the array %d dimensions", ome.ErrMetadata, len(l.Axes), len(m.Shape)))
	}
	a.image.Store(&levelOf{l})
	return l, nil
}

// findImage looks for the image of an array whose dimensions have no names. It ignores errors, so that
// an array below damaged metadata opens; [Array.Image] returns the error.
func (n *Node) findImage(ctx context.Context) {
	if n.array == nil {
		return
	}
	if m := n.array.Meta(); m.DimensionNames == nil && len(m.Shape) > 1 && len(m.Shape) <= 5 && m.Version != Draft3 {
		_, _ = n.array.Image(ctx)
	}
}

// level looks for the level of an array in the groups above it, also those above the root of the view.
func (f *finder) level(ctx context.Context, path string) (*ome.Level, error) {
	l, more, err := f.levelIn(ctx, path, path, "")
	if more && f.opts.Above != nil {
		up := *f
		var root string
		if up.view, root, err = f.opts.Above(ctx); err != nil {
			return nil, ctx.Err() // the root of a file system, or a directory that cannot be read
		}
		l, _, err = up.levelIn(ctx, strings.Trim(joinPath(root, path), "/"), root, "/")
	}
	return l, err
}

// levelIn is level in one view: in the groups above the path from. more reports that it reached the root
// of the view, and that a node is there. mark begins the keys of the cache, and differs between views.
func (f *finder) levelIn(ctx context.Context, path, from, mark string) (l *ome.Level, more bool, err error) {
	at := strings.Trim(from, "/")
	var root imageGroup
	for depth := 0; at != "" && depth < imageDepth; depth++ {
		at = at[:max(strings.LastIndexByte(at, '/'), 0)]
		f.images.mu.Lock()
		g, ok := f.images.groups[mark+at]
		f.images.mu.Unlock()
		if !ok {
			n, err := f.lookUp(ctx, at)
			switch {
			case err == nil && n.array == nil:
				g = f.images.keep(mark+at, n.Meta())
			case err == nil, errors.Is(err, kv.ErrNotFound), errors.Is(err, ErrNotFound), errors.Is(err, ErrPath):
				g = f.images.keep(mark+at, nil)
			default:
				return nil, false, err
			}
		}
		root = g
		if g.err != nil {
			return nil, false, fmt.Errorf("/%s: %w", at, g.err)
		}
		if l := g.group.Level(strings.TrimPrefix(path, below(at))); l != nil {
			return l, false, nil
		}
	}
	return nil, at == "" && (root.exists || from == ""), nil
}
