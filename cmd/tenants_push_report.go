package cmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sluice/authz/directory"
	"sluice/policies"
)

// maxTold is how many changes of a kind are told one by one.
const maxTold = 20

// pushReport is what a push changed, or would change.
type pushReport struct {
	DryRun  bool         `json:"dry_run,omitempty"`
	Added   []pushChange `json:"added"`
	Changed []pushChange `json:"changed"`
	Removed []pushChange `json:"removed"`
	Left    []pushChange `json:"left"` // in Redis and not in the files
	Same    int          `json:"unchanged"`
}

// pushChange is one record.
type pushChange struct {
	Record string   `json:"record"` // as changes are told: tenant:ID, key:HEX, ...
	What   string   `json:"what"`   // for people
	Fields []string `json:"fields,omitempty"`
}

func newPushReport(d *directory.Difference, o pushOptions) *pushReport {
	r := &pushReport{DryRun: o.DryRun, Same: d.Same, Added: []pushChange{}, Changed: []pushChange{}, Removed: []pushChange{}, Left: []pushChange{}}
	for i := range d.Changes {
		c := &d.Changes[i]
		told := pushChange{Record: recordName(c.Name), What: whatRecord(c.Name, c.Fields)}
		if c.Before == nil {
			r.Added = append(r.Added, told)
			continue
		}
		told.Fields = differentFields(c)
		r.Changed = append(r.Changed, told)
	}
	for i := range d.Others {
		c := &d.Others[i]
		told := pushChange{Record: recordName(c.Name), What: whatRecord(c.Name, c.Before)}
		if o.Prune {
			r.Removed = append(r.Removed, told)
		} else {
			r.Left = append(r.Left, told)
		}
	}
	return r
}

// recordName is a record's name, but for one that is no hash where a hash belongs:
// somebody may have written the key itself.
func recordName(name string) string {
	kind, id, _ := strings.Cut(name, ":")
	if (kind == "key" || kind == "cert") && !namesHash(id) {
		return fmt.Sprintf("%s:(%d bytes, no hash)", kind, len(id))
	}
	return name
}

// whatRecord is a record in words.
func whatRecord(name string, fields map[string]string) string {
	kind, id, _ := strings.Cut(recordName(name), ":")
	short := id
	if namesHash(id) {
		short = id[:12] + "..."
	}
	of := ""
	if tenant := plainName(fields["tenant"]); tenant != "" {
		of = " of " + tenant
	}
	switch kind {
	case "key":
		if known := plainName(fields["id"]); known != "" {
			return "key " + known + of
		}
		return "key " + short + of
	case "cert":
		return "certificate " + short + of
	case "claim":
		return fmt.Sprintf("claim %q%s", id, of)
	}
	if plainName(id) == "" {
		return fmt.Sprintf("%s %q", kind, id)
	}
	return kind + " " + id
}

// plainName is a name that can be shown as it is; empty when it is none: anybody may
// have written it.
func plainName(text string) string {
	if new(policies.Name).UnmarshalText([]byte(text)) != nil {
		return ""
	}
	return text
}

// differentFields says what changes in a record. What was in one that could not be
// used is not shown: anything may stand there.
func differentFields(c *directory.Change) []string {
	if !wasUsable(c) {
		return []string{"it could not be used"}
	}
	var out []string
	names := maps.Clone(c.Before)
	maps.Copy(names, c.Fields)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, was := c.Before[name]
		after, is := c.Fields[name]
		switch {
		case !was:
			out = append(out, fmt.Sprintf("%s %s", name, shown(after)))
		case !is:
			out = append(out, fmt.Sprintf("no %s (was %s)", name, shown(before)))
		case before != after:
			out = append(out, fmt.Sprintf("%s %s -> %s", name, shown(before), shown(after)))
		}
	}
	return out
}

// wasUsable tells whether a record in Redis lets anybody in.
func wasUsable(c *directory.Change) bool {
	var err error
	switch kind, id, _ := strings.Cut(c.Name, ":"); kind {
	case "tenant":
		_, err = directory.ReadTenant(id, c.Before)
	case "key":
		_, err = directory.ReadKey([32]byte{}, c.Before)
	default:
		_, err = directory.ReadLink(c.Before)
	}
	return err == nil
}

// shown is a value, quoted when it is no plain word.
func shown(value string) string {
	quoted := fmt.Sprintf("%q", value)
	if len(quoted) == len(value)+2 && value != "" && !strings.ContainsAny(value, " ,") {
		return value
	}
	return quoted
}

// print tells people.
func (r *pushReport) print(w io.Writer) error {
	var b strings.Builder
	for _, part := range []struct {
		did, would string
		list       []pushChange
	}{{"added", "would add", r.Added}, {"changed", "would change", r.Changed}, {"removed", "would remove", r.Removed}, {"left", "left", r.Left}} {
		verb := part.did
		if r.DryRun {
			verb = part.would
		}
		for i := range part.list {
			if i == maxTold {
				fmt.Fprintf(&b, "%s %d more; --format json tells all\n", pad(verb, len("would change")), len(part.list)-maxTold)
				break
			}
			c := &part.list[i]
			fmt.Fprintf(&b, "%s %s", pad(verb, len("would change")), c.What)
			if len(c.Fields) > 0 {
				b.WriteString(": " + strings.Join(c.Fields, ", "))
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "%d added, %d changed, %d removed, %d unchanged", len(r.Added), len(r.Changed), len(r.Removed), r.Same)
	if len(r.Left) > 0 {
		fmt.Fprintf(&b, "; %d in Redis are not in the files: --prune removes them", len(r.Left))
	}
	if r.DryRun {
		b.WriteString(" (nothing was written)")
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}
