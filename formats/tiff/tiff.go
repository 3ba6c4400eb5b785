package tiff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/refs"
)

// Format returns the line of the table of formats.
func Format() formats.Format {
	return formats.Format{
		Scheme: "tiff",
		Open:   open,
		Head:   frontBytes,
		Detect: func(e formats.Evidence) bool {
			_, _, ok := magic(e.Head)
			return ok
		},
		Codecs: []codecs.Entry{packintsEntry()},
	}
}

// open reads all directories, with the tags that become documents.
func open(ctx context.Context, base formats.Base, _ formats.Options) (refs.Set, error) {
	f, err := openFile(ctx, base.File)
	if err != nil {
		return nil, err
	}
	dirs, err := f.pages(ctx)
	if err != nil {
		return nil, err
	}
	images, err := f.images(ctx, dirs, base.Name)
	if err != nil {
		return nil, err
	}
	arrays := 0
	for _, im := range images {
		if arrays += len(im.levels); arrays > maxArrays {
			return nil, formats.Unsupported("tiff: more than %d pages of which each is an array", maxArrays)
		}
	}
	t := formats.NewTree()
	if err := place(t, f, base.Name, images); err != nil {
		return nil, err
	}
	return t, nil
}

// image is one image with its levels, the largest first.
type image struct {
	levels  []*array
	attrs   object // of the group of its levels
	refused error  // the reason if it is not supported; then there are no levels
}

// images makes images of the directories. An unsupported page is in the list
// with its reason, if other pages are supported.
func (f *file) images(ctx context.Context, dirs []*ifd, name string) ([]*image, error) {
	pages := make([]*page, len(dirs))
	var failed error
	reasons, read := make([]error, len(dirs)), 0
	for i, d := range dirs {
		var err error
		if pages[i], err = f.readPage(ctx, d); err != nil {
			err = fmt.Errorf("page %d: %w", i, err)
			if !errors.Is(err, formats.ErrUnsupported) {
				return nil, err
			}
			if failed == nil {
				failed = err
			}
			reasons[i] = err
			continue
		}
		read++
	}
	if read == 0 {
		return nil, failed
	}
	if failed == nil {
		if list, err := f.omeImages(ctx, pages, name); list != nil || err != nil {
			return list, err
		}
		if im, err := f.imageJ(ctx, pages); im != nil || err != nil {
			return []*image{im}, err
		}
	}
	var list []*image
	// A page of reduced resolution is a level of the last page before it that is
	// equally a mask or no mask.
	latest := map[bool]*image{}
	for i, p := range pages {
		if p == nil {
			list = append(list, &image{refused: reasons[i]})
			continue
		}
		of := latest[p.subfile&mask != 0]
		if p.subfile&reduced == 0 || of == nil || !of.levels[0].hasLevel(p) {
			of = &image{}
			list = append(list, of)
			latest[p.subfile&mask != 0] = of
		}
		if err := f.addLevel(ctx, of, p); err != nil {
			return nil, err
		}
		subs, err := f.subPages(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, sub := range subs {
			to := of
			if !of.levels[0].hasLevel(sub) { // such as the photograph of a preview
				to = &image{}
				list = append(list, to)
			}
			if err := f.addLevel(ctx, to, sub); err != nil {
				return nil, err
			}
		}
	}
	for _, im := range list {
		if err := f.locate(ctx, im); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// hasLevel reports whether a page may be the same image with fewer pixels.
func (a *array) hasLevel(p *page) bool {
	return p.width <= a.width && p.height <= a.height && p.samples == a.samples && p.bits == a.bits && p.format == a.format
}

// addLevel adds a page to an image.
func (f *file) addLevel(ctx context.Context, im *image, p *page) error {
	attrs, err := f.attributes(ctx, p)
	im.levels = append(im.levels, &array{form: p.form, pages: []*page{p}, attrs: attrs})
	return err
}

// subPages reads the sub-directories of a page, except unsupported ones.
func (f *file) subPages(ctx context.Context, p *page) ([]*page, error) {
	var list []*page
	for i, d := range p.dir.subs {
		sub, err := f.readPage(ctx, d)
		if errors.Is(err, formats.ErrUnsupported) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sub-directory %d: %w", i, err)
		}
		list = append(list, sub)
	}
	return list, nil
}

// place puts the images into a tree: at the root if there is one, else in a group.
func place(t *formats.Tree, f *file, name string, images []*image) error {
	if len(images) > 1 {
		attrs := object{}
		reasons := object{}
		for i, im := range images {
			if im.refused != nil {
				reasons[strconv.Itoa(i)] = im.refused.Error()
				attrs["unsupported"] = reasons
			}
		}
		if err := putGroup(t, "", attrs); err != nil {
			return err
		}
	}
	for i, im := range images {
		if im.refused != nil {
			continue
		}
		path := ""
		if len(images) > 1 {
			path = strconv.Itoa(i)
		}
		if len(im.levels) > 1 {
			if err := putGroup(t, path, im.attrs); err != nil {
				return err
			}
		}
		for j, a := range im.levels {
			a.path = path
			if len(im.levels) > 1 {
				a.path = formats.Join(path, strconv.Itoa(j))
			}
			if err := a.add(t, f, name); err != nil {
				return err
			}
		}
		if err := im.putReference(t, path); err != nil {
			return err
		}
	}
	return nil
}

func putGroup(t *formats.Tree, path string, attrs object) error {
	if attrs == nil {
		attrs = object{}
	}
	return put(t, formats.Join(path, "zarr.json"), object{"zarr_format": 3, "node_type": "group", "attributes": attrs})
}

func put(t *formats.Tree, key string, document object) error {
	b, err := json.Marshal(document)
	if err != nil {
		return err
	}
	t.Put(key, b)
	return nil
}
