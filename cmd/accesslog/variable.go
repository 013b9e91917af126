package accesslog

import "strings"

// Var is a variable of NGINX that a log may hold, an index made by a Vars.
type Var int16

// The variables that this package itself knows.
const (
	VarRemoteAddr Var = iota
	VarRealipRemoteAddr
	VarProxyProtocolAddr
	VarTime // $time_local, $time_iso8601, $msec: told by its shape
	VarMsec // better than the others, where a line has both
	VarRequest
	VarMethod
	VarRequestURI
	VarURI
	VarArgs
	VarProtocol
	VarHost
	VarServerName
	VarStatus
	VarRequestTime
	VarRequestID
	VarRemoteUser
	VarUserAgent
	VarReferer
	VarCookies
	VarForwardedFor
	VarCacheStatus
	VarDone   // $sluice_done: of the datagrams that tell the service of ends of requests
	VarTenant // $sluice_tenant: whom the service knew
	coreVars
)

// coreNames are NGINX's names of the variables above, and what people call them
// in JSON logs. A name in JSON is compared in lower case, nested keys joined by dots.
var coreNames = [coreVars][]string{
	VarRemoteAddr:        {"remote_addr", "remote_ip", "remoteip", "remote", "client_ip", "clientip", "client", "ip", "source.ip", "client.ip", "source.address"},
	VarRealipRemoteAddr:  {"realip_remote_addr", "peer"},
	VarProxyProtocolAddr: {"proxy_protocol_addr"},
	VarTime:              {"time_local", "time_iso8601", "time", "timestamp", "@timestamp", "date", "ts", "datetime", "time_stamp"},
	VarMsec:              {"msec"},
	VarRequest:           {"request", "request_line"},
	VarMethod:            {"request_method", "method", "http_method", "http.request.method", "verb"},
	VarRequestURI:        {"request_uri", "url", "path", "request_path", "url.original", "http.url"},
	VarURI:               {"uri", "document_uri", "url.path"},
	VarArgs:              {"args", "query_string", "query", "url.query"},
	VarProtocol:          {"server_protocol", "protocol", "http_version", "http.version"},
	VarHost:              {"http_host", "host", "vhost", "domain", "url.domain"},
	VarServerName:        {"server_name", "server"},
	VarStatus:            {"status", "status_code", "response_code", "http.response.status_code", "response"},
	VarRequestTime:       {"request_time", "duration", "response_time", "request_duration"},
	VarRequestID:         {"request_id", "req_id", "x_request_id", "requestid", "http.request.id", "id"},
	VarRemoteUser:        {"remote_user", "user", "user.name"},
	VarUserAgent:         {"http_user_agent", "user_agent", "useragent", "agent", "user_agent.original"},
	VarReferer:           {"http_referer", "http_referrer", "referer", "referrer", "http.request.referrer"},
	VarCookies:           {"http_cookie", "cookie", "cookies"},
	VarForwardedFor:      {"http_x_forwarded_for", "x_forwarded_for", "forwarded_for", "xff"},
	VarCacheStatus:       {"upstream_cache_status", "cache_status", "cache"},
	VarDone:              {"sluice_done"},
	VarTenant:            {"sluice_tenant"},
}

// Vars are the variables that somebody wants to see of each line: those above,
// and others by their names in NGINX, such as http_x_api_key.
type Vars struct {
	names  map[string]Var // lower case
	wanted []string       // names of those that are not this package's own
}

// NewVars knows the variables of this package.
func NewVars() *Vars {
	v := &Vars{names: map[string]Var{}}
	for i, names := range coreNames {
		for _, name := range names {
			v.names[name] = Var(i)
		}
	}
	return v
}

// Want is the variable of that name, a new one if need be. A JSON log may spell a
// header x_api_key or x-api-key as well as http_x_api_key.
func (v *Vars) Want(name string) Var {
	name = strings.ToLower(name)
	if x, ok := v.names[name]; ok {
		return x
	}
	x := Var(v.Len())
	v.wanted = append(v.wanted, name)
	v.names[name] = x
	if header, ok := strings.CutPrefix(name, "http_"); ok {
		for _, alias := range []string{header, strings.ReplaceAll(header, "_", "-")} {
			if _, taken := v.names[alias]; !taken {
				v.names[alias] = x
			}
		}
	}
	return x
}

// inFormat finds the variable of a log_format: there NGINX's own names count, and
// not what people call them elsewhere.
func (v *Vars) inFormat(name string) (Var, bool) {
	x, ok := v.names[name]
	if ok && x < coreVars && name != coreNames[x][0] {
		switch name {
		case "time_iso8601", "document_uri", "query_string", "host", "req_id":
		default:
			return 0, false
		}
	}
	return x, ok
}

// isList tells of variables that are lists with spaces in them: "502, 200", or
// "10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80". Where they are not quoted, a space
// beside a comma or a colon is a part of them.
func isList(name string) bool {
	return strings.HasPrefix(name, "upstream_") || name == "http_x_forwarded_for" || name == "proxy_add_x_forwarded_for"
}

// isTarget tells of variables that may hold spaces, since they are decoded or were
// sent so by a client of no manners.
func isTarget(name string) bool {
	switch name {
	case "uri", "document_uri", "request_uri", "args", "query_string", "request":
		return true
	}
	return false
}

// Len is how many variables there are: all are below it.
func (v *Vars) Len() int { return int(coreVars) + len(v.wanted) }

// Name is NGINX's name of a variable.
func (v *Vars) Name(x Var) string {
	if x < coreVars {
		return coreNames[x][0]
	}
	return v.wanted[x-coreVars]
}
