package cmd

import (
	"encoding/json"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"sluice/cmd/accesslog"
	"sluice/cmd/replay"
	"sluice/gen"
)

type replayOptions struct {
	Policy, Against string
	Logs            []string
	LogFormat       string
	Format          string
	HTML            string
	Tenant          string
	CacheHits       bool
	Window          time.Duration
	ExitCode        bool
	Geo             geoOptions
}

func newReplayCmd(e *env) *cobra.Command {
	o := replayOptions{Geo: geoOptions{Mode: "compiled"}}
	c := &cobra.Command{
		Use:   "replay POLICY LOG...",
		Short: "Try a policy on access logs: who would be denied, by what, since when",
		Long: `Runs access logs through a policy's edge rules and limits, at the log's own
times. Says who would be denied, by what, and since when, which rules nobody
met, which paths no route names, and which limits would have let everything
pass. With --against also what changes against another policy.

Logs may be packed (gzip, zstd) and out of order; several are merged by time; -
is standard input. Without --log-format the first lines tell: combined, JSON, or
what render writes. Say anything else as the text of your log_format:

    sluice replay policy.yaml access.log \
        --log-format '$remote_addr [$msec] "$request" "$http_x_api_key"'

Credentials in a log are hashed as they are read. A log without them can say
whose a request is in a column: --tenant sluice_tenant, or any other variable
with a tenant's id, a key's id, or the SHA-256 of a key.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("replay wants a policy and a log")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.Policy, o.Logs = args[0], args[1:]
			return runReplay(e, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Against, "against", "", "another policy, to say who is newly denied and who no longer")
	f.StringVar(&o.LogFormat, "log-format", "", "combined, main, common, ingress, sluice, json, or the text of a log_format; the first lines tell")
	f.StringVar(&o.Format, "format", "text", "text or json")
	f.StringVar(&o.HTML, "html", "", "also write a page with charts to this file")
	f.StringVar(&o.Tenant, "tenant", "", "the variable that says whose a request is: a tenant's id, a key's id, or the SHA-256 of a key")
	f.BoolVar(&o.CacheHits, "count-cache-hits", true, "count what NGINX answered from its cache, as limits do")
	f.DurationVar(&o.Window, "window", accesslog.DefaultWindow, "how far apart lines may be out of order, the duration of requests included")
	f.BoolVar(&o.ExitCode, "exit-code", false, "exit 1 when somebody is denied; with --against: newly")
	f.StringVar(&o.Geo.Countries, "country-db", "", "a country database (.mmdb)")
	f.StringVar(&o.Geo.ASNs, "asn-db", "", "a database of autonomous systems (.mmdb)")
	return c
}

func runReplay(e *env, o replayOptions) error {
	if o.Format != "text" && o.Format != "json" {
		return usagef("--format %q; want text or json", o.Format)
	}
	if o.Window < time.Second || o.Window > time.Hour {
		return usagef("--window %s; want 1s to 1h", o.Window)
	}
	opt, err := o.prepare(e)
	if err != nil {
		return err
	}
	bar := newBar(e)
	if bar != nil {
		opt.Progress = bar.tell
	}
	report, err := replay.Run(opt)
	bar.end()
	if err != nil {
		return err
	}
	report.Policy, report.Against = o.Policy, o.Against
	if err := o.print(e, report); err != nil {
		return err
	}
	return o.verdict(report)
}

// prepare reads policies and flags.
func (o *replayOptions) prepare(e *env) (replay.Options, error) {
	opt, err := o.readings(e, o.Logs, o.Policy == "-" || o.Against == "-")
	if err != nil {
		return opt, err
	}
	if opt.Policy, err = compilePolicy(e, o.Policy); err != nil {
		return opt, err
	}
	if o.Against != "" {
		opt.Against, err = compilePolicy(e, o.Against)
	}
	return opt, err
}

// readings are the logs and databases; taken: standard input is something else.
func (o *replayOptions) readings(e *env, logs []string, taken bool) (replay.Options, error) {
	opt := replay.Options{Window: o.Window, Tenant: o.Tenant, SkipCacheHits: !o.CacheHits}
	var err error
	if o.LogFormat != "" {
		if opt.Format, err = accesslog.ParseFormat(o.LogFormat); err != nil {
			return opt, usagef("--log-format: %w", err)
		}
	}
	if opt.Sources, err = logSources(e, logs, taken); err != nil {
		return opt, err
	}
	var tables gen.Options
	if err := o.Geo.open(&tables); err != nil {
		return opt, err
	}
	opt.Geo = tables.Geo
	return opt, nil
}

// logSources are the logs that arguments name; standard input only once.
func logSources(e *env, logs []string, taken bool) ([]accesslog.Source, error) {
	var out []accesslog.Source
	for _, name := range logs {
		if name != "-" {
			out = append(out, accesslog.Source{Name: name})
			continue
		}
		if taken {
			return nil, usagef("standard input can be one thing only")
		}
		taken = true
		out = append(out, accesslog.Source{Name: "<stdin>", Reader: e.In})
	}
	return out, nil
}

func (o *replayOptions) print(e *env, r *replay.Report) error {
	if o.HTML != "" {
		if err := writePage(o.HTML, r); err != nil {
			return err
		}
	}
	if o.Format == "json" {
		enc := json.NewEncoder(e.Out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.WriteText(e.Out, replay.Style{Width: widthOf(e, e.Out), Colour: bool(paintFor(e))})
}

// verdict is the exit status that was asked for.
func (o *replayOptions) verdict(r *replay.Report) error {
	denied := r.Verdicts.Edge + r.Verdicts.Service
	if r.Changes != nil {
		denied = r.Changes.NewlyDenied
	}
	if o.ExitCode && denied > 0 {
		return errNo
	}
	return nil
}

// bar shows how far a replay has come, on a terminal alone.
type bar struct{ *progressbar.ProgressBar }

func newBar(e *env) *bar {
	if !onTerminal(e.Err) {
		return nil
	}
	return &bar{progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(e.Err), progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(min(40, widthOf(e, e.Err)/3)), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetDescription("reading"),
	)}
}

func (b *bar) tell(read, total int64) {
	if total > 0 && b.GetMax64() != total {
		b.ChangeMax64(total)
	}
	// What cannot be drawn is nobody's error.
	_ = b.Set64(read)
}

func (b *bar) end() {
	if b != nil {
		_ = b.Finish()
	}
}
