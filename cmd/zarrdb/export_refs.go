package main

import (
	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
)

// referenceFormats are those of export --format that are reference sets.
var referenceFormats = map[string]engine.ExportReferencesOptions{
	"kerchunk-json":    {},
	"kerchunk-json-v1": {Version: 1},
	"kerchunk-parquet": {Parquet: true},
}

func exportReferences(cmd *cobra.Command, src *sourceFlags, args []string, o engine.ExportReferencesOptions) error {
	s, err := src.open(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	defer s.Close()
	bar := newProgress(cmd, "exporting")
	o.Progress = bar.update
	res, err := engine.ExportReferences(cmd.Context(), s, args[1], o)
	bar.finish(err)
	if err != nil {
		return err
	}
	cmd.Printf("%s, %s\n", count(res.Keys, "key"), size(res.Bytes))
	return nil
}
