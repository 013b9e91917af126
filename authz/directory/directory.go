package directory

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/authz/limit"
	"sluice/authz/memo"
	"sluice/policies"
)

const (
	// knownFor, nobodyFor and unheardFor are how long what was read is believed:
	// a record, that there is none, and either while nobody listens to changes.
	knownFor, nobodyFor, unheardFor = time.Minute, 5 * time.Second, time.Second
	// staleFor is how much longer a record is believed while Redis is away.
	staleFor = 24 * time.Hour
	// readers are how many reads are under way at once; whoever comes later waits
	// for his turn within his deadline.
	readers = 64
	// connections are what the client keeps at most, one of them to listen.
	connections = 16
)

// Options are the choices of a Directory.
type Options struct {
	// Deadline is how long one Find may read; 0: as long as the client waits.
	Deadline time.Duration
	// Log is told once of each record that cannot be used; nil: slog.Default.
	Log *slog.Logger
}

// Directory finds keys and their tenants. It is safe for concurrent use.
type Directory struct {
	Options
	client  redis.UniversalClient
	breaker *limit.Breaker
	keys    *memo.Table[*Key]
	tenants *memo.Table[*Tenant]
	claims  *memo.Table[*Link] // by claimKey
	certs   *memo.Table[*Link]
	turns   chan struct{}

	heard   atomic.Bool   // somebody listens to changes
	changes atomic.Uint64 // how many were heard of

	found, nobody, failed atomic.Uint64 // reads
	refused               atomic.Uint64 // records that let nobody in

	mu   sync.Mutex
	said map[said]bool // what the log was told
}

// Open makes a directory on a Redis, named as limit.OpenRedis wants it. It waits
// for nobody. No error of it holds a password of the URL.
func Open(url string, o Options) (*Directory, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	client, err := limit.DialRedis(url, limit.RedisOptions{PoolSize: connections, Logger: o.Log})
	if err != nil {
		return nil, err
	}
	return &Directory{
		Options: o, client: client, breaker: limit.NewBreaker(nil, limit.BreakerOptions{}),
		keys: memo.New[*Key](), tenants: memo.New[*Tenant](), claims: memo.New[*Link](), certs: memo.New[*Link](),
		turns: make(chan struct{}, readers), said: map[said]bool{},
	}, nil
}

// Close ends all connections. Nothing may be asked afterwards.
func (d *Directory) Close() error { return d.client.Close() }

// Find is the key with this hash and its tenant at a time; nil, nil when it is
// nobody's. A key that is Broken has no tenant. What is not known it reads, within
// the deadline. An error wraps limit.ErrUnavailable.
func (d *Directory) Find(hash memo.Key, now time.Time) (*Key, *Tenant, error) {
	r := read{d: d, now: now}
	defer r.done()
	key, err := r.key(hash)
	if key == nil || key.Broken || err != nil {
		return key, nil, err
	}
	tenant, err := r.tenant(key.TenantID)
	if tenant == nil && err == nil {
		r.refuse(keyPrefix+key.ID, "a key of a tenant that is not there", "key", key.ID, "tenant", key.TenantID)
		return nil, nil, nil
	}
	return key, tenant, err
}

// Tenant is the tenant with this id at a time; nil when there is none. An error
// wraps limit.ErrUnavailable.
func (d *Directory) Tenant(id string, now time.Time) (*Tenant, error) {
	if !isName(id) {
		return nil, nil
	}
	r := read{d: d, now: now}
	defer r.done()
	return r.tenant(id)
}

// Claimed is the tenant that tokens and logins name so, at a time; nil when there is
// none. An error wraps limit.ErrUnavailable.
func (d *Directory) Claimed(claim []byte, now time.Time) (*Tenant, error) {
	if len(claim) == 0 || len(claim) > maxClaim {
		return nil, nil
	}
	r := read{d: d, now: now}
	defer r.done()
	name := claimKey(claim)
	link, err := r.link(d.claims, name, func() (*Link, error) { return r.readClaim(string(claim), name) })
	tenant, err := r.linked(link, err)
	switch {
	case tenant == nil || err != nil || tenant.Broken:
		return tenant, err
	case string(claim) == tenant.Named():
		return tenant, nil
	case link.ByID:
		return nil, nil // another claim names him: his id does not
	}
	r.refuse(claimPrefix+link.TenantID, "a claim of a tenant that says another", "tenant", link.TenantID)
	return &Tenant{ID: link.TenantID, Broken: true}, nil
}

// Certified is the tenant of a certificate, known by the hash of its DER, at a time;
// nil when it is nobody's. An error wraps limit.ErrUnavailable.
func (d *Directory) Certified(hash memo.Key, now time.Time) (*Tenant, error) {
	r := read{d: d, now: now}
	defer r.done()
	return r.linked(r.link(d.certs, hash, func() (*Link, error) { return r.readCert(hash) }))
}

// read is one Find: what it needs besides what is known.
type read struct {
	d      *Directory
	now    time.Time
	ctx    context.Context // from the first read on
	cancel context.CancelFunc
}

// refuse is Directory.Refuse when something was just read: what is known was told.
func (r *read) refuse(record, what string, attrs ...any) {
	if r.ctx != nil {
		r.d.Refuse(record, what, attrs...)
	}
}

func (r *read) done() {
	if r.cancel != nil {
		r.cancel()
	}
}

// key is the key with this hash.
func (r *read) key(hash memo.Key) (*Key, error) {
	e := r.d.keys.Find(&hash)
	if e != nil && r.now.Before(e.Until) {
		return e.Value, nil
	}
	key, err := r.readKey(hash)
	if err != nil && stale(e, r.now) && e.Value != nil {
		return e.Value, nil
	}
	return key, err
}

// tenant is the tenant with this id.
func (r *read) tenant(id string) (*Tenant, error) {
	name := tenantKey(id)
	e := r.d.tenants.Find(&name)
	if e != nil && r.now.Before(e.Until) {
		return e.Value, nil
	}
	tenant, err := r.readTenant(id, name)
	if err != nil && stale(e, r.now) && e.Value != nil {
		return e.Value, nil
	}
	return tenant, err
}

// link is who is named under a hash in one of the tables; nil: nobody.
func (r *read) link(table *memo.Table[*Link], hash memo.Key, readIt func() (*Link, error)) (*Link, error) {
	e := table.Find(&hash)
	if e != nil && r.now.Before(e.Until) {
		return e.Value, nil
	}
	link, err := readIt()
	if err != nil && stale(e, r.now) && e.Value != nil {
		return e.Value, nil
	}
	return link, err
}

// linked is the tenant that a link names.
func (r *read) linked(link *Link, err error) (*Tenant, error) {
	switch {
	case link == nil || err != nil:
		return nil, err
	case link.Broken:
		return &Tenant{Broken: true}, nil
	}
	tenant, err := r.tenant(link.TenantID)
	if tenant == nil && err == nil && !link.ByID {
		r.refuse("link to "+link.TenantID, "a claim or a certificate of a tenant that is not there", "tenant", link.TenantID)
	}
	return tenant, err
}

// stale tells whether an entry that is over may be believed for want of a better.
func stale[V any](e *memo.Entry[V], now time.Time) bool {
	return e != nil && now.Before(e.Until.Add(staleFor))
}

// tenantKey is what a tenant is known under.
func tenantKey(id string) memo.Key {
	var buf [maxID]byte // no allocation
	return sha256.Sum256(append(buf[:0], id...))
}

// claimKey is what a claim is known under.
func claimKey(claim []byte) memo.Key { return sha256.Sum256(claim) }

// Counts are the reads so far: that found a record, that found none, and that
// failed.
func (d *Directory) Counts() (found, nobody, failed uint64) {
	return d.found.Load(), d.nobody.Load(), d.failed.Load()
}

// Refused is how often a record was found that lets nobody in, since something is
// wrong with it.
func (d *Directory) Refused() uint64 { return d.refused.Load() }

// maxSaid is how much is remembered that the log was told.
const maxSaid = 1000

// said is what is wrong with a record.
type said struct{ record, what string }

// Refuse counts a record that lets nobody in, and tells the log, once for the record
// and what is wrong with it. attrs hold nothing secret.
func (d *Directory) Refuse(record, what string, attrs ...any) {
	d.refused.Add(1)
	this := said{record, what}
	d.mu.Lock()
	known := d.said[this]
	if len(d.said) >= maxSaid {
		clear(d.said)
	}
	d.said[this] = true
	d.mu.Unlock()
	if !known {
		d.Log.Error("tenants: "+what, attrs...)
	}
}

// isName tells whether a text can be the id of a tenant.
func isName(text string) bool { return new(policies.Name).UnmarshalText([]byte(text)) == nil }
