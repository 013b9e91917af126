package gen

import (
	"fmt"
	"net"
	"regexp"
	"strings"

	"sluice/policies"
)

var (
	hostPort = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$`)
	unixPath = regexp.MustCompile(`^unix:[A-Za-z0-9_./@+-]+$`)
)

// address is where something listens, HOST:PORT or unix:PATH.
func address(s string) (Token, error) {
	if !hostPort.MatchString(s) && !unixPath.MatchString(s) {
		return Token{}, fmt.Errorf("cannot use the address %q; want HOST:PORT or unix:PATH", s)
	}
	return Token{s}, nil
}

func (b *builder) addresses(list []string) []Token {
	var out []Token
	for _, s := range list {
		out = append(out, b.take(address(s)))
	}
	return out
}

func (b *builder) peers(list []string) []peer {
	var out []peer
	for _, t := range b.addresses(list) {
		out = append(out, peer{t})
	}
	return out
}

// isName tells whether an address needs DNS.
func isName(addr string) bool {
	if strings.HasPrefix(addr, "unix:") {
		return false
	}
	host, _, err := net.SplitHostPort(addr)
	return err == nil && net.ParseIP(host) == nil
}

// zoneTotal is the memory of all zones together, empty when there is none.
func (b *builder) zoneTotal() Token {
	if len(b.zones) == 0 {
		return Token{}
	}
	return comment(Megabytes(b.zoneKilobytes))
}

// Megabytes is an amount of memory, given in kilobytes, as people read it.
func Megabytes(kilobytes int64) string { return fmt.Sprintf("%.1f MB", float64(kilobytes)/1024) }

// Zones tells how many zones the edge limits of a policy need, and how much
// memory all of them take from NGINX when it starts, in kilobytes.
func Zones(c *policies.Compiled) (count int, kilobytes int64) {
	b := newBuilder(c, Options{})
	b.edgeLimits(false)
	return len(b.zones), b.zoneKilobytes
}
