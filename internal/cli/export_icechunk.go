package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/formats"
)

// exportIcechunk writes a database as an Icechunk repository.
func exportIcechunk(cmd *cobra.Command, src *sourceFlags, args []string, history bool) error {
	for _, name := range []string{"overwrite", "resume", "recode", "inline", "inline-threshold", "as-stored", "compression", "sharded"} {
		if cmd.Flags().Changed(name) {
			return usagef("export: --%s and --format icechunk exclude each other", name)
		}
	}
	s, err := src.open(cmd, args[0])
	if err != nil {
		return err
	}
	defer s.Close()
	bar := newVersionProgress(cmd, "exporting")
	res, err := engine.ExportIcechunk(cmd.Context(), s, here(cmd).url(args[1]), engine.ExportIcechunkOptions{History: history, Progress: bar.update})
	bar.finish(err)
	if errors.Is(err, formats.ErrUnsupported) {
		return fmt.Errorf("%w (export --format zarr3 makes Zarr v3 of one version)", err)
	}
	if err != nil {
		return err
	}
	say(cmd, "%s, %s, %s", count(res.Versions, "version"), count(res.Keys, "key"), size(res.Bytes))
	if res.Expired > 0 {
		say(cmd, "left out: %s without data", count(res.Expired, "expired version"))
	}
	return nil
}
