package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// verified reads payloads back.
func verified(s *Store, list ...Address) error {
	for _, a := range list {
		if err := s.Verify(context.Background(), a, func([]byte) error { return nil }); err != nil {
			return fmt.Errorf("%+v: %w", a, err)
		}
	}
	return nil
}

// At no moment of an import does a power cut take payloads away that were there,
// also not from a file that has to be put in order first; and what it copied is
// there when it returns.
func TestImportPowerCut(t *testing.T) {
	from, all := sealedWith(t, "from", vfs.NewMem(), 1000, 70_000, 5, 0, 3000, 300_000, 600)
	for _, rewritten := range []bool{false, true} {
		mem := vfs.NewCrashableMem()
		var images []*vfs.MemFS
		rng := rand.New(rand.NewPCG(1, 1))
		fs := crashtest.NewDisk(mem, func(d *crashtest.Disk, _ errorfs.Op) error {
			for _, percent := range []int{0, 50, 50, 50, 50, 50, 50, 100} {
				images = append(images, d.Cut(percent, percent, rng))
			}
			return nil
		})
		fs.On(false)
		to := must.Get(Open("to", &Options{FS: fs, Incarnation: [8]byte{2}}))(t)
		had := []Address{all[1], all[4]}
		mustImport(t, to, from, had...)
		if rewritten {
			out, err := to.Reclaim(context.Background(), all[0].Pack, []Extent{extentOf(all[4])}, math.MaxUint64)
			if err != nil || !out.Rewritten {
				t.Fatalf("%+v, %v", out, err)
			}
			had = had[1:]
		}
		before := to.Infos()
		fs.On(true)
		mustImport(t, to, from, all...)
		after := to.Infos()
		fs.On(false)
		look := func(fs vfs.FS, table []Info, want []Address) error {
			s, err := Open("to", &Options{FS: fs, Incarnation: [8]byte{2}, Table: table})
			if err != nil {
				return err
			}
			return errors.Join(verified(s, want...), s.Close())
		}
		if len(images) < 10 {
			t.Errorf("only %d images", len(images))
		}
		for i, image := range images {
			if err := look(image, before, had); err != nil {
				t.Errorf("rewritten %v: image %d of %d: %v", rewritten, i, len(images), err)
			}
		}
		if err := look(mem.CrashClone(vfs.CrashCloneCfg{}), after, all); err != nil {
			t.Errorf("rewritten %v: at the end: %v", rewritten, err)
		}
		must.Do(t, to.Close())
	}
}

// What a reader has open of a pack does not keep it from seeing what was imported
// since.
func TestImportIsSeenByReaders(t *testing.T) {
	dir := t.TempDir()
	from, all := sealedWith(t, filepath.Join(dir, "from"), osfs.FS, 70_000, 70_000, 700_000, 70_000)
	to := must.Get(Open(filepath.Join(dir, "to"), &Options{Incarnation: [8]byte{2}}))(t)
	defer to.Close()
	for i := range all {
		mustImport(t, to, from, all[i])
		if err := verified(to, all[:i+1]...); err != nil {
			t.Error(err)
		}
	}
}

// A file that a crash cut off anywhere takes what is missing.
func TestImportIntoAFileCutOff(t *testing.T) {
	from, all := sealedWith(t, "from", vfs.NewMem(), 1000)
	fs := vfs.NewMem()
	to := must.Get(Open("to", &Options{FS: fs, Incarnation: [8]byte{2}}))(t)
	mustImport(t, to, from, all...)
	path := to.path(all[0].Pack)
	must.Do(t, to.Close())
	f := must.Get(fs.Open(path))(t)
	whole, err := io.ReadAll(f)
	must.Do(t, errors.Join(err, f.Close()))
	for _, n := range []int{0, 1, fileHeaderSize - 1, fileHeaderSize, fileHeaderSize + 1, len(whole) - 2, len(whole) - 1, len(whole)} {
		fs := vfs.NewMem()
		must.Do(t, fs.MkdirAll("to", 0o755))
		f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
		must.Do(t, err)
		if _, err = f.Write(bytes.Clone(whole[:n])); err != nil { // a file system may spoil what it was given
			t.Fatal(err)
		}
		must.Do(t, f.Close())
		to := must.Get(Open("to", &Options{FS: fs, Incarnation: [8]byte{2}}))(t)
		_, out, err := to.Import(context.Background(), from, all[0].Pack, []Extent{extentOf(all[0])}, nil)
		if err == nil {
			err = verified(to, all...)
		}
		if err != nil {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
		if (out.Written == 0) != (n == len(whole)) {
			t.Errorf("%d of %d bytes: %+v", n, len(whole), out)
		}
		must.Do(t, to.Close())
	}
}

// A file whose header is damaged, and in which the index names payloads, is not
// begun anew.
func TestImportLeavesADamagedFile(t *testing.T) {
	from, all := sealedWith(t, "from", vfs.NewMem(), 1000, 2000)
	fs := vfs.NewMem()
	to := must.Get(Open("to", &Options{FS: fs, Incarnation: [8]byte{2}}))(t)
	mustImport(t, to, from, all[0])
	table, path := to.Infos(), to.path(all[0].Pack)
	must.Do(t, to.Close())
	f := must.Get(fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified))(t)
	must.Get(f.WriteAt([]byte{0}, 0))(t)
	before, err := io.ReadAll(f)
	must.Do(t, errors.Join(err, f.Close()))
	to = must.Get(Open("to", &Options{FS: fs, Incarnation: [8]byte{2}, Table: table}))(t)
	defer to.Close()
	if _, _, err := to.Import(context.Background(), from, all[0].Pack, []Extent{extentOf(all[1])}, nil); !errors.Is(err, kv.ErrCorrupt) {
		t.Error(err)
	}
	f = must.Get(fs.Open(path))(t)
	after, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed, from %d bytes to %d; %v", len(before), len(after), err)
	}
}

// A pack that is put in order keeps its length, of which the index knows, though
// its last payloads were given back.
func TestImportKeepsTheLength(t *testing.T) {
	from, all := sealedWith(t, "from", vfs.NewMem(), 70_000, 1000, 70_000, 70_000)
	fs := vfs.NewMem()
	to := must.Get(Open("to", &Options{FS: fs, Incarnation: [8]byte{2}}))(t)
	mustImport(t, to, from, all...)
	out, err := to.Reclaim(context.Background(), all[0].Pack, []Extent{extentOf(all[1])}, math.MaxUint64)
	if err != nil || !out.Rewritten {
		t.Fatalf("%+v, %v", out, err)
	}
	mustImport(t, to, from, all[0])
	table := to.Infos()
	must.Do(t, to.Close())
	to = must.Get(Open("to", &Options{FS: fs, Incarnation: [8]byte{2}, Table: table}))(t)
	defer to.Close()
	for _, info := range to.Infos() {
		if info.Size < info.End {
			t.Errorf("%+v", info)
		}
	}
	if err := verified(to, all[:2]...); err != nil {
		t.Error(err)
	}
}
