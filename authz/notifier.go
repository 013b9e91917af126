package authz

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/authz/limit"
	"sluice/policies"
)

const (
	// hookLease is how long an instance has for telling before another may.
	hookLease = 2 * time.Minute
	// firstRetry and lastRetry are how long a delivery that failed waits; each wait is
	// twice the one before.
	firstRetry, lastRetry = time.Second, 5 * time.Minute
	// giveUp is how old a delivery may become.
	giveUp = 24 * time.Hour
	// notifyEvery is how often it is looked whether something is to be sent.
	notifyEvery = 250 * time.Millisecond
	// spikeEvery is how long denials are counted together.
	spikeEvery = time.Minute
)

// NotifierOptions are the choices of a Notifier.
type NotifierOptions struct {
	// Notes say what was told already, by this instance or another.
	Notes limit.Notes
	// Spool is a directory for what could not be told yet. It is made when needed.
	Spool string
	// LookupEnv finds secrets.
	LookupEnv func(string) (string, bool)
	// Log gets what cannot be delivered; nil: slog.Default.
	Log *slog.Logger
	// SpikeEvery is for tests: how long denials are counted together; a minute if 0.
	SpikeEvery time.Duration
}

// Notifier tells webhooks what tenants have come to: each event once, whichever
// instance sees it, and at least once, whatever breaks. No decision waits for it.
type Notifier struct {
	NotifierOptions
	notices *notices
	owner   string // of claims
	client  *http.Client
	spool   spool
	hooks   atomic.Pointer[[]webhook]
	waiting atomic.Int64
	results *prometheus.CounterVec

	spikes spikes // of Run alone

	mu      sync.Mutex // of what follows
	pending []*delivery
	failing map[string]bool // hosts whose failure was logged

	pauses map[string]pause // of deliver alone
}

// pause is how long a receiver that does not answer is left alone.
type pause struct {
	until time.Time
	tries int
}

// NewNotifier makes a notifier. It tells nobody before an engine has a policy with webhooks.
func NewNotifier(o NotifierOptions) *Notifier {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.SpikeEvery <= 0 {
		o.SpikeEvery = spikeEvery
	}
	n := &Notifier{
		NotifierOptions: o, notices: newNotices(), owner: rand.Text(), client: newHookClient(), spool: spool{o.Spool}, failing: map[string]bool{}, pauses: map[string]pause{},
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_notifications_total", Help: "Notifications by what became of them: sent, told (by another instance), retried, dropped."}, []string{"result"}),
	}
	for _, result := range []string{"sent", "told", "retried", "dropped"} {
		n.results.WithLabelValues(result)
	}
	n.hooks.Store(&[]webhook{})
	return n
}

// use makes the receivers of a policy those that are told from now on. A secret that
// is not there is an error, and all stays as it was.
func (n *Notifier) use(c *policies.Compiled) error {
	if n == nil {
		return nil
	}
	list := []webhook{}
	for _, w := range c.Webhooks {
		secret, ok := n.LookupEnv(w.SecretEnv)
		if !ok || secret == "" {
			return fmt.Errorf("cannot sign notifications: $%s is not set", w.SecretEnv)
		}
		h, err := newWebhook(w.URL, secret)
		if err != nil {
			return fmt.Errorf("cannot notify a webhook: %w", err)
		}
		list = append(list, h)
	}
	n.hooks.Store(&list)
	return nil
}

// listening is where decisions leave their notices; nil when nobody is to be told.
func (n *Notifier) listening() *notices {
	if n == nil || len(*n.hooks.Load()) == 0 {
		return nil
	}
	return n.notices
}

// Run tells what there is to tell until ctx ends, and then keeps the rest.
func (n *Notifier) Run(ctx context.Context, e *Engine) {
	n.load()
	var wg sync.WaitGroup
	wg.Go(func() { n.watch(ctx, e) })
	wg.Go(func() {
		ticker := time.NewTicker(notifyEvery)
		defer ticker.Stop()
		for ctx.Err() == nil {
			n.deliver(ctx)
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	})
	wg.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.pending {
		n.keep(d)
	}
}

// watch hears of what happens.
func (n *Notifier) watch(ctx context.Context, e *Engine) {
	turn := time.NewTicker(n.SpikeEvery)
	defer turn.Stop()
	for {
		select {
		case x := <-n.notices.queue:
			n.add(x.happening(time.Now()))
		case <-turn.C:
			if n.listening() == nil {
				continue
			}
			for _, h := range n.spikes.look(e.state.Load(), time.Now()) {
				n.add(h)
			}
		case <-ctx.Done():
			for len(n.notices.queue) > 0 {
				x := <-n.notices.queue
				n.add(x.happening(time.Now()))
			}
			return
		}
	}
}

// load reads the spool.
func (n *Notifier) load() {
	list, err := n.spool.load()
	if err != nil {
		n.Log.Error("notifications", "error", err.Error())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending = append(list, n.pending...)
	n.waiting.Store(int64(len(n.pending)))
}

// add makes a delivery to each receiver. When there is no room the oldest goes.
func (n *Notifier) add(h happening) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, hook := range *n.hooks.Load() {
		d := &delivery{Hook: hook.name, Since: time.Now().UTC(), happening: h}
		if slices.ContainsFunc(n.pending, func(o *delivery) bool { return o.file() == d.file() }) {
			continue
		}
		if len(n.pending) >= maxSpool {
			n.drop(n.pending[0], "there is no room")
			n.pending = n.pending[1:]
		}
		n.pending = append(n.pending, d)
	}
	n.waiting.Store(int64(len(n.pending)))
}

// drop gives a delivery up.
func (n *Notifier) drop(d *delivery, why string) {
	n.Log.Error("a notification is given up", "why", why, "type", d.Event.Type, "tenant", d.Event.Data.Tenant, "since", d.Since)
	n.results.WithLabelValues("dropped").Inc()
	n.spool.drop(d)
}

// deliver tries what is due. Others go on adding meanwhile.
func (n *Notifier) deliver(ctx context.Context) {
	n.mu.Lock()
	due := slices.Clone(n.pending)
	n.mu.Unlock()
	for _, d := range due {
		now, hook := time.Now(), n.hook(d.Hook)
		switch {
		case ctx.Err() != nil:
			return
		case hook == nil:
			n.end(d, "its webhook is gone")
		case now.Sub(d.Since) > giveUp:
			n.end(d, "it is too old")
		case d.next.After(now) || n.pauses[d.Hook].until.After(now):
		default:
			n.attempt(ctx, hook, d)
		}
	}
}

// attempt tries one delivery and sees what became of it.
func (n *Notifier) attempt(ctx context.Context, hook *webhook, d *delivery) {
	done, err := n.try(ctx, hook, d)
	switch {
	case done:
		delete(n.pauses, d.Hook)
		n.end(d, "")
	case errors.Is(err, errAway):
		p := n.pauses[d.Hook]
		n.pauses[d.Hook] = pause{until: time.Now().Add(backoff(p.tries)), tries: p.tries + 1}
		fallthrough
	default:
		n.later(d, hook, err)
	}
}

// backoff is how long to wait after so many failures.
func backoff(tries int) time.Duration { return min(firstRetry<<min(tries, 16), lastRetry) }

// end takes a delivery out: it is told, or given up.
func (n *Notifier) end(d *delivery, why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if why != "" {
		n.drop(d, why)
	} else {
		n.spool.drop(d)
	}
	n.pending = slices.DeleteFunc(n.pending, func(o *delivery) bool { return o == d })
	n.waiting.Store(int64(len(n.pending)))
}

func (n *Notifier) hook(name string) *webhook {
	hooks := *n.hooks.Load()
	if i := slices.IndexFunc(hooks, func(h webhook) bool { return h.name == name }); i >= 0 {
		return &hooks[i]
	}
	return nil
}

// try tells a receiver, unless it was told. It is done when somebody has told it.
func (n *Notifier) try(ctx context.Context, hook *webhook, d *delivery) (done bool, err error) {
	claim := d.ID + "/" + hook.name
	holder, err := n.Notes.Claim(ctx, claim, n.owner, hookLease)
	switch {
	case err != nil:
		return false, err
	case holder == limit.DoneOwner:
		n.results.WithLabelValues("told").Inc()
		return true, nil
	case holder != n.owner:
		return false, nil // it is being told
	}
	if err := hook.send(ctx, n.client, &d.happening, time.Now()); err != nil {
		return false, err
	}
	n.results.WithLabelValues("sent").Inc()
	n.recovered(hook.host)
	life := max(time.Until(d.Until), time.Hour)
	if err := n.Notes.Done(context.WithoutCancel(ctx), claim, life); err != nil {
		n.Log.Warn("a notification may be told twice", "error", err.Error())
	}
	return true, nil
}

func (n *Notifier) recovered(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failing[host] {
		n.Log.Info("notifications are delivered again", "to", host)
		delete(n.failing, host)
	}
}

// later puts a delivery off, and on disk. Without an error somebody else is at it.
func (n *Notifier) later(d *delivery, hook *webhook, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.results.WithLabelValues("retried").Inc()
		if !n.failing[hook.host] {
			n.Log.Warn("a notification is not delivered: it is tried again", "to", hook.host, "error", err.Error())
			n.failing[hook.host] = true
		}
	}
	d.next = time.Now().Add(backoff(d.tries))
	d.tries++
	n.keep(d)
}

// keep puts a delivery on disk, if it is not there.
func (n *Notifier) keep(d *delivery) {
	if d.onDisk {
		return
	}
	if err := n.spool.keep(d); err != nil && !n.failing[""] {
		n.Log.Error("notifications are kept in memory only", "error", err.Error())
		n.failing[""] = true
	}
}

// Collectors are for /metrics.
func (n *Notifier) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		n.results,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_notifications_waiting", Help: "Notifications that are not delivered yet."}, func() float64 { return float64(n.waiting.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "sluice_notices_dropped_total", Help: "Notices of decisions that found no room, and come again with the next request."}, func() float64 { return float64(n.notices.dropped.Load()) }),
	}
}
