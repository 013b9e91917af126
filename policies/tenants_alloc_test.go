//go:build !race

package policies

import (
	"crypto/sha256"
	"testing"
)

// A hundred thousand tenants in a file are found, each by one hash, and no lookup
// allocates.
func TestManyTenants(t *testing.T) {
	c := manyTenants(t, 100_000)
	if len(c.Tenants) != 100_000 {
		t.Fatalf("%d tenants", len(c.Tenants))
	}
	for i := 0; i < len(c.Tenants); i += 997 {
		ref, ok := c.KeyByHash(sha256.Sum256(manyKey(i)))
		if tenant, known := c.TenantByClaim([]byte(c.Tenants[i].ID)); !ok || ref.Tenant != i || !known || tenant != i {
			t.Fatalf("tenant %d is found as %d (%t) and %d (%t)", i, ref.Tenant, ok, tenant, known)
		}
		if cert, ok := c.TenantByCert(sha256.Sum256(manyCert(i))); !ok || cert != i {
			t.Fatalf("tenant %d is found by certificate as %d, %t", i, cert, ok)
		}
	}
	hash, claim := SHA256(sha256.Sum256(manyKey(77))), []byte("t77")
	if n := testing.AllocsPerRun(100, func() {
		c.KeyByHash(hash)
		c.TenantByCert(hash)
		c.TenantByClaim(claim)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
