package cmd

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/authz/limit/limittest"
	"sluice/gen/gentest"
)

const storePolicy = `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: free}}
plans:
  free: {limits: {speed: {per: ip, rate: 1/s, burst: 3}}}
  pro:
    limits:
      speed: {per: key, rate: 2/s, burst: 4, wait: 1s}
      monthly: {per: tenant, quota: 20/month, accounting: soft}
      day: {per: tenant, quota: 25/day}
      log: {per: tenant, window: 15/1h, algorithm: log}
tenants: [{id: acme, plan: pro, keys: [{id: acme-web, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc}]}]
routes:
  - {name: jobs, match: {prefix: /jobs}, limits: {jobs: {per: tenant, concurrency: 1, lease: 1m}}}
  - {name: login, match: {exact: /login}, limits: {failures: {per: ip, window: 2/1h, count: {status: [401]}}}}
  - {name: rest, match: {prefix: /}}
`

const storeTests = `tests:
  - name: a bucket, and more after a pause
    requests:
      - {at: 0s, times: 3, url: /, expect: {status: 200}}
      - {at: 0s, url: /, expect: {status: 429, limit: speed}}
      - {at: 1500ms, times: 2, url: /, expect: {allowed: 1}}
  - name: held, and then refused
    requests:
      - {at: 0s, times: 4, key: acme-web, url: /, expect: {status: 200, delay: 0s}}
      - {at: 0s, key: acme-web, url: /, expect: {status: 200, delay: 500ms}}
      - {at: 0s, times: 3, key: acme-web, url: /, expect: {allowed: 1}}
  - name: one job at a time
    requests:
      - {at: 0s, key: acme-web, url: /jobs, takes: 500ms, expect: {status: 200}}
      - {at: 100ms, key: acme-web, url: /jobs, expect: {status: 429, limit: jobs}}
      - {at: 700ms, key: acme-web, url: /jobs, expect: {status: 200}}
  - name: only failures count
    requests:
      - {at: 0s, times: 3, url: /login, every: 700ms, expect: {status: 200}}
      - {at: 3s, times: 2, url: /login, every: 600ms, answers: 401, expect: {status: 401}}
      - {at: 4500ms, url: /login, expect: {status: 429, limit: failures}}
  - name: too long for a real clock
    requests:
      - {at: 0s, times: 3, url: /}
      - {at: 1h, url: /, expect: {status: 200}}
`

// TestOnRedis: the tests of a policy run on a real Redis too, which decides as
// memory does, and nothing stays behind.
func TestOnRedis(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "policy.yaml"), storePolicy)
	file := filepath.Join(dir, "policy_test.yaml")
	write(t, file, storeTests)
	var out, errs bytes.Buffer
	if status := Run([]string{"test", "--store", "redis://" + addr, file}, nil, &out, &errs); status != exitOK {
		t.Fatalf("status %d\n%s%s", status, &out, &errs)
	}
	text := out.String()
	if !strings.Contains(text, "5 tests, 27 requests, 4 on the store\n") || !strings.Contains(text, "too long for a real clock does not run on the store: it takes 1h0m0s") {
		t.Errorf("not told what ran on the store:\n%s", text)
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	keys, err := client.Keys(context.Background(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		// Ids of hard quotas are remembered for a minute.
		if ttl := client.TTL(context.Background(), k).Val(); !strings.HasPrefix(k, "sluice-test:") || ttl <= 0 || ttl > 3*time.Minute {
			t.Errorf("%s stays behind for %v", k, ttl)
		}
	}
}

// TestOnNoRedis: a store that does not answer is a failure, and tells no password.
func TestOnNoRedis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "policy.yaml"), storePolicy)
	file := filepath.Join(dir, "policy_test.yaml")
	write(t, file, "tests: [{name: a, requests: [{url: /, expect: {status: 200}}]}]\n")
	var out, errs bytes.Buffer
	if status := Run([]string{"test", "--store", "redis://:hush@" + gentest.FreePort(t), file}, nil, &out, &errs); status != exitNo {
		t.Errorf("status %d\n%s%s", status, &out, &errs)
	}
	if text := out.String(); !regexp.MustCompile(`on the store  expected 200, came .*unavailable`).MatchString(text) || strings.Contains(text+errs.String(), "hush") {
		t.Errorf("%s%s", text, &errs)
	}
}
