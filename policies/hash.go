package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// hash tells policies apart by meaning: 16 hexadecimal digits over every key
// but tenants, which NGINX does not know and which change by the hour.
// Comments, order of keys and spelling of values do not count.
func (p *Policy) hash() string {
	bare := *p
	bare.Tenants, bare.TenantFiles = nil, nil
	// Values write themselves in their one canonical spelling; maps come sorted.
	data, err := json.Marshal(bare)
	if err != nil {
		panic("BUG: cannot hash policy: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
