package policies

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func manyKey(i int) []byte  { return fmt.Appendf(nil, "sk_%d", i) }
func manyCert(i int) []byte { return fmt.Appendf(nil, "certificate %d", i) }

// manyFiles writes a policy with so many tenants in a file of their own.
func manyFiles(t testing.TB, tenants int) (policy string) {
	t.Helper()
	var b strings.Builder
	for i := range tenants {
		fmt.Fprintf(&b, "- {id: t%d, plan: free, keys: [{id: k%d, sha256: %x}], cert_sha256: [%x]}\n", i, i, sha256.Sum256(manyKey(i)), sha256.Sum256(manyCert(i)))
	}
	dir := t.TempDir()
	policy = filepath.Join(dir, "policy.yaml")
	for name, text := range map[string]string{
		"tenants.yaml": b.String(),
		"policy.yaml": `version: 1
identity: {sources: [{client_cert: {}}, {api_key: {header: X-API-Key}}], missing: {deny: 401}}
plans: {free: {limits: {speed: {per: key, rate: 1/s, burst: 10}}}}
tenant_files: [tenants.yaml]
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return policy
}

func manyTenants(t testing.TB, tenants int) *Compiled {
	t.Helper()
	p, found := Load(manyFiles(t, tenants))
	if len(found) > 0 {
		t.Fatal(found[0])
	}
	return Compile(p)
}

// BenchmarkLoadTenants reads and compiles a hundred thousand tenants.
func BenchmarkLoadTenants(b *testing.B) {
	policy := manyFiles(b, 100_000)
	for b.Loop() {
		p, found := Load(policy)
		if len(found) > 0 {
			b.Fatal(found[0])
		}
		Compile(p)
	}
}

// BenchmarkTenantLookup finds a tenant among a hundred thousand.
func BenchmarkTenantLookup(b *testing.B) {
	c := manyTenants(b, 100_000)
	hash := SHA256(sha256.Sum256(manyKey(77_777)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.KeyByHash(hash); !ok {
			b.Fatal("not found")
		}
	}
}
