package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/parquet/file"

	"github.com/zarrdb/zarrdb/internal/arrowfile"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/table"
)

// stations makes a database with an array (time 3, station 2) of packed numbers, one of
// texts, coordinates of times and texts, and one of a calendar that tables do not have.
func stations(t *testing.T) (db string) {
	t.Helper()
	db = filepath.Join(t.TempDir(), "w.zdb")
	for _, args := range [][]string{
		{"init", db},
		{"create", db + ":time", "--shape", "3", "--dtype", "int32", "--dims", "time", "--attrs", `{"units":"days since 2020-01-01"}`},
		{"write", db + ":time", "-s", "1", "--value", "31"}, {"write", db + ":time", "-s", "2", "--value", "60"},
		{"create", db + ":station", "--shape", "2", "--dtype", "string", "--dims", "station"},
		{"write", db + ":station", "-s", "0", "--value", `"Kiel"`}, {"write", db + ":station", "-s", "1", "--value", `"Ulm"`},
		{"create", db + ":t", "--shape", "3,2", "--chunks", "1,2", "--dtype", "int16", "--dims", "time,station", "--attrs", `{"scale_factor":0.5,"_FillValue":-1,"units":"K"}`},
		{"write", db + ":t", "-s", "1", "--value", "7"}, {"write", db + ":t", "-s", "2,1", "--value", "-1"},
		{"create", db + ":word", "--shape", "3,2", "--dtype", "string", "--dims", "time,station", "--fill", `"w"`},
		{"create", db + ":z", "--shape", "2", "--dtype", "complex64"},
		{"create", db + ":g/time", "--shape", "1", "--dtype", "int32", "--attrs", `{"units":"days since 2020-02-01","calendar":"360_day"}`, "--fill", "29"},
		{"create", db + ":g/t", "--shape", "1,2", "--dtype", "bool", "--dims", "time,"},
	} {
		var errs bytes.Buffer
		if code := run(t.Context(), args, nil, io.Discard, &errs); code != exitOK {
			t.Fatalf("%q: %s", args, errs.String())
		}
	}
	return db
}

// readArrow prints the rows of a file, and its columns.
func readArrow(t *testing.T, name string) (head string, rows []string) {
	t.Helper()
	f := must.Get(os.Open(name))(t)
	defer f.Close()
	r := must.Get(ipc.NewFileReader(f))(t)
	defer r.Close()
	var names []string
	for _, c := range r.Schema().Fields() {
		names = append(names, c.Name+" "+c.Type.String())
	}
	for k := range r.NumRecords() {
		rec := must.Get(r.Record(k))(t)
		for i := range int(rec.NumRows()) {
			var row []string
			for _, a := range rec.Columns() {
				text := a.ValueStr(i)
				if d, ok := a.(*array.Dictionary); ok {
					text = d.Dictionary().ValueStr(d.GetValueIndex(i))
				}
				row = append(row, text)
			}
			rows = append(rows, strings.Join(row, " "))
		}
	}
	return strings.Join(names, ", "), rows
}

// A table has a row for each element, with the labels that xarray shows.
func TestTable(t *testing.T) {
	db, out := stations(t), filepath.Join(t.TempDir(), "t.arrow")
	ctx := WithTables(t.Context(), arrowfile.Formats())
	const word = "dictionary<values=utf8, indices=int32, ordered=false>"
	for _, c := range []struct {
		args, head string
		rows       []string
	}{
		{"t --decode-cf --also word", "time timestamp[us], station " + word + ", t float64, word utf8", []string{
			"2020-01-01 00:00:00Z Kiel 0 w", "2020-01-01 00:00:00Z Ulm 0 w", "2020-02-01 00:00:00Z Kiel 3.5 w",
			"2020-02-01 00:00:00Z Ulm 3.5 w", "2020-03-01 00:00:00Z Kiel 0 w", "2020-03-01 00:00:00Z Ulm (null) w",
		}},
		{"word -s ::-2,1: --also t", "time timestamp[us], station " + word + ", word utf8, t int16", []string{"2020-03-01 00:00:00Z Ulm w -1", "2020-01-01 00:00:00Z Ulm w 0"}},
		{"t -s 1,1", "t int16", []string{"7"}},
		{"t -s 0:0", "time timestamp[us], station " + word + ", t int16", nil},
		{"time --decode-cf -s 1:", "time timestamp[us]", []string{"2020-02-01 00:00:00Z", "2020-03-01 00:00:00Z"}},
		{"g/t", "time " + word + ", dim_1 int64, t bool", []string{"2020-02-30T00:00:00 0 false", "2020-02-30T00:00:00 1 false"}},
	} {
		args := strings.Fields(c.args)
		args = append([]string{"read", db + ":" + args[0], "-o", out}, args[1:]...)
		var errs bytes.Buffer
		if code := run(ctx, args, nil, io.Discard, &errs); code != exitOK {
			t.Errorf("%s: %s", c.args, errs.String())
			continue
		}
		head, rows := readArrow(t, out)
		if head != c.head || fmt.Sprintf("%q", rows) != fmt.Sprintf("%q", c.rows) {
			t.Errorf("%s: %s\n%q, want %s\n%q", c.args, head, rows, c.head, c.rows)
		}
	}
	pq := filepath.Join(t.TempDir(), "T.PARQUET")
	if code := run(ctx, []string{"read", db + ":t", "-o", pq}, nil, io.Discard, io.Discard); code != exitOK {
		t.Fatal(code)
	}
	r := must.Get(file.OpenParquetFile(pq, false))(t)
	defer r.Close()
	if r.NumRows() != 6 || r.MetaData().Schema.NumColumns() != 3 {
		t.Errorf("%d rows of %d columns", r.NumRows(), r.MetaData().Schema.NumColumns())
	}
}

// A server sends the tables that read writes, and refuses what has none.
func TestTableServed(t *testing.T) {
	db := stations(t)
	urls, end := serving(t, db)
	defer end()
	base := urls[0][:strings.LastIndex(urls[0], "/w.zdb")] + "/-/api/read?db=w.zdb&"
	ctx := WithTables(t.Context(), arrowfile.Formats())
	for query, args := range map[string]string{
		"format=arrow&path=t&decode=cf":                             "t --decode-cf",
		"format=arrow&path=t&select=time%3D'2020-02',station%3D0:1": "t -s time='2020-02',station=0:1",
		"format=parquet&path=word":                                  "word",
	} {
		status, got := get(t, base+query)
		if status != 200 {
			t.Errorf("%s: %d %s", query, status, got)
			continue
		}
		name := filepath.Join(t.TempDir(), "t."+strings.Split(query[7:], "&")[0])
		words := strings.Fields(args)
		var errs bytes.Buffer
		if code := run(ctx, append([]string{"read", db + ":" + words[0], "-o", name}, words[1:]...), nil, io.Discard, &errs); code != exitOK {
			t.Fatal(errs.String())
		}
		want, err := os.ReadFile(name)
		if err != nil || got != string(want) {
			t.Errorf("%s: %d bytes, want %d: %v", query, len(got), len(want), err)
		}
	}
	for query, want := range map[string]int{"format=parquet&path=z": 406, "format=csv&path=t": 400} {
		if status, text := get(t, base+query); status != want || !strings.Contains(text, "error") {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
}

// What has no table is refused by name, and leaves no file.
func TestTableRefuses(t *testing.T) {
	db, dir := stations(t), t.TempDir()
	ctx := WithTables(t.Context(), arrowfile.Formats())
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"z -o x.parquet", exitFailed, "read /z: elements of type complex64 have no form in a table"},
		{"t --also z -o x.parquet", exitFailed, "columns of one table have the same dimensions"},
		{"t --also g -o x.arrow", exitFailed, "it is a group"},
		{"t --also none -o x.arrow", exitNotFound, "none"},
		{"t --also t -o x.arrow", exitUsage, "two columns of the table would be called t"},
		{"t --also word -o x.csv", exitUsage, "--also is for"},
		{"t -o x.feather", exitUsage, ".parquet or .arrow"},
	} {
		args := strings.Fields(c.args)
		args = append([]string{"read", db + ":" + args[0]}, args[1:]...)
		args[len(args)-1] = filepath.Join(dir, args[len(args)-1])
		var errs bytes.Buffer
		if code := run(ctx, args, nil, io.Discard, &errs); code != c.code || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: %d, %s", c.args, code, errs.String())
		}
	}
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"read", db + ":t", "-o", filepath.Join(dir, "x.parquet")}, nil, io.Discard, &errs); code != exitFailed || !strings.Contains(errs.String(), "writes no such files") {
		t.Errorf("without a writer of tables: %d, %s", code, errs.String())
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("left over: %v, %v", files, err)
	}
}

// countTables counts the rows in memory, and how many come at once.
type countTables struct {
	rows, most int
	cancel     context.CancelFunc
}

func (c *countTables) Write(rows int, columns []table.Values) error {
	c.rows, c.most = c.rows+rows, max(c.most, rows)
	for _, v := range columns {
		if n := len(v.Fixed); n != 8*rows {
			return fmt.Errorf("%d bytes for %d rows", n, rows)
		}
	}
	if c.cancel != nil {
		c.cancel()
	}
	return nil
}
func (c *countTables) Close() error { return nil }

// Rows come in pieces of bounded size however large the array and its chunks are, and
// Ctrl-C ends the command between two of them.
func TestTableIsBounded(t *testing.T) {
	db := filepath.Join(t.TempDir(), "w.zdb")
	for _, args := range [][]string{
		{"init", db}, {"create", db + ":a", "--shape", "3,1000,1000", "--chunks", "3,1000,1000", "--dtype", "uint8", "--attrs", `{"scale_factor":0.5}`},
	} {
		if code := run(t.Context(), args, nil, io.Discard, io.Discard); code != exitOK {
			t.Fatalf("%q: %d", args, code)
		}
	}
	for _, interrupted := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := &countTables{}
		want := exitOK
		if interrupted {
			c.cancel, want = cancel, exitInterrupted
		}
		ctx = WithTables(ctx, table.Formats{".arrow": func(io.Writer, []table.Column) (table.Writer, error) { return c, nil }})
		code := run(ctx, []string{"read", db + ":a", "--decode-cf", "-o", filepath.Join(t.TempDir(), "a.arrow")}, nil, io.Discard, io.Discard)
		if code != want || c.most > pieceRows || !interrupted && c.rows != 3_000_000 || interrupted && c.rows > pieceRows {
			t.Errorf("%d: %d rows, at most %d at once", code, c.rows, c.most)
		}
	}
}
