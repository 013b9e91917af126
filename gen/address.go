package gen

import (
	"fmt"
	"net"
	"regexp"
	"strings"
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
	return comment(fmt.Sprintf("%.1f MB", float64(b.zoneKilobytes)/1024))
}
