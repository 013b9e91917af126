package cmd

import (
	"encoding/json"
	"io"

	"sluice/cmd/replay"
	"sluice/policies"
)

// The shape of a difference as JSON. Lists are never null.
type (
	diffReport struct {
		Old       string       `json:"old"`
		New       string       `json:"new"`
		Everybody bool         `json:"everybody"`
		Tenants   int          `json:"tenants"`
		Keys      int          `json:"keys"`
		Changes   []diffChange `json:"changes"`
		Log       *diffLog     `json:"log,omitempty"`
	}
	diffLog struct {
		Requests int64 `json:"requests"`
		*replay.Changes
	}
	diffChange struct {
		Scope     policies.Scope    `json:"scope"`
		Names     []string          `json:"names"`
		Limit     string            `json:"limit,omitempty"`
		Effects   []policies.Effect `json:"effects"`
		Fields    []diffField       `json:"fields"`
		Everybody bool              `json:"everybody"`
		Anonymous bool              `json:"anonymous"`
		Tenants   int               `json:"tenants"`
		Keys      int               `json:"keys"`
		Path      string            `json:"path,omitempty"`
		File      string            `json:"file,omitempty"`
		Line      int               `json:"line,omitempty"`
		Column    int               `json:"column,omitempty"`
	}
	diffField struct {
		Name    string            `json:"name"`
		Old     string            `json:"old,omitempty"`
		New     string            `json:"new,omitempty"`
		Removed []string          `json:"removed,omitempty"` // entries of a list
		Added   []string          `json:"added,omitempty"`
		Effects []policies.Effect `json:"effects"`
	}
)

// writeDiffJSON writes a difference for other programs.
func writeDiffJSON(w io.Writer, o diffOptions, d difference) error {
	r := diffReport{Old: o.Old, New: o.New, Everybody: d.Everybody, Tenants: d.Tenants, Keys: d.Keys, Changes: []diffChange{}}
	for _, c := range d.Changes {
		x := diffChange{
			Scope: c.Scope, Names: append([]string{}, c.Names...), Limit: c.Limit, Effects: c.Effects, Fields: []diffField{},
			Everybody: c.Everybody, Anonymous: c.Anonymous, Tenants: c.Tenants, Keys: c.Keys,
			Path: c.Path, File: c.Pos.File, Line: c.Pos.Line, Column: c.Pos.Col,
		}
		for _, f := range c.Fields {
			x.Fields = append(x.Fields, diffField{f.Name, f.Old, f.New, f.Gone, f.Come, append([]policies.Effect{}, f.Effects...)})
		}
		r.Changes = append(r.Changes, x)
	}
	if d.log != nil {
		r.Log = &diffLog{d.log.Verdicts.Requests, d.log.Changes}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
