// Command refset writes a reference set in another format, through package
// refs and without a database, for other programs to read.
//
//	refset [-format v0|v1|v1-plain|parquet] [-records N] SET DEST
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/refs"
)

func main() {
	format := flag.String("format", "v0", "v0, v1, v1-plain (without templates) or parquet")
	records := flag.Int64("records", 0, "references in a partition")
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := convert(context.Background(), flag.Arg(0), flag.Arg(1), *format, *records); err != nil {
		fmt.Fprintln(os.Stderr, "refset:", err)
		os.Exit(1)
	}
}

func convert(ctx context.Context, from, to, format string, records int64) (err error) {
	folder, err := dirkv.Open(filepath.Dir(from), &dirkv.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer folder.Close()
	set, err := refs.Open(ctx, folder, filepath.Base(from), nil)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	switch format {
	case "v0":
		err = refs.WriteJSON(&buf, set.Entries(ctx), nil)
	case "v1", "v1-plain":
		err = refs.WriteJSON(&buf, set.Entries(ctx), &refs.WriteOptions{Version: 1, NoTemplates: format == "v1-plain"})
	case "parquet":
		if err := os.MkdirAll(to, 0o777); err != nil {
			return err
		}
		dest, err := dirkv.Open(to, &dirkv.Options{NoSync: true})
		if err != nil {
			return err
		}
		err = refs.WriteParquet(ctx, dest, set.Entries(ctx), &refs.ParquetOptions{RecordSize: records})
		return errors.Join(err, dest.Close())
	default:
		err = fmt.Errorf("format %q is not known", format)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, buf.Bytes(), 0o666)
}
