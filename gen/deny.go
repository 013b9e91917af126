package gen

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"sluice/policies"
)

// denyCache is where NGINX keeps denials for a moment, so that a storm of
// refused requests costs the service a call each second and not one for each.
// Allowed answers are never kept.
//
// The service says which denials may be kept (X-Accel-Expires: 1, from two
// seconds to wait on); NGINX keeps them one to two seconds. A Retry-After that
// comes from here is up to two seconds too long, and never too short.
type denyCache struct {
	Zone   Token   // has a hash of the folder: NGINX refuses to reload one zone into another folder
	Dir    Token   // of the files, which hold the keys, credentials among them: tmpfs, and the workers' alone
	Key    Token   // all that the decision depends on
	Room   Token   // for the key and the head of an answer
	Blocks []block // what the key is made of
}

// DefaultCacheDir is the folder of the deny cache: on tmpfs.
const DefaultCacheDir = "/dev/shm/sluice"

// The longest values in a key, in bytes. No policy names a longer method or host,
// so that all longer ones are alike to it; what a longer URI decides is not kept.
const (
	maxKeyMethod = 32
	maxKeyHost   = 253
	maxKeyURI    = 1000
)

// answerRoom is what the head of an answer may take, in kilobytes.
const answerRoom = 16

// separator stands between the parts of a key. No part but the last may hold it:
// credentials and values are bounded by maps, and a header holds it nowhere else.
const separator = "\t"

// denyCache makes the key of what the service is told: everything but the
// request's own id, and with the client as he is counted in the place of his
// address. The client is binary, and so the last.
func (b *builder) denyCache(a asking) denyCache {
	if b.opt.NoDenyCache {
		return denyCache{Room: kilobytes(answerRoom)}
	}
	c := denyCache{Dir: b.take(folder(b.opt.CacheDir)), Zone: word("sluice_deny_" + digest(b.opt.CacheDir, 8))}
	key, size := new(text).v("uri"), maxKeyMethod+maxKeyHost
	bounded := func(name, source string, most int) {
		c.Blocks = append(c.Blocks, keyValue(name, source, most))
		key.lit(separator).v(name)
	}
	unkept := answered(policies.HeaderDecision)
	for _, h := range a.headers {
		switch h.Name.String() {
		case policies.HeaderRequest, policies.HeaderIP:
		case policies.HeaderMethod:
			bounded("sluice_key_method", "request_method", maxKeyMethod)
		case policies.HeaderHost:
			bounded("sluice_key_host", "host", maxKeyHost)
		case policies.HeaderURI:
			if m, ok := b.fallbackURI(); ok {
				c.Blocks = append(c.Blocks, keyValue("sluice_key_uri", "request_uri", maxKeyURI), m)
				key.lit(separator).v(m.name())
				unkept = own("$sluice_deny_uri:$upstream_http_x_sluice_decision")
				size += maxKeyURI
			}
		case policies.HeaderCert:
			key.lit(separator).v(certPrintVariable)
		default:
			key.lit(separator)
			size += max(policies.MaxCredential, a.longest[h.Name.String()])
			if name, ok := strings.CutPrefix(h.Value.String(), "$"); ok {
				key.v(name)
			} else {
				key.lit(strings.Trim(h.Value.String(), `"`))
			}
		}
	}
	c.Key = b.take(key.lit(separator).v("sluice_ip").token())
	c.Room = kilobytes(answerRoom + 4*(1+size/4096))
	if len(c.Key.text) > maxToken {
		b.take(Token{}, fmt.Errorf("cannot render the deny cache: the policy counts by too much for one key; want --no-deny-cache"))
	}

	skip := newMap(unkept, "sluice_keep_out", "Only a denial is kept, and none whose URI is too long for the key.")
	skip.Volatile = true
	skip.otherwise(word("1"))
	skip.line(ownRegex(`^(?:/.*:|:|)deny\z`), none())
	c.Blocks = append(c.Blocks, skip)
	return c
}

// keyValue is what a client chooses, as a part of the key. NGINX keeps the key
// and the head of the answer in one buffer: without a bound a client could leave
// the answer no room, which NGINX takes for an answer that is broken.
func keyValue(name, source string, most int) block {
	m := newMap(variable(source), name)
	m.otherwise(word("-"))
	m.line(ownRegex(fmt.Sprintf(`^[^\x00-\x20\x7f]{1,%d}\z`, most)), variable(source))
	return m
}

func kilobytes(n int) Token { return word(strconv.Itoa(n) + "k") }

// folder is the path of a folder. NGINX reads a relative one from its prefix.
func folder(path string) (Token, error) {
	if path != filepath.Clean(path) || path == "/" || path == "." {
		return Token{}, fmt.Errorf("cannot keep denials in %q; want a folder of its own by a plain path such as %s", path, DefaultCacheDir)
	}
	return Quote(path)
}

// fallbackURI is the map that makes the client's own URI a part of the key where
// it decides: when no route of the location takes the method, the service
// matches it.
func (b *builder) fallbackURI() (block, bool) {
	m := newMap(own("$uri:$request_method"), "sluice_deny_uri",
		"Where no route of the location takes the method, the client's own URI decides.")
	m.Volatile = true
	m.otherwise(none())
	found := false
	for i := range b.c.Routes {
		r := &b.c.Routes[i]
		if methods := b.methodsAt(r); r.Asked && methods != nil {
			found = true
			m.line(b.take(Literal("~^/_sluice/[a-z]+/"+regexp.QuoteMeta(r.Name)+":(?!(?:"+strings.Join(methods, "|")+`)\z)`)), word("$sluice_key_uri"))
		}
	}
	return m, found
}

// methodsAt are the methods that the location named by a route takes whatever
// the host; nil when it takes all.
func (b *builder) methodsAt(r *policies.Route) []string {
	methods := r.Methods
	for i := range b.c.Routes {
		o := &b.c.Routes[i]
		if len(o.Hosts) > 0 || !r.SameMatch(o) {
			continue
		}
		if len(o.Methods) == 0 {
			return nil
		}
		methods = append(methods[:len(methods):len(methods)], o.Methods...)
	}
	return methods
}

// name is the variable of a block without the dollar.
func (m *block) name() string { return strings.TrimPrefix(m.Variable.String(), "$") }
