package limit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTarget(t *testing.T) {
	t.Parallel()
	type want struct {
		Addrs                                []string
		User, Password, Master, SentinelPass string
		DB                                   int
		Cluster, TLS, SkipVerify             bool
		ServerName                           string
	}
	for url, w := range map[string]want{
		"redis://h1":             {Addrs: []string{"h1:6379"}},
		"REDIS://h1:7000/3":      {Addrs: []string{"h1:7000"}, DB: 3},
		"redis://[::1]":          {Addrs: []string{"[::1]:6379"}},
		"redis://":               {Addrs: []string{":6379"}},
		"redis://u:p%40s@h1/":    {Addrs: []string{"h1:6379"}, User: "u", Password: "p@s"},
		"redis://:p@h1/?db=2":    {Addrs: []string{"h1:6379"}, Password: "p", DB: 2},
		"rediss://h1":            {Addrs: []string{"h1:6379"}, TLS: true, ServerName: "h1"},
		"unix://u:p@/run/r.so":   {User: "u", Password: "p"},
		"redis://h1,h2?master=m": {Addrs: []string{"h1:26379", "h2:26379"}, Master: "m"},
		"rediss://u:p@[::1]:1,h2/4?master_name=m&sentinel_password=s&skip_verify=true": {
			Addrs: []string{"[::1]:1", "h2:26379"}, User: "u", Password: "p", Master: "m", SentinelPass: "s",
			DB: 4, TLS: true, SkipVerify: true},
		"redis+sentinel://h1?master=m":                 {Addrs: []string{"h1:26379"}, Master: "m"},
		"redis+cluster://u:p@h1,h2:7000/":              {Addrs: []string{"h1:6379", "h2:7000"}, User: "u", Password: "p", Cluster: true},
		"rediss+cluster://h1,h2/0?server_name=redis.x": {Addrs: []string{"h1:6379", "h2:6379"}, Cluster: true, TLS: true, ServerName: "redis.x"},
	} {
		got, err := parseTarget(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		g := want{Addrs: got.addrs, User: got.Username, Password: got.Password, Master: got.master,
			SentinelPass: got.sentinelPass, DB: got.DB, Cluster: got.cluster, TLS: got.TLSConfig != nil}
		if g.TLS {
			g.ServerName, g.SkipVerify = got.TLSConfig.ServerName, got.TLSConfig.InsecureSkipVerify
		}
		if diff := cmp.Diff(w, g); diff != "" {
			t.Errorf("%s (-want +got)\n%s", url, diff)
		}
	}
}
