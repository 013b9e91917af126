package gen

import (
	"fmt"
	"net/netip"
	"strings"
)

// clientKey are the blocks that make $sluice_ip, the client as limits count
// him: an IPv4 address, or the first bits of an IPv6 address.
func (b *builder) clientKey() []block {
	const mapped, translated = `^\x00{10}\xff\xff`, `^\x00\x64\xff\x9b\x00{8}`
	m := newMap(word("$binary_remote_addr"), "sluice_ip",
		"One client: an IPv4 address, also when IPv6 wraps it (mapped, NAT64), or the first "+fmt.Sprint(b.c.Client.IPv6Prefix)+" bits of an IPv6 address.",
		"(?s) because the bytes may be a line break.")
	m.otherwise(word("$binary_remote_addr"))
	m.line(ownRegex(`(?s)`+mapped+`(?<sluice_mapped>.{4})\z`), word("$sluice_mapped"))
	m.line(ownRegex(`(?s)`+translated+`(?<sluice_translated>.{4})\z`), word("$sluice_translated"))
	blocks := []block{}
	bits := b.c.Client.IPv6Prefix
	if whole := bits / 8; bits < 128 && bits%8 == 0 {
		m.line(ownRegex(fmt.Sprintf(`(?s)^(?<sluice_net>.{%d}).{%d}\z`, whole, 16-whole)), word("$sluice_net"))
	} else if bits < 128 {
		b.bitwise(&blocks, &m, whole, bits%8)
	}
	blocks = append(blocks, m)
	if b.family {
		f := newMap(word("$binary_remote_addr"), "sluice_family", "Where an address stands beside other values, its family is in front: its length is then known.")
		f.otherwise(word("6"))
		f.line(ownRegex(`(?s)^(?:`+mapped[1:]+`|`+translated[1:]+`)?.{4}\z`), word("4"))
		blocks = append(blocks, f)
	}
	return blocks
}

// bitwise handles a prefix that ends within a byte: each bit of that byte
// which counts is a flag behind the whole bytes.
func (b *builder) bitwise(blocks *[]block, m *block, whole, bits int) {
	head := newMap(word("$binary_remote_addr"), "sluice_head", "The whole bytes of the prefix, and the bits of the next byte.")
	head.otherwise(none())
	head.line(ownRegex(fmt.Sprintf(`(?s)^(?<sluice_net>.{%d}).{%d}\z`, whole, 16-whole)), word("$sluice_net"))
	*blocks = append(*blocks, head)
	key := (&text{}).v("sluice_head")
	for bit := range bits {
		name := fmt.Sprintf("sluice_bit%d", bit+1)
		f := newMap(word("$binary_remote_addr"), name)
		f.otherwise(word("0"))
		f.line(ownRegex(fmt.Sprintf(`(?s)^.{%d}%s`, whole, byteClass(bit))), word("1"))
		*blocks = append(*blocks, f)
		key.v(name)
	}
	m.line(ownRegex(`(?s)^.{16}\z`), key.mustToken())
}

// byteClass is the class of bytes in which a bit is set, the highest being 0.
func byteClass(bit int) string {
	step := 0x80 >> bit
	var s strings.Builder
	s.WriteByte('[')
	for from := step; from < 256; from += 2 * step {
		fmt.Fprintf(&s, `\x%02x-\x%02x`, from, from+step-1)
	}
	s.WriteByte(']')
	return s.String()
}

// trusted are the networks of proxies as tokens.
func trusted(nets []netip.Prefix) []Token {
	var out []Token
	for _, p := range nets {
		out = append(out, cidr(p))
	}
	return out
}
