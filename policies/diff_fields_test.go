package policies

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// parseFields is a policy with the files that everyField names.
func parseFields(t *testing.T, text string) (*Policy, Diagnostics) {
	t.Helper()
	return Parse("policy.yaml", []byte(text), func(name FileName) ([]byte, error) {
		switch name {
		case "more.yaml":
			return []byte("- {id: filed, plan: pro}\n"), nil
		case "less.yaml":
			return []byte("[]\n"), nil
		}
		return os.ReadFile("testdata/example/jwks.json")
	})
}

// keysOfLanguage are all keys that the decoder knows, as TYPE.KEY.
func keysOfLanguage() []string {
	seen := map[reflect.Type]bool{}
	var out []string
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(t.Elem())
		case reflect.Map:
			walk(t.Elem())
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			for _, f := range fieldsOf(t) {
				out = append(out, t.Name()+"."+f.key)
				walk(t.Field(f.index).Type)
			}
		}
	}
	walk(reflect.TypeFor[Policy]())
	return out
}

// TestDiffOfEveryField: each key of the language, changed alone, is a change of
// the right kind, and changed back of the opposite kind. A new key without a diff
// fails here.
func TestDiffOfEveryField(t *testing.T) {
	t.Parallel()
	all := edits()
	for _, key := range keysOfLanguage() {
		if _, ok := all[key]; !ok {
			t.Errorf("%s has no diff: give it one, and an edit here", key)
		}
	}
	base, ds := parseFields(t, everyField)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	known := asSet(keysOfLanguage())
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !known[key] {
			t.Errorf("%s is no key", key)
		}
		for i, e := range all[key] {
			t.Run(fmt.Sprintf("%s/%d", key, i), func(t *testing.T) {
				checkEdit(t, base, e)
			})
		}
	}
}

func checkEdit(t *testing.T, base *Policy, e edit) {
	t.Helper()
	text := strings.Replace(everyField, e.old, e.new, 1)
	switch times := strings.Count(everyField, e.old); {
	case e.old == "":
		base, _ = parseFields(t, "version: 1\n")
		text = "version: 1\n" + e.new
	case times != 1:
		t.Fatalf("%q is %d times in the policy", e.old, times)
	}
	p, ds := parseFields(t, text)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	forth, back := Diff(base, p), Diff(p, base)
	if len(forth.Changes) == 0 || len(back.Changes) == 0 {
		t.Fatal("nothing changes")
	}
	got := effectsOf(forth)
	if e.want != nil {
		if diff := cmp.Diff(e.want, got); diff != "" {
			t.Errorf("the effects: %s\n%+v", diff, forth.Changes)
		}
	}
	if e.scope != "" && forth.Changes[0].Scope != e.scope {
		t.Errorf("the change is in %s, want %s", forth.Changes[0].Scope, e.scope)
	}
	if diff := cmp.Diff(opposites(got), effectsOf(back)); diff != "" {
		t.Errorf("the way back: %s\n%+v", diff, back.Changes)
	}
}

// opposites are the effects of the way back.
func opposites(effects []Effect) []Effect {
	var out []Effect
	for _, x := range effects {
		switch x {
		case EffectAdded:
			x = EffectRemoved
		case EffectRemoved:
			x = EffectAdded
		default:
			x = x.opposite()
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Effect) int { return a.rank() - b.rank() })
	return out
}

// effectsOf are all effects of a difference, in order.
func effectsOf(d Difference) []Effect {
	var out []Effect
	for _, e := range Effects() {
		if slices.ContainsFunc(d.Changes, func(c Change) bool { return c.Has(e) }) {
			out = append(out, e)
		}
	}
	return out
}

// TestDiffOfManyEdits: several changes at once are all told, on the way back with
// the opposite effects, and the result does not differ from itself.
func TestDiffOfManyEdits(t *testing.T) {
	t.Parallel()
	var all []edit
	for _, key := range slices.Sorted(maps.Keys(edits())) {
		all = append(all, edits()[key]...)
	}
	base, _ := parseFields(t, everyField)
	rapid.Check(t, func(r *rapid.T) {
		text, made := everyField, 0
		for _, e := range rapid.SliceOfN(rapid.SampledFrom(all), 2, 6).Draw(r, "edits") {
			next := strings.Replace(text, e.old, e.new, 1)
			if e.old == "" || strings.Count(text, e.old) != 1 {
				continue
			}
			if _, ds := parseFields(t, next); !ds.HasErrors() {
				text = next
				made++
			}
		}
		if made == 0 || text == everyField {
			return
		}
		p, _ := parseFields(t, text)
		forth, back := Diff(base, p), Diff(p, base)
		if len(forth.Changes) == 0 {
			r.Fatalf("%d edits are no change:\n%s", made, text)
		}
		if a, b := opposites(effectsOf(forth)), effectsOf(back); !slices.Equal(a, b) {
			r.Fatalf("the way back is %v, want %v:\n%s\n%s", b, a, told(forth), told(back))
		}
		if d := Diff(p, p); len(d.Changes) > 0 || d.Tenants > 0 {
			r.Fatalf("differs from itself:\n%s", told(d))
		}
	})
}
