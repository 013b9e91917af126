package directory

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/authz/memo"
)

// Channel is where changes are told.
const Channel = "sluice:tenants"

// healthEvery is how often the connection is looked at on which changes are heard.
const healthEvery = time.Second

// Run listens to changes until ctx ends. When the connection was lost, what was
// known is forgotten: a change may have been told meanwhile.
func (d *Directory) Run(ctx context.Context) {
	sub := d.client.Subscribe(ctx, Channel)
	defer sub.Close()
	messages := sub.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(healthEvery), redis.WithChannelSendTimeout(time.Minute))
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-messages:
			if !ok {
				d.heard.Store(false)
				return
			}
			switch m := m.(type) {
			case *redis.Subscription:
				d.Forget()
				d.heard.Store(true)
			case *redis.Message:
				d.hear(m.Payload)
			}
		}
	}
}

// Forget forgets all that was read.
func (d *Directory) Forget() {
	d.changes.Add(1)
	d.keys.Clear()
	d.tenants.Clear()
	d.claims.Clear()
	d.certs.Clear()
}

// hear forgets what has changed. What cannot be read may have been anything.
func (d *Directory) hear(change string) {
	d.changes.Add(1)
	kind, name, _ := strings.Cut(change, ":")
	hash, isHash := HashFrom(name)
	switch {
	case kind == "key" && isHash:
		d.keys.Drop(&hash)
	case kind == "cert" && isHash:
		d.certs.Drop(&hash)
	case kind == "claim" && name != "":
		hash = claimKey([]byte(name))
		d.claims.Drop(&hash)
	case kind == "tenant" && isName(name):
		hash = tenantKey(name)
		d.tenants.Drop(&hash)
		hash = claimKey([]byte(name)) // which may name him, too
		d.claims.Drop(&hash)
	default:
		d.Forget()
	}
}

// HashFrom reads the digits of a hash, as names of records have them; false: they are
// no such.
func HashFrom(digits string) (hash memo.Key, ok bool) {
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != len(hash) {
		return memo.Key{}, false
	}
	return memo.Key(raw), true
}
