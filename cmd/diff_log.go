package cmd

import (
	"fmt"
	"strings"

	"sluice/cmd/replay"
	"sluice/policies"
)

// newlyDenied is the word of --fail-on for requests of a log that only the new
// policy denies.
const newlyDenied = "newly-denied"

// tryBoth replays the logs under two policies.
func tryBoth(e *env, o diffOptions, before, after *policies.Policy) (*replay.Report, error) {
	r := o.Replay
	opt, err := r.readings(e, o.Logs, o.Old == "-" || o.New == "-")
	if err != nil {
		return nil, err
	}
	if opt.Against, err = compileLoaded(e, before, nil); err != nil {
		return nil, err
	}
	if opt.Policy, err = compileLoaded(e, after, nil); err != nil {
		return nil, err
	}
	return replay.Run(opt)
}

// markdownLog says what the change does to the requests of a log.
func markdownLog(b *strings.Builder, r *replay.Report) {
	if r == nil {
		return
	}
	c := r.Changes
	fmt.Fprintf(b, "\n**On the log:** of %s %s newly denied, %s no longer.\n", grouped(int(r.Verdicts.Requests), "request"), group(int(c.NewlyDenied)), group(int(c.NoLonger)))
	if len(c.Who) == 0 {
		return
	}
	b.WriteString("\n| who | requests | newly denied | no longer denied |\n|---|---:|---:|---:|\n")
	const few = 20
	for _, w := range c.Who[:min(few, len(c.Who))] {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", code(w.Who), group(int(w.Requests)), group(int(w.Newly)), group(int(w.NoLonger)))
	}
	if more := len(c.Who) - few; more > 0 {
		fmt.Fprintf(b, "\nand %s more.\n", group(more))
	}
}
