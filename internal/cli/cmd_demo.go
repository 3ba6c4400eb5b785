package cli

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/npy"
)

// climate is a Zarr v3 store that xarray and zarr-python wrote from public
// measurements; demo/climate.py is how.
//
//go:embed demo/climate.zip
var climate []byte

// step is one thing that the demonstration does.
type step struct {
	say  string   // what and why
	args []string // the command that a user would type
	call string   // the same in Go
}

func demoSteps() []step {
	return []step{
		{
			say:  "Import a Zarr store that xarray wrote. Chunks are copied as they are; it is one commit.",
			args: []string{"import", "climate.zdb", "climate.zip", "-m", "three climate series"},
			call: `src, err := engine.OpenSource(ctx, "climate.zip", nil); db.Import(ctx, src, engine.ImportOptions{})`,
		},
		{say: "See what is in it.", args: []string{"tree", "climate.zdb"}},
		{
			say:  "Read: the last three years of sea surface temperatures, January to June.",
			args: []string{"read", "climate.zdb:ocean/sst", "--select", "year=-3:,month=:6"},
			call: `zarr.Read[float32](ctx, arr, zarr.Sel(zarr.Slice(-3, zarr.None, 1), zarr.Slice(zarr.None, 6, 1)))`,
		},
		{
			say:  "Give this version a name. It costs the same for any size.",
			args: []string{"tag", "climate.zdb", "v1"},
			call: `db.CreateTag(ctx, "v1", id)`,
		},
		{
			say:  "Write: a correction of one year, from a .npy file. Only the chunk it touches is stored anew.",
			args: []string{"write", "climate.zdb:ocean/sst", "--select", "60", "-i", "correction.npy", "-m", "correct 2010"},
			call: `db.Update(ctx, "main", "correct 2010", func(s *engine.Session) error { … zarr.Write(ctx, arr, zarr.Sel(zarr.At(60)), data) })`,
		},
		{say: "Change metadata.", args: []string{"attrs", "climate.zdb:ocean/sst", "--set", `long_name="SST, corrected"`, "-m", "say so"}},
		{say: "Rename an array. No chunk is touched.", args: []string{"mv", "climate.zdb:air/co2", "air/co2_ppm", "-m", "units in the name"}},
		{say: "The history,", args: []string{"log", "climate.zdb", "--oneline"}, call: `for c, err := range db.Log(ctx, head) { … }`},
		{say: "and all that changed since the tag.", args: []string{"diff", "climate.zdb@v1"}, call: `db.NodeChanges(ctx, from, to, "")`},
		{say: "Any version can be read at any time.", args: []string{"read", "climate.zdb@v1:ocean/sst", "--select", "60,:6"}},
		{say: "Roll back. Nothing is lost: the reflog knows where the branch was.", args: []string{"reset", "climate.zdb", "v1"}, call: `db.Reset(ctx, "main", id)`},
		{say: "Export the version to a plain Zarr directory, for any other program,", args: []string{"export", "climate.zdb@v1", "out.zarr"}, call: `engine.Export(ctx, src, "out.zarr", engine.ExportOptions{})`},
		{say: "and verify every checksum and hash of the database.", args: []string{"fsck", "climate.zdb", "--full"}, call: `db.Check(ctx, txn.CheckOptions{Payloads: true})`},
	}
}

func demoCmd() *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the main job on bundled data and show each step",
		Long: `Import real data that is bundled with the program, read it, change it, look at
the history, roll back, export and verify. Each step is shown as the command that
does it. Everything happens in a temporary directory, or in --dir.`,
		Example: `  zarrdb demo --dir ./tour`,
		Args:    argCount(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return demo(cmd, keep) },
	}
	cmd.Flags().StringVar(&keep, "dir", "", "work in this `DIRECTORY` and leave everything there")
	return cmd
}

func demo(cmd *cobra.Command, keep string) (err error) {
	dir := keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "zarrdb-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := map[string]func(io.Writer) error{
		"climate.zip":    func(w io.Writer) error { _, err := w.Write(climate); return err },
		"correction.npy": correction,
	}
	for name, fill := range files {
		if err := writeFile(filepath.Join(dir, name), fill); err != nil {
			return err
		}
	}
	for _, s := range demoSteps() {
		if err := s.run(cmd, dir); err != nil {
			return err
		}
	}
	n, err := sameAsBundled(filepath.Join(dir, "out.zarr"))
	if err != nil {
		return err
	}
	say(cmd, "\nThe %d exported files are the bundled ones, byte for byte.", n)
	return nil
}

func (s step) run(cmd *cobra.Command, dir string) error {
	say(cmd, "\n# %s", s.say)
	if s.call != "" {
		say(cmd, "# in Go: %s", s.call)
	}
	var words []string
	for _, a := range s.args {
		words = append(words, shellWord(a))
	}
	say(cmd, "$ zarrdb %s", strings.Join(words, " "))

	root := newRoot()
	root.SetArgs(s.inDir(dir))
	root.SetIn(cmd.InOrStdin())
	root.SetOut(cmd.OutOrStdout())
	root.SetErr(cmd.ErrOrStderr())
	return root.ExecuteContext(cmd.Context())
}

// inDir puts the files of a step's arguments into the directory.
func (s step) inDir(dir string) []string {
	var args []string
	for _, a := range s.args {
		for _, name := range []string{"climate.zdb", "climate.zip", "out.zarr", "correction.npy"} {
			if strings.HasPrefix(a, name) {
				a = filepath.Join(dir, a)
				break
			}
		}
		args = append(args, a)
	}
	return args
}

// correction is a made-up year of temperatures as a .npy file.
func correction(w io.Writer) error {
	t, _ := dtype.Of[float32]()
	h, err := npy.AppendHeader(nil, t, []int64{12})
	if err != nil {
		return err
	}
	for _, v := range []float32{24.5, 25.9, 26.4, 25.5, 23.9, 22.3, 21.2, 20.3, 20.5, 20.8, 21.7, 22.6} {
		h = binary.LittleEndian.AppendUint32(h, math.Float32bits(v))
	}
	_, err = w.Write(h)
	return err
}

// sameAsBundled compares an exported directory with the bundled archive, both
// ways, and counts the files.
func sameAsBundled(dir string) (int, error) {
	z, err := zip.NewReader(bytes.NewReader(climate), int64(len(climate)))
	if err != nil {
		return 0, err
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return 0, err
		}
		want, err := io.ReadAll(r)
		if err != nil {
			return 0, err
		}
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(got, want) {
			return 0, fmt.Errorf("%s differs from what was imported", f.Name)
		}
	}
	n := 0
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return err
	})
	if err == nil && n != len(z.File) {
		err = fmt.Errorf("%d files were exported, %d imported", n, len(z.File))
	}
	return n, err
}
