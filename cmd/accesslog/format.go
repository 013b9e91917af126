package accesslog

import (
	"errors"
	"fmt"
	"strings"
)

// escaping is how NGINX writes what would end a value.
type escaping uint8

const (
	escapeDefault escaping = iota // \xHH
	escapeJSON                    // as in JSON strings
	escapeNone
)

// Format is how the lines of a log are written.
type Format struct {
	// Name is a word for it: combined, main, sluice, json, or log_format for one
	// that was given as text.
	Name string

	json   bool
	loose  bool // more may follow at the end of a line
	escape escaping
	head   string // in front of the first variable
	parts  []part
}

// part is one variable, and the text that ends it.
type part struct {
	name string
	// end is the text behind it; empty: it takes the rest of the line.
	end     string
	literal []byte // end
	shape   shape
}

type shape uint8

const (
	plain  shape = iota
	list         // spaces beside commas and colons are a part of it
	target       // spaces are a part of it, the one before HTTP/ is not
	quoted       // a quote ends it, but for one behind a backslash
)

const (
	combined = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`
	common   = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent`
	// What render writes: see templates/http.conf.tmpl.
	sluice = `$remote_addr [$time_iso8601] "$request_method $uri $server_protocol" $status $body_bytes_sent time=$request_time id=$request_id ` +
		`asked="$sluice_asked" decision="$sluice_decision" tenant="$sluice_tenant" plan="$sluice_plan" `
	ingress = combined + ` $request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] $upstream_addr ` +
		`$upstream_response_length $upstream_response_time $upstream_status $req_id`
)

// named are the formats that have a word, in the order in which they are tried:
// what says more comes first.
func named() []*Format {
	return []*Format{
		{Name: "json", json: true},
		mustCompile("ingress", ingress, true),
		mustCompile("main", combined+` "$http_x_forwarded_for"`, true),
		mustCompile("combined", combined, true),
		mustCompile("sluice", sluice, true),
		mustCompile("common", common, true),
	}
}

func mustCompile(name, text string, loose bool) *Format {
	f, err := compile(text)
	if err != nil {
		panic("BUG: " + name + ": " + err.Error())
	}
	f.Name, f.loose = name, loose
	return f
}

// ParseFormat reads what a user says of a log: a word (combined, main, common,
// ingress, sluice, json), the text of a log_format, or the whole directive as it
// stands in nginx.conf. `escape=json ` or `escape=none ` in front of a text says
// what the directive's parameter would.
func ParseFormat(s string) (*Format, error) {
	for _, f := range named() {
		if f.Name == s {
			return f, nil
		}
	}
	if !strings.Contains(s, "$") {
		return nil, fmt.Errorf("log format %q; want combined, main, common, ingress, sluice, json, or the text of a log_format with its $variables", s)
	}
	f, err := parseDirective(s)
	if err != nil {
		return nil, fmt.Errorf("log format: %w", err)
	}
	if err := f.complete(); err != nil {
		return nil, fmt.Errorf("log format: %w", err)
	}
	return f, nil
}

// parseDirective takes off the directive's own words, if they are there.
func parseDirective(s string) (*Format, error) {
	text, escape := s, escapeDefault
	word, rest := cutWord(s)
	directive := word == "log_format"
	if directive {
		_, text = cutWord(strings.TrimSuffix(strings.TrimSpace(rest), ";")) // its name
	}
	if word, rest := cutWord(text); strings.HasPrefix(word, "escape=") {
		switch word {
		case "escape=default":
		case "escape=json":
			escape = escapeJSON
		case "escape=none":
			escape = escapeNone
		default:
			return nil, fmt.Errorf("%s; want escape=default, escape=json or escape=none", word)
		}
		text = rest
	}
	if directive || strings.HasPrefix(text, "'") {
		var err error
		if text, err = unquote(text); err != nil {
			return nil, err
		}
	}
	f, err := compile(escapes(text))
	if err != nil {
		return nil, err
	}
	if f.escape = escape; escape == escapeJSON {
		for i := range f.parts {
			if strings.HasPrefix(f.parts[i].end, `"`) {
				f.parts[i].shape = quoted
			}
		}
	}
	return f, nil
}

func cutWord(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \t\r\n")
	if i := strings.IndexAny(s, " \t\r\n"); i >= 0 {
		return s[:i], strings.TrimLeft(s[i:], " \t\r\n")
	}
	return s, ""
}

// unquote joins the quoted pieces of a directive: 'a ' "b".
func unquote(s string) (string, error) {
	var out strings.Builder
	for rest := strings.TrimSpace(s); rest != ""; rest = strings.TrimLeft(rest, " \t\r\n") {
		quote := rest[0]
		if quote != '\'' && quote != '"' {
			return "", errors.New("its pieces want quotes")
		}
		end := 1
		for end < len(rest) && rest[end] != quote {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return "", errors.New("a quote is open at its end")
		}
		out.WriteString(rest[1:end])
		rest = rest[end+1:]
	}
	return out.String(), nil
}

// escapes are those that NGINX knows in its configuration. Others stay as they are.
func escapes(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, `'`, `\t`, "\t", `\r`, "\r", `\n`, "\n").Replace(s)
}

// compile cuts the text into variables and what stands between.
func compile(text string) (*Format, error) {
	f := &Format{Name: "log_format"}
	i := strings.IndexByte(text, '$')
	if i < 0 {
		return nil, errors.New("it has no $variable")
	}
	f.head, text = text[:i], text[i:]
	for text != "" {
		name, rest := cutVariable(text[1:])
		if name == "" {
			return nil, fmt.Errorf("a $ without a name before %.20q", text)
		}
		end := rest
		if i := strings.IndexByte(rest, '$'); i >= 0 {
			end = rest[:i]
		}
		if end == "" && rest != "" {
			next, _ := cutVariable(rest[1:])
			return nil, fmt.Errorf("nothing stands between $%s and $%s: nobody can tell where one ends", name, next)
		}
		f.parts = append(f.parts, part{name: name, end: end, literal: []byte(end)})
		text = rest[len(end):]
	}
	f.shapes()
	return f, nil
}

func cutVariable(s string) (name, rest string) {
	if inner, ok := strings.CutPrefix(s, "{"); ok {
		if name, rest, ok := strings.Cut(inner, "}"); ok {
			return name, rest
		}
		return "", s
	}
	i := 0
	for i < len(s) && (s[i] == '_' || '0' <= s[i] && s[i] <= '9' || 'a' <= s[i] && s[i] <= 'z' || 'A' <= s[i] && s[i] <= 'Z') {
		i++
	}
	return s[:i], s[i:]
}

// shapes finds the variables with spaces that a space ends.
func (f *Format) shapes() {
	for i := range f.parts {
		p := &f.parts[i]
		if !strings.HasPrefix(p.end, " ") {
			continue
		}
		switch {
		case isList(p.name):
			p.shape = list
		case isTarget(p.name) && p.end == " " && i+1 < len(f.parts) && f.parts[i+1].name == "server_protocol":
			p.shape = target
		}
	}
}

// complete tells what a log must say of a request.
func (f *Format) complete() error {
	has := map[Var]bool{}
	core := NewVars()
	for _, p := range f.parts {
		if v, ok := core.inFormat(p.name); ok {
			has[v] = true
		}
	}
	switch {
	case has[VarDone]:
		return nil
	case !has[VarTime] && !has[VarMsec]:
		return errors.New("it says no time; want $time_local, $time_iso8601 or $msec in it")
	case !has[VarRequest] && !has[VarRequestURI] && !has[VarURI]:
		return errors.New("it says no request; want $request, $request_uri or $uri in it")
	case !has[VarRemoteAddr] && !has[VarRealipRemoteAddr] && !has[VarProxyProtocolAddr]:
		return errors.New("it says no client; want $remote_addr in it")
	}
	return nil
}
