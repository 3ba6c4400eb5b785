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
//	img.zarr/0       the names of its dimensions are those of the axes

const (
	// imageDepth is the number of groups above an array that may describe it.
	imageDepth = 4
	// keptImages bounds the groups that are kept.
	keptImages = 1024
)

// images keeps what groups say about images, for the arrays that were opened together.
type images struct {
	mu     sync.Mutex
	groups map[string]imageGroup // by path, those outside of the view after a slash
}

// imageGroup is what a path above an array is.
type imageGroup struct {
	group  *ome.Group
	err    error
	exists bool
}

// levelOf is the answer of a search; Level is nil for an array of no image.
type levelOf struct{ *ome.Level }

// keep keeps what the metadata of a group says, and returns it.
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

// Image returns the level of an OME-Zarr image that the array is, as a group above it says, or as
// the attributes of an image of OME-TIFF do; nil for an array of no image. The error is
// [ome.ErrMetadata] for a version that is not known, and for an image with another number of axes.
// The level must not be changed.
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

// findImage looks for the image of an array whose dimensions have no names. Damaged metadata above
// the array is no reason not to open it: [Array.Image] returns that error.
func (n *Node) findImage(ctx context.Context) {
	if n.array == nil {
		return
	}
	if m := n.array.Meta(); m.DimensionNames == nil && len(m.Shape) > 1 && len(m.Shape) <= 5 && m.Version != Draft3 {
		_, _ = n.array.Image(ctx)
	}
}

// level finds what the groups above an array say about it.
func (f *finder) level(ctx context.Context, path string) (*ome.Level, error) {
	l, more, err := f.levelIn(ctx, path, path, "")
	if more && f.opts.Above != nil {
		up := *f
		var root string
		if up.view, root, err = f.opts.Above(ctx); err != nil {
			return nil, ctx.Err() // it is the root of a file system, or not ours to read
		}
		l, _, err = up.levelIn(ctx, strings.Trim(joinPath(root, path), "/"), root, "/")
	}
	return l, err
}

// levelIn is level in one view: in the groups above the path from. more means that the root, which is
// a node, was reached. mark tells views apart.
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
