package directory

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/authz/limit"
	"sluice/authz/memo"
)

// errNoTurn is the cause when too many read already.
var errNoTurn = errors.New("too many read at once")

// noHash is the one field of what is no hash.
const noHash = "(no hash)"

// readKey reads a key, and remembers what it read.
func (r *read) readKey(hash memo.Key) (*Key, error) {
	d, changes := r.d, r.d.changes.Load()
	digits := hex.EncodeToString(hash[:])
	fields, err := r.fields(keyPrefix + digits)
	if err != nil {
		return nil, err
	}
	var key *Key
	if len(fields) > 0 {
		k, err := ReadKey(hash, fields)
		if err != nil {
			// The beginning of the hash tells which it is, and is nobody's secret.
			d.Refuse(keyPrefix+digits, "a key cannot be used", "key", digits[:12], "error", err.Error())
		}
		key = &k
	}
	d.keys.Add(&memo.Entry[*Key]{Key: hash, Until: r.now.Add(d.believed(key != nil)), Value: key}, r.now)
	if d.changes.Load() != changes {
		d.keys.Drop(&hash) // it may have been read before the change
	}
	return key, nil
}

// readTenant is readKey for a tenant.
func (r *read) readTenant(id string, name memo.Key) (*Tenant, error) {
	d, changes := r.d, r.d.changes.Load()
	fields, err := r.fields(tenantPrefix + id)
	if err != nil {
		return nil, err
	}
	var tenant *Tenant
	if len(fields) > 0 {
		t, err := ReadTenant(id, fields)
		if err != nil {
			d.Refuse(tenantPrefix+id, "a tenant cannot be used", "tenant", id, "error", err.Error())
		}
		tenant = &t
	}
	d.tenants.Add(&memo.Entry[*Tenant]{Key: name, Until: r.now.Add(d.believed(tenant != nil)), Value: tenant}, r.now)
	if d.changes.Load() != changes {
		d.tenants.Drop(&name)
	}
	return tenant, nil
}

// readClaim reads who is named by a claim: whom its record names, else the tenant who
// has it for his id.
func (r *read) readClaim(claim string, hash memo.Key) (*Link, error) {
	return r.readLink(r.d.claims, hash, claimPrefix+claim, func() (*Link, error) {
		if !isName(claim) {
			return nil, nil
		}
		tenant, err := r.tenant(claim)
		if tenant == nil || err != nil {
			return nil, err
		}
		return &Link{TenantID: claim, ByID: true}, nil
	})
}

// readCert reads whose a certificate is.
func (r *read) readCert(hash memo.Key) (*Link, error) {
	none := func() (*Link, error) { return nil, nil }
	return r.readLink(r.d.certs, hash, certPrefix+hex.EncodeToString(hash[:]), none)
}

// readLink reads a record that names a tenant, or finds him otherwise when there is
// none, and remembers it.
func (r *read) readLink(table *memo.Table[*Link], hash memo.Key, name string, otherwise func() (*Link, error)) (*Link, error) {
	d, changes := r.d, r.d.changes.Load()
	fields, err := r.fields(name)
	if err != nil {
		return nil, err
	}
	var link *Link
	if len(fields) == 0 {
		if link, err = otherwise(); err != nil {
			return nil, err
		}
	} else {
		l, err := ReadLink(fields)
		if err != nil {
			d.Refuse(name, "a claim or a certificate cannot be used", "record", name, "error", err.Error())
		}
		link = &l
	}
	table.Add(&memo.Entry[*Link]{Key: hash, Until: r.now.Add(d.believed(link != nil)), Value: link}, r.now)
	if d.changes.Load() != changes {
		table.Drop(&hash)
	}
	return link, nil
}

// believed is for how long what was read is believed.
func (d *Directory) believed(found bool) time.Duration {
	switch {
	case !d.heard.Load():
		return unheardFor
	case found:
		return knownFor
	}
	return nobodyFor
}

// fields are those of a record; none: there is no such record.
func (r *read) fields(name string) (fields map[string]string, err error) {
	switch {
	case r.ctx != nil:
	case r.d.Deadline > 0:
		r.ctx, r.cancel = context.WithTimeout(context.Background(), r.d.Deadline)
	default:
		r.ctx = context.Background()
	}
	err = r.d.breaker.Call(func() error {
		fields, err = r.d.turn(r.ctx, name)
		return err
	})
	switch {
	case err != nil:
		r.d.failed.Add(1)
	case len(fields) == 0:
		r.d.nobody.Add(1)
	default:
		r.d.found.Add(1)
	}
	return fields, err
}

// turn reads a record when there is room for one more reader.
func (d *Directory) turn(ctx context.Context, name string) (map[string]string, error) {
	select {
	case d.turns <- struct{}{}:
		defer func() { <-d.turns }()
	default:
		select {
		case d.turns <- struct{}{}:
			defer func() { <-d.turns }()
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: cannot read tenants: %w", limit.ErrUnavailable, errNoTurn)
		}
	}
	fields, err := d.client.HGetAll(ctx, name).Result()
	switch {
	case err == nil:
		return fields, nil
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return map[string]string{noHash: ""}, nil // a record that cannot be used
	}
	return nil, fmt.Errorf("%w: cannot read tenants: %w", limit.ErrUnavailable, err)
}
