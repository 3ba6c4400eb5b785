package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

func writeCmd() *cobra.Command {
	var wf writeFlags
	var sel, in, value string
	cmd := &cobra.Command{
		Use:   "write TARGET --select SEL (-i FILE.npy | --value JSON)",
		Short: "Write into an array",
		Long: `Write the values of a .npy file into the part of an array that --select names
(default all of it), as one commit. The data type must be the array's, the
shape that of the selection; a single element is written everywhere.

--value gives that element as JSON, in the form of the fill values of Zarr v3:
5, NaN, "0x7fc00001", [1, -2] for a complex number, "text" for strings.`,
		Example: `  zarrdb write weather.zdb:temp --select 0 -i day0.npy -m "first day"
  zarrdb write weather.zdb:temp --select 'time=3,lat=0:10' --value NaN`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			hasValue := cmd.Flags().Changed("value")
			if (in == "") != hasValue {
				return usagef("write: either -i FILE.npy or --value JSON is needed")
			}
			var data *npyFile
			if !hasValue {
				if data, err = readInput(cmd, in); err != nil {
					return err
				}
			}
			message := fmt.Sprintf("write /%s", t.path)
			if sel != "" {
				message += "[" + sel + "]"
			}
			return wf.update(cmd, t, message, func(_ *engine.DB, s *engine.Session) error {
				a, err := s.Array(cmd.Context(), t.path)
				if err != nil {
					return err
				}
				which, err := zarr.ParseSelection(sel, a.DimensionNames())
				if err != nil {
					return usageError{err}
				}
				if hasValue {
					return a.WriteValue(cmd.Context(), which, json.RawMessage(value))
				}
				return writeArray(cmd.Context(), a, which, data)
			})
		},
	}
	cmd.Flags().StringVarP(&sel, "select", "s", "", "which elements (default all)")
	cmd.Flags().StringVarP(&in, "input", "i", "", "the .npy file to write, or - for standard input")
	cmd.Flags().StringVar(&value, "value", "", "the `JSON` of one value to write everywhere")
	wf.register(cmd)
	return cmd
}

func readInput(cmd *cobra.Command, name string) (*npyFile, error) {
	var r io.Reader = cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	data, err := readNpy(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

func writeArray(ctx context.Context, a *zarr.Array, sel zarr.Selection, data *npyFile) error {
	shape, err := a.Resolve(sel)
	if err != nil {
		return err
	}
	have, _ := data.typ.NumPy()
	want, ok := a.Type().NumPy()
	if !ok || have != want {
		return fmt.Errorf("write /%s: the array holds %v, the file %v", a.Path(), a.Type(), data.typ)
	}
	if len(data.data) != data.typ.Size() && !slices.Equal(shape, data.shape) {
		return fmt.Errorf("write /%s: the selection has shape %v, the file %v", a.Path(), shape, data.shape)
	}
	return a.WriteBytes(ctx, sel, data.data)
}
