package limit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// errRedisURL shows nothing of the URL: wherever it is broken, a part of it may
// be the password.
var errRedisURL = errors.New("cannot open Redis: the URL is not valid (not shown, it may hold a password); " +
	"want redis://[USER:PASSWORD@]HOST[:PORT][/DB], rediss://..., unix://[USER:PASSWORD@]/PATH[?db=DB], " +
	"redis://SENTINEL[,SENTINEL...]/[DB]?master=NAME or redis+cluster://HOST[,HOST...]; " +
	"write : / ? # @ in a password as %3A %2F %3F %23 %40")

var (
	errManyHosts = errors.New("cannot open Redis: several hosts; " +
		"want ?master=NAME behind them (they are sentinels) or redis+cluster:// in front of them")
	errNoMaster  = errors.New("cannot open Redis: sentinels need ?master=NAME")
	errClusterDB = errors.New("cannot open Redis: a cluster has database 0 only")
	errPlainTLS  = errors.New("cannot open Redis: ca, cert, key and server_name are for rediss://")
)

// target is what a URL says: one server, sentinels and the name of a master, or
// the first nodes of a cluster.
type target struct {
	*redis.Options // of one server, or what all have in common
	addrs          []string
	master         string
	sentinelUser   string
	sentinelPass   string
	cluster        bool
}

// parseTarget reads a URL. No error shows a part of it but the paths of files.
func parseTarget(raw string) (*target, error) {
	t := &target{}
	scheme, rest, _ := strings.Cut(raw, "://")
	scheme = strings.ToLower(scheme)
	secure := strings.HasPrefix(scheme, "rediss")
	sentinel := false
	if plain, kind, many := strings.Cut(scheme, "+"); many {
		t.cluster, sentinel = kind == "cluster", kind == "sentinel"
		if !t.cluster && !sentinel {
			return nil, errRedisURL
		}
		scheme = plain
	}
	address, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil || strings.Contains(raw, "#") {
		return nil, errRedisURL
	}
	config, err := t.own(values)
	if err != nil {
		return nil, err
	}
	if scheme != "unix" {
		if address, err = t.splitHosts(address); err != nil {
			return nil, err
		}
	}
	if t.Options, err = redis.ParseURL(scheme + "://" + address + "?" + values.Encode()); err != nil {
		return nil, errRedisURL
	}
	switch {
	case t.cluster && t.DB != 0:
		return nil, errClusterDB
	case t.cluster && t.master != "":
		return nil, errRedisURL
	case sentinel && t.master == "":
		return nil, errNoMaster
	case len(t.addrs) > 1 && t.master == "" && !t.cluster:
		return nil, errManyHosts
	case config != nil && !secure:
		return nil, errPlainTLS
	}
	t.secure(config)
	return t, nil
}

// own takes what the client does not know out of the query.
func (t *target) own(values url.Values) (*tls.Config, error) {
	take := func(name string) string {
		defer values.Del(name)
		return values.Get(name)
	}
	t.master = take("master")
	if name := take("master_name"); t.master == "" {
		t.master = name
	}
	t.sentinelUser, t.sentinelPass = take("sentinel_username"), take("sentinel_password")
	ca, cert, key, name := take("ca"), take("cert"), take("key"), take("server_name")
	if ca+cert+key+name == "" {
		return nil, nil
	}
	config := &tls.Config{ServerName: name}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("cannot open Redis: cannot read its ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("cannot open Redis: no certificate in its ca %q; want PEM", ca)
		}
	}
	if cert+key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cannot open Redis: cannot load the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// splitHosts takes the list of hosts out of [USER:PASSWORD@]HOST[,HOST...][/DB]
// and leaves the first of them.
func (t *target) splitHosts(address string) (string, error) {
	at := strings.LastIndexByte(address, '@') + 1
	hosts, path := address[at:], ""
	if slash := strings.IndexByte(hosts, '/'); slash >= 0 {
		hosts, path = hosts[:slash], hosts[slash:]
	}
	port := "6379"
	if t.master != "" {
		port = "26379"
	}
	list := strings.Split(hosts, ",")
	for _, host := range list {
		u, err := url.Parse("redis://" + host)
		switch {
		case err != nil || (u.Hostname() == "" && len(list) > 1):
			return "", errRedisURL
		case u.Port() == "":
			host = net.JoinHostPort(u.Hostname(), port)
		}
		t.addrs = append(t.addrs, host)
	}
	return address[:at] + list[0] + path, nil
}

// secure lays what the URL's files say over the client's own TLS configuration.
// Where there are many servers, each is verified by its own name.
func (t *target) secure(config *tls.Config) {
	if t.TLSConfig == nil {
		return
	}
	if t.cluster || t.master != "" {
		t.TLSConfig.ServerName = ""
	}
	if config == nil {
		return
	}
	t.TLSConfig.RootCAs, t.TLSConfig.Certificates = config.RootCAs, config.Certificates
	if config.ServerName != "" {
		t.TLSConfig.ServerName = config.ServerName
	}
}
