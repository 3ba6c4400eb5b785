package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/zarrdb/zarrdb/engine"
)

// progress shows the progress of long work: on a terminal a bar with rate and
// remaining time, elsewhere nothing.
type progress struct {
	p     *mpb.Progress
	bar   *mpb.Bar
	begun time.Time
	bytes atomic.Int64
	lines progressLines
}

// progressLines writes progress for a program that started this one, see --progress-lines.
type progressLines struct {
	to         io.Writer // nil without that flag
	what, unit string
	last       time.Time
}

func newLines(cmd *cobra.Command, what, unit string) progressLines {
	if !isSet(cmd, "progress-lines") {
		return progressLines{}
	}
	return progressLines{to: cmd.ErrOrStderr(), what: what, unit: unit}
}

// report writes a line, at most ten in a second.
func (l *progressLines) report(what string, done, total int64) {
	if l.to == nil || time.Since(l.last) < 100*time.Millisecond && (total == 0 || done < total) {
		return
	}
	l.last = time.Now()
	line, _ := json.Marshal(map[string]any{"what": what, "unit": l.unit, "done": done, "total": total}) // no text can fail
	fmt.Fprintf(l.to, "\x1e%s\n", line)
}

// onTerminal reports whether standard error is a terminal.
func onTerminal(cmd *cobra.Command) bool {
	f, ok := cmd.ErrOrStderr().(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// showsProgress reports whether the user sees progress, and wants to.
func showsProgress(cmd *cobra.Command) bool {
	return onTerminal(cmd) && !isSet(cmd, "quiet") && !isSet(cmd, "no-progress")
}

// newProgress counts keys, elements of an array or versions.
func newProgress(cmd *cobra.Command, what, unit string) *progress {
	return barWith(cmd, what, unit, decor.CountersNoUnit("%d / %d "+unit))
}

// newByteProgress counts bytes.
func newByteProgress(cmd *cobra.Command, what string) *progress {
	return barWith(cmd, what, "bytes", decor.Counters(decor.SizeB1024(0), "% .1f / % .1f"))
}

func barWith(cmd *cobra.Command, what, unit string, counters decor.Decorator) *progress {
	if !showsProgress(cmd) {
		return &progress{lines: newLines(cmd, what, unit)}
	}
	out := &progress{begun: time.Now()}
	p := mpb.New(mpb.WithOutput(cmd.ErrOrStderr()), mpb.WithRefreshRate(200*time.Millisecond))
	bar := p.AddBar(0,
		mpb.PrependDecorators(decor.Name(what+" "), counters),
		mpb.AppendDecorators(
			decor.Percentage(decor.WCSyncSpace),
			decor.Any(func(decor.Statistics) string { return out.rate() }),
			decor.Name(" left "), decor.AverageETA(decor.ET_STYLE_GO),
		),
	)
	out.p, out.bar = p, bar
	return out
}

// rate prints the bytes copied so far, and their rate.
func (p *progress) rate() string {
	n := p.bytes.Load()
	return fmt.Sprintf(" %s, %s/s", size(n), size(int64(float64(n)/time.Since(p.begun).Seconds())))
}

// update shows a report of the engine. Calls do not overlap.
func (p *progress) update(r engine.Progress) {
	endsItself.Store(true)
	if p.bar == nil {
		p.lines.report(p.lines.what, r.Keys, r.TotalKeys)
		return
	}
	p.bytes.Store(r.Bytes)
	p.bar.SetTotal(max(r.TotalKeys, r.Keys+1), false)
	p.bar.SetCurrent(r.Keys)
}

// bytesDone is update for work that counts bytes.
func (p *progress) bytesDone(n, total int64) {
	p.update(engine.Progress{Keys: n, TotalKeys: total, Bytes: n})
}

// finish leaves the terminal in order.
func (p *progress) finish(err error) {
	if p.bar == nil {
		return
	}
	if err != nil {
		p.bar.Abort(false)
	} else {
		p.bar.SetTotal(-1, true)
	}
	p.p.Wait()
}

// phases shows the progress of work of unknown length: on a terminal the phase
// and its count, elsewhere nothing.
type phases struct {
	p    *mpb.Progress
	bar  *mpb.Bar
	text atomic.Pointer[string]

	lines progressLines
}

func newPhases(cmd *cobra.Command) *phases {
	out := &phases{lines: newLines(cmd, "", "")}
	if !showsProgress(cmd) {
		return out
	}
	out.update("begin", 0)
	out.p = mpb.New(mpb.WithOutput(cmd.ErrOrStderr()), mpb.WithRefreshRate(200*time.Millisecond))
	out.bar = out.p.AddSpinner(0,
		mpb.BarRemoveOnComplete(),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return *out.text.Load() }), decor.Elapsed(decor.ET_STYLE_GO)),
	)
	return out
}

// update shows that a phase has done a number of items.
func (p *phases) update(phase string, done int64) { p.say(fmt.Sprintf("%s %d", phase, done)) }

// say shows a text.
func (p *phases) say(text string) {
	endsItself.Store(true)
	text += " "
	p.text.Store(&text)
}

// finish removes the line.
func (p *phases) finish() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.p.Wait()
	}
}
