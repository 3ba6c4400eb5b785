package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
)

// refCheckOutput prints the problems that a check of references finds. The text
// form has a line for each file and kind of problem. The JSON form has every
// problem, printed when it is found, since there may be millions, in one object
// that is complete even if the check is interrupted.
type refCheckOutput struct {
	cmd       *cobra.Command
	json      bool
	found     int64
	forbidden int64

	groups map[refGroup]*refGroupLine
	order  []*refGroupLine // as they were found
}

// refGroup is the common properties of the references of a line.
type refGroup struct{ url, kind string }

type refGroupLine struct {
	key, text string // of the first reference
	more      int64
}

// maxRefGroups bounds the lines that are kept until the end of the check.
const maxRefGroups = 10000

// refProblemJSON is a problem as --json prints it.
type refProblemJSON struct {
	Key   string `json:"key"`
	URL   string `json:"url"`
	Kind  string `json:"kind"` // unreachable, changed, forbidden or failed
	Error string `json:"error"`
}

func refProblemKind(err error) string {
	switch {
	case errors.Is(err, engine.ErrForbidden):
		return "forbidden"
	case errors.Is(err, kv.ErrChanged):
		return "changed"
	case errors.Is(err, engine.ErrUnreachable):
		return "unreachable"
	}
	return "failed"
}

func (o *refCheckOutput) problem(p engine.RefProblem) error {
	if errors.Is(p.Err, engine.ErrForbidden) {
		o.forbidden++
	}
	o.found++
	if !o.json {
		o.group(p)
		return nil
	}
	text, err := jsonText(refProblemJSON{p.Key, p.URL, refProblemKind(p.Err), oneLine(p.Err)}, "")
	if err != nil {
		return err
	}
	return o.list(strings.TrimSuffix(text, "\n"))
}

// group counts a problem among those of its file.
func (o *refCheckOutput) group(p engine.RefProblem) {
	id := refGroup{p.URL, refProblemKind(p.Err)}
	if g := o.groups[id]; g != nil {
		g.more++
		return
	}
	if len(o.order) == maxRefGroups {
		o.printGroups()
	}
	if o.groups == nil {
		o.groups = map[refGroup]*refGroupLine{}
	}
	g := &refGroupLine{key: p.Key, text: oneLine(p.Err)}
	o.groups[id], o.order = g, append(o.order, g)
}

func (o *refCheckOutput) printGroups() {
	for _, g := range o.order {
		more := ""
		if g.more > 0 {
			more = fmt.Sprintf(" (and %s to this file)", count(g.more, "more reference"))
		}
		say(o.cmd, "%s: %s%s", g.key, g.text, more)
	}
	o.groups, o.order = nil, nil
}

// list prints an element of the list of problems.
func (o *refCheckOutput) list(element string) error {
	before := ",\n    "
	if o.found == 1 {
		before = "{\n  \"problems\": [\n    "
	}
	_, err := io.WriteString(o.cmd.OutOrStdout(), before+element)
	return err
}

// end prints the counts of a check that came to its end or, with an error, not.
// Problems are an error too.
func (o *refCheckOutput) end(r *engine.RefCheckReport, from int64, err error) error {
	o.printGroups()
	checked := max(r.Done-from, 0)
	if err == nil && r.Done < from {
		err = fmt.Errorf("refs check: --from %d, and there are only %s", from, count(r.Done, "reference"))
	}
	if o.json {
		head := "\n  ]"
		if o.found == 0 {
			head = "{\n  \"problems\": []"
		}
		_, werr := fmt.Fprintf(o.cmd.OutOrStdout(), "%s,\n  \"found\": %d,\n  \"forbidden\": %d,\n  \"checked\": %d,\n  \"next\": %d\n}\n",
			head, o.found, o.forbidden, checked, r.Done)
		err = errors.Join(err, werr)
	}
	switch {
	case err != nil && o.cmd.Context().Err() != nil && !o.json:
		say(o.cmd, "stopped after %s: go on with --from %d", count(r.Done, "reference"), r.Done)
		return err
	case err != nil:
		return err
	case o.found > 0:
		err = fmt.Errorf("%d of %s cannot be read", o.found, count(checked, "reference"))
		if o.forbidden > 0 {
			err = fmt.Errorf("%w; %d are not permitted (--allow; for a database once for all: zarrdb refs allow)", err, o.forbidden)
		}
		return err
	case !o.json:
		say(o.cmd, "%s checked", count(checked, "reference"))
	}
	return nil
}
