package policies

import (
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// complete checks what belongs to one mapping alone, after its keys were read.
func (d *decoder) complete(n *yaml.Node, v reflect.Value, path string) {
	d.placed(n, v)
	switch x := v.Addr().Interface().(type) {
	case *SourceSpec:
		d.oneKey(n, v.Type(), path)
	case *Fallback:
		d.oneKey(n, v.Type(), path)
	case *MatchSpec:
		d.prefix(n, x, path)
	case *ResponsesSpec:
		x.MessageOrder = d.order(n, x.Messages)
	}
}

// oneKey wants a mapping to say one of the things it could say.
func (d *decoder) oneKey(n *yaml.Node, t reflect.Type, path string) {
	var known, said []string
	for _, f := range fieldsOf(t) {
		known = append(known, f.key)
	}
	budget := lookupBudget
	all := entries(n, &budget)
	for _, e := range all {
		if find(d.fieldsOf(t), e.key.Value) != nil {
			said = append(said, e.key.Value)
		}
	}
	switch {
	case len(all) == 0:
		d.errorf(n, path, ruleChoice, "the mapping is empty; want %s", either(known))
	case len(said) > 1:
		d.errorf(n, path, ruleChoice, "%s stand together; want one of them", strings.Join(said, " and "))
	}
}

// prefix refuses a slash at the end of a prefix: prefixes are whole segments already.
func (d *decoder) prefix(n *yaml.Node, m *MatchSpec, path string) {
	s := string(m.Prefix)
	if len(s) < 2 || !strings.HasSuffix(s, "/") {
		return
	}
	budget := lookupBudget
	_, at := child(n, step{Key: "prefix"}, &budget)
	bare := strings.TrimRight(s, "/")
	d.errorf(at, field(path, "prefix"), rulePath, "a prefix is whole segments: %s is itself and all below %s/; want %s", bare, bare, bare)
	m.Prefix = Path(bare)
}

// order is the languages of the messages as the file has them.
func (d *decoder) order(n *yaml.Node, messages map[Language]Text) []Language {
	budget := lookupBudget
	_, at := child(n, step{Key: "messages"}, &budget)
	if at = orEmpty(at); at.Kind != yaml.MappingNode {
		return nil
	}
	var out []Language
	seen := map[Language]bool{}
	for _, e := range entries(at, &budget) {
		var l Language
		if l.UnmarshalText([]byte(e.key.Value)) != nil || messages[l] == "" || seen[l] {
			continue
		}
		seen[l] = true
		out = append(out, l)
	}
	return out
}

func orEmpty(n *yaml.Node) *yaml.Node {
	if n == nil {
		return &yaml.Node{}
	}
	return follow(n)
}

// word reads one of the words that a union has besides its mapping.
func (d *decoder) word(n *yaml.Node, t reflect.Type, path string, words ...string) bool {
	for _, w := range words {
		if n.Value == w {
			return true
		}
	}
	d.errorf(n, path, ruleWord, "%s is none of the words here; want %s%s", show(n.Value), wantOf(t), didYouMean(n.Value, words))
	return false
}

func (c *Clients) decode(d *decoder, n *yaml.Node, path string) bool {
	v := reflect.ValueOf(c).Elem()
	if n.Kind == yaml.ScalarNode {
		c.All = d.word(n, v.Type(), path, "all")
		return c.All
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		d.errorf(n, path, ruleEmptyList, "nobody is named here; want %s", wantOf(v.Type()))
		return false
	}
	return d.mapping(n, v, path)
}

func (w *WhenSpec) decode(d *decoder, n *yaml.Node, path string) bool {
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		d.errorf(n, path, ruleEmptyList, "there is no condition here; leave the key out, or want methods, headers, cookies or query")
		return false
	}
	return d.mapping(n, reflect.ValueOf(w).Elem(), path)
}

func (c *Condition) decode(d *decoder, n *yaml.Node, path string) bool {
	switch n.Kind {
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return d.emptyList(n, path)
		}
		return d.sequence(n, reflect.ValueOf(&c.Regexes).Elem(), path)
	case yaml.ScalarNode:
		switch n.Value {
		case "present":
			c.Present = true
			return true
		case "absent":
			c.Absent = true
			return true
		}
		if word := conditionWord(n.Value); word != "" {
			d.errorf(n, path, ruleWord, "%s would be a regular expression here; want %s, or the expression in a list if it is one", show(n.Value), word)
			return false
		}
		var r Regex
		if !d.value(n, reflect.ValueOf(&r).Elem(), path) {
			return false
		}
		c.Regexes = []Regex{r}
		return true
	}
	return d.is(n, yaml.ScalarNode, reflect.TypeFor[Condition](), path)
}

// conditionWord is the word that somebody meant who wrote another one.
func conditionWord(text string) string {
	switch strings.ToLower(text) {
	case "present", "exists", "set", "true", "yes", "any", "*", "required":
		return "present"
	case "absent", "missing", "unset", "false", "no", "none", "empty":
		return "absent"
	}
	return ""
}

func (c *CountRule) decode(d *decoder, n *yaml.Node, path string) bool {
	t := reflect.TypeFor[CountRule]()
	if n.Kind == yaml.ScalarNode {
		c.Requests = n.Value == "requests"
		return d.word(n, t, path, "units", "requests")
	}
	if !d.is(n, yaml.MappingNode, t, path) {
		return false
	}
	var spec struct {
		Status []statusPattern `yaml:"status"`
	}
	d.mapping(n, reflect.ValueOf(&spec).Elem(), path)
	if spec.Status == nil {
		if len(n.Content) == 0 {
			d.errorf(n, path, ruleShape, "the mapping is empty; want %s", wantOf(t))
		}
		return false
	}
	if len(spec.Status) == 0 {
		d.errorf(n, path, ruleEmptyList, "no status is named here; want %s", wantOf(t))
		return false
	}
	c.Requests = true
	for _, s := range spec.Status {
		c.Statuses = append(c.Statuses, int(s))
	}
	return true
}

// statusPattern is a status of an answer, or a class of them: 4 for 4xx.
type statusPattern int

// UnmarshalText reads a status such as 401 or a class such as 4xx.
func (s *statusPattern) UnmarshalText(text []byte) error {
	if len(text) == 3 && strings.EqualFold(string(text[1:]), "xx") && text[0] >= '1' && text[0] <= '5' {
		*s = statusPattern(text[0] - '0')
		return nil
	}
	n, err := whole(ruleStatus, string(text), 599)
	if err != nil || n < 100 {
		return wrongf(ruleStatus, "%s is no status; want one such as 401, or a class such as 4xx", show(string(text)))
	}
	*s = statusPattern(n)
	return nil
}

func (y *Delay) decode(d *decoder, n *yaml.Node, path string) bool {
	t := reflect.TypeFor[Delay]()
	if !d.is(n, yaml.ScalarNode, t, path) {
		return false
	}
	switch n.Value {
	case "all":
		y.All = true
		return true
	case "none":
		return true
	}
	if strings.Trim(n.Value, "0123456789") != "" {
		return d.word(n, t, path, "none", "all")
	}
	i, err := whole(ruleCount, n.Value, maxCount)
	if err == nil && i == 0 {
		err = wrongf(ruleCount, "0 is not how to say it; want none")
	}
	if err != nil {
		d.errorf(n, path, ruleOf(err), "%s", err)
	}
	y.N = i
	return err == nil
}
