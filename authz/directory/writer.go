package directory

import (
	"context"
	_ "embed" // the script
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"sluice/authz/limit"
)

//go:embed put.lua
var putScript string

const (
	// prefix begins the names of records in Redis.
	prefix = "sluice:"
	// batch is how many records one trip asks for or writes, scanned how many names
	// Redis looks at before it answers.
	batch, scanned = 200, 2000
)

// Writer writes records, and looks through them, for whoever sells plans.
type Writer struct {
	client redis.UniversalClient
	put    *redis.Script
}

// OpenWriter makes a writer to a Redis, named as limit.OpenRedis wants it. It waits for
// nobody. No error of it holds a password of the URL.
func OpenWriter(url string, log *slog.Logger) (*Writer, error) {
	client, err := limit.DialRedis(url, limit.RedisOptions{PoolSize: connections, Logger: log})
	if err != nil {
		return nil, err
	}
	return &Writer{client: client, put: redis.NewScript(putScript)}, nil
}

// Close ends all connections.
func (w *Writer) Close() error { return w.client.Close() }

// Change is what makes a record what it shall be.
type Change struct {
	Record
	// Before are the fields that it has in Redis; nil: it is not there. Fields of the
	// Record are nil when it is to be removed.
	Before map[string]string
}

// Difference is what records in Redis have to do with those that are wanted.
type Difference struct {
	Changes []Change // what is to be added or written anew, in the order of what was wanted
	Same    int      // how many are as they shall be
	Others  []Change // what is there and not wanted, with what would remove it, by name
}

// Compare looks what is different from what is wanted. It changes nothing.
func (w *Writer) Compare(ctx context.Context, wanted []Record) (*Difference, error) {
	there, err := w.names(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot look through the records: %w", err)
	}
	d := &Difference{}
	for chunk := range slices.Chunk(wanted, batch) {
		names := make([]string, len(chunk))
		for i := range chunk {
			names[i] = chunk[i].Name
		}
		before, err := w.read(ctx, names)
		if err != nil {
			return nil, err
		}
		for i := range chunk {
			delete(there, chunk[i].Name)
			if before[i] != nil && maps.Equal(before[i], chunk[i].Fields) {
				d.Same++
				continue
			}
			d.Changes = append(d.Changes, Change{chunk[i], before[i]})
		}
	}
	for names := range slices.Chunk(slices.Sorted(maps.Keys(there)), batch) {
		before, err := w.read(ctx, names)
		if err != nil {
			return nil, err
		}
		for i := range names {
			if before[i] != nil { // else it has gone meanwhile
				d.Others = append(d.Others, Change{Record{Name: names[i]}, before[i]})
			}
		}
	}
	return d, nil
}

// All goes through all records, tenants first, else by name, and ends at an error of
// what it calls.
func (w *Writer) All(ctx context.Context, each func(Record) error) error {
	there, err := w.names(ctx)
	if err != nil {
		return fmt.Errorf("cannot look through the records: %w", err)
	}
	sorted := slices.SortedFunc(maps.Keys(there), func(a, b string) int {
		if x, y := strings.HasPrefix(a, "tenant:"), strings.HasPrefix(b, "tenant:"); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for names := range slices.Chunk(sorted, batch) {
		found, err := w.read(ctx, names)
		if err != nil {
			return err
		}
		for i := range names {
			if found[i] == nil {
				continue // it has gone meanwhile
			}
			if err := each(Record{names[i], found[i]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// names are those of all records.
func (w *Writer) names(ctx context.Context) (map[string]bool, error) {
	names := map[string]bool{}
	collect := func(c redis.Cmdable) error {
		for cursor := uint64(0); ; {
			page, next, err := c.Scan(ctx, cursor, prefix+"[tkc]*", scanned).Result()
			if err != nil {
				return err
			}
			for _, key := range page {
				name := strings.TrimPrefix(key, prefix)
				if kind, rest, _ := strings.Cut(name, ":"); rest != "" && slices.Contains([]string{"tenant", "key", "claim", "cert"}, kind) {
					names[name] = true
				}
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	cluster, ok := w.client.(*redis.ClusterClient)
	if !ok {
		return names, collect(w.client)
	}
	masters, err := mastersOf(ctx, cluster)
	for _, m := range masters {
		err = errors.Join(err, collect(m))
	}
	return names, err
}

// mastersOf are the servers of a cluster that records are written to.
func mastersOf(ctx context.Context, c *redis.ClusterClient) ([]*redis.Client, error) {
	found := make(chan *redis.Client, 1000)
	err := c.ForEachMaster(ctx, func(_ context.Context, m *redis.Client) error {
		found <- m
		return nil
	})
	close(found)
	var masters []*redis.Client
	for m := range found {
		masters = append(masters, m)
	}
	return masters, err
}

// read reads records, of which one that is not there is nil.
func (w *Writer) read(ctx context.Context, names []string) ([]map[string]string, error) {
	replies := make([]*redis.MapStringStringCmd, len(names))
	_, _ = w.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			replies[i] = p.HGetAll(ctx, prefix+name)
		}
		return nil
	})
	out := make([]map[string]string, len(names))
	for i, reply := range replies {
		fields, err := reply.Result()
		switch {
		case redis.HasErrorPrefix(err, "WRONGTYPE"):
			out[i] = map[string]string{noHash: ""}
		case err != nil:
			return nil, fmt.Errorf("cannot read records: %w", err)
		case len(fields) > 0:
			out[i] = fields
		}
	}
	return out, nil
}

// Apply makes changes, and says how many it has made. What names a tenant is written
// after him and removed before him. Each change is told as it is made. To make all of
// them again does no harm.
func (w *Writer) Apply(ctx context.Context, changes []Change) (made int, err error) {
	if err := w.load(ctx); err != nil {
		return 0, fmt.Errorf("cannot load the script: %w", err)
	}
	ordered := slices.Clone(changes)
	slices.SortStableFunc(ordered, func(a, b Change) int { return a.turn() - b.turn() })
	for chunk := range slices.Chunk(ordered, batch) {
		replies := make([]*redis.Cmd, len(chunk))
		_, _ = w.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range chunk {
				replies[i] = w.put.EvalSha(ctx, p, []string{prefix + chunk[i].Name}, chunk[i].args()...)
			}
			return nil
		})
		for _, reply := range replies {
			if replyErr := reply.Err(); replyErr != nil {
				err = replyErr
				continue
			}
			made++
		}
		if err != nil {
			return made, fmt.Errorf("cannot write records: %w", err)
		}
	}
	return made, nil
}

// load makes the script known.
func (w *Writer) load(ctx context.Context) error {
	cluster, ok := w.client.(*redis.ClusterClient)
	if !ok {
		return w.put.Load(ctx, w.client).Err()
	}
	masters, err := mastersOf(ctx, cluster)
	for _, m := range masters {
		err = errors.Join(err, w.put.Load(ctx, m).Err())
	}
	return err
}

// turn orders changes.
func (c *Change) turn() int {
	tenant := strings.HasPrefix(c.Name, "tenant:")
	switch {
	case c.Fields != nil && tenant:
		return 0
	case c.Fields != nil:
		return 1
	case !tenant:
		return 2
	}
	return 3
}

func (c *Change) args() []any {
	args := []any{Channel, c.Name}
	for _, name := range slices.Sorted(maps.Keys(c.Fields)) {
		args = append(args, name, c.Fields[name])
	}
	return args
}
