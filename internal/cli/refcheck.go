package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/internal/report"
)

// refCheckOutput prints the problems that a check of references finds. The text
// form has a line for each file and kind of problem. The JSON form has every
// problem, printed when it is found, since there may be millions, in one object
// that is complete even if the check is interrupted.
type refCheckOutput struct {
	cmd   *cobra.Command
	json  bool
	count report.RefCheck

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

func (o *refCheckOutput) problem(p engine.RefProblem) error {
	kind := o.count.Add(p)
	if !o.json {
		o.group(p, kind)
		return nil
	}
	text, err := report.JSON(report.RefProblem{Key: p.Key, URL: p.URL, Kind: kind, Error: fault.OneLine(p.Err)}, "")
	if err != nil {
		return err
	}
	before := ",\n    "
	if o.count.Found == 1 {
		begin, _, err := o.around()
		if err != nil {
			return err
		}
		before = begin + "[\n    "
	}
	_, err = io.WriteString(o.cmd.OutOrStdout(), before+strings.TrimSuffix(text, "\n"))
	return err
}

// around returns the text of the report before and behind the list of problems.
func (o *refCheckOutput) around() (begin, end string, err error) {
	o.count.Problems = []report.RefProblem{}
	text, err := report.JSON(o.count, "  ")
	begin, end, _ = strings.Cut(text, "[]")
	return begin, end, err
}

// group counts a problem among those of its file.
func (o *refCheckOutput) group(p engine.RefProblem, kind string) {
	id := refGroup{p.URL, kind}
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
	g := &refGroupLine{key: p.Key, text: fault.OneLine(p.Err)}
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

// end prints the counts of a check that came to its end or, with an error, not.
// Problems are an error too.
func (o *refCheckOutput) end(r *engine.RefCheckReport, from int64, err error) error {
	o.printGroups()
	o.count.Checked, o.count.Next = max(r.Done-from, 0), r.Done
	if err == nil && r.Done < from {
		err = fmt.Errorf("refs check: --from %d, and there are only %s", from, count(r.Done, "reference"))
	}
	if o.json {
		begin, end, jerr := o.around()
		if begin += "[]"; o.count.Found > 0 {
			begin = "\n  ]"
		}
		_, werr := io.WriteString(o.cmd.OutOrStdout(), begin+end)
		err = errors.Join(err, jerr, werr)
	}
	switch {
	case err != nil && o.cmd.Context().Err() != nil && !o.json:
		say(o.cmd, "stopped after %s: go on with --from %d", count(r.Done, "reference"), r.Done)
		return err
	case err != nil:
		return err
	case o.count.Found > 0:
		err = fmt.Errorf("%d of %s cannot be read", o.count.Found, count(o.count.Checked, "reference"))
		if o.count.Forbidden > 0 {
			err = fmt.Errorf("%w; %d are not permitted (--allow; for a database once for all: zarrdb refs allow)", err, o.count.Forbidden)
		}
		return err
	case !o.json:
		say(o.cmd, "%s checked", count(o.count.Checked, "reference"))
	}
	return nil
}
