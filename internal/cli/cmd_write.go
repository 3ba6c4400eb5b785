package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
)

func writeCmd() *cobra.Command {
	var wf writeFlags
	var sel, in, value string
	var all bool
	cmd := &cobra.Command{
		Use:   "write TARGET --select SEL (-i FILE | --value JSON)",
		Short: "Write into an array",
		Long: `Write values into the part of an array that --select names as for read (default
all of it), as one commit. The file is a .npy file, whose shape must be that of the
selection, or () for one value that is written everywhere; or it has one JSON value
a line, in C order, as read -o FILE.jsonl writes them. Fixed-width text and bytes of
a .npy file become strings and bytes, numbers become numbers of the array's type,
rounded only from floats to shorter floats, and dates become counts in the units of
the array, which must be those of times in the standard calendar. Packed values,
beside scale_factor and add_offset, are written as they are stored. Numbers that the
type cannot hold are an error.

--value writes one value everywhere, given as JSON in the form of the fill values
of Zarr v3: 5, NaN, "0x7fc00001", [1, -2] for a complex number, "text" for strings,
"2020-02-01" for a date. One value for the whole array needs --all where standard error
is a terminal; scripts, whose standard error is a file or a pipe, need no --all.`,
		Example: `  zarrdb write weather.zdb:temp --select 0 -i day0.npy -m "first day"
  zarrdb write weather.zdb:temp --select 'time=3,lat=0:10' --value NaN
  zarrdb write weather.zdb:temp --select "time='2020-02',lat='50':'45'" --value NaN
  zarrdb write weather.zdb:station -i names.jsonl`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			hasValue := cmd.Flags().Changed("value")
			if (in == "") != hasValue {
				return usagef("write: either -i FILE or --value JSON is needed")
			}
			if all && sel != "" {
				return usagef("write: one of --select and --all")
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
				which, err := parseSelection(cmd, sel, a, engine.Beside(s, t.path))
				if err != nil {
					return err
				}
				var data *values
				if !hasValue {
					if data, err = readInput(cmd, in); err != nil {
						return err
					}
				}
				bar := newProgress(cmd, "writing", "elements")
				if one := hasValue || data.scalar(); one && sel == "" && !all && len(a.Shape()) > 0 && onTerminal(cmd) {
					bar.finish(nil)
					return usagef("write: one value would replace all of /%s: --select names a part, --all says that all are meant", t.path)
				}
				if hasValue {
					err = storeValue(cmd.Context(), a, which, json.RawMessage(value), bar.update)
				} else {
					err = data.store(cmd.Context(), a, which, bar.update)
				}
				bar.finish(err)
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&sel, "select", "s", "", "which elements (default all)")
	methodFlag(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "write one value into the whole array")
	cmd.Flags().StringVarP(&in, "input", "i", "", "the `FILE` to write, or - for standard input")
	cmd.Flags().StringVar(&value, "value", "", "the `JSON` of one value to write everywhere")
	wf.register(cmd)
	return cmd
}
