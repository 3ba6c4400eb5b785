package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/pace"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// Table is a form of files that hold tables.
type Table struct {
	// Type is the content type.
	Type string
	// Write writes the selected elements: a row for each, behind a column for each dimension
	// with the labels that beside opens. dec decodes elements; nil writes them as they are
	// stored. Memory is bounded for selections of any size. The error is
	// errors.ErrUnsupported if the array has no form as a table.
	Write func(ctx context.Context, w io.Writer, a *zarr.Array, sel zarr.Selection, dec *cf.Decoder, beside cf.Opener) error
}

// tableBytes is the memory that is reserved for a table, and tableBegin the size of the
// beginning that is held back, so that an early error has its status.
const (
	tableBytes = 320 << 20
	tableBegin = 1 << 20
)

// table answers with a selection as a table. An error after the beginning was sent ends the
// connection, so that the client notices the missing end.
func (h *handler) table(w http.ResponseWriter, r *http.Request, v *serve.View, form Table) error {
	q := r.URL.Query()
	path := strings.Trim(q.Get("path"), "/")
	a, dec, err := decodable(r, v, path)
	if err != nil {
		return err
	}
	beside := engine.Beside(v, path)
	sel, err := selectionOf(r.Context(), q.Get("select"), a, beside)
	if err != nil {
		return err
	}
	if !h.memory.reserve(tableBytes) {
		return errMemory
	}
	defer h.memory.left.Add(tableBytes)
	describe(w, v, q.Get("rev"))
	w.Header().Set("Content-Type", form.Type)
	if r.Method == http.MethodHead {
		return nil
	}
	out := bufio.NewWriterSize(w, tableBegin)
	if err = form.Write(r.Context(), out, a, sel, dec, beside); err == nil {
		err = out.Flush()
	}
	sent, ok := w.(*pace.Writer)
	switch {
	case err != nil && ok && sent.Status != 0:
		panic(http.ErrAbortHandler)
	case errors.Is(err, errors.ErrUnsupported):
		return httpError{http.StatusNotAcceptable, err}
	}
	return err
}

// selectionOf parses the select of a request.
func selectionOf(ctx context.Context, text string, a *zarr.Array, beside cf.Opener) (zarr.Selection, error) {
	sel, _, err := cf.ParseSelection(ctx, text, a, beside)
	if errors.Is(err, cf.ErrLabel) {
		err = httpError{http.StatusBadRequest, err}
	}
	return sel, err
}
