package authz

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
)

// Role is what a token may do at the admin port.
type Role uint8

// The roles. Who may write may read.
const (
	RoleNone Role = iota
	RoleRead
	RoleWrite
)

// String is the role's word in files and answers.
func (r Role) String() string {
	switch r {
	case RoleRead:
		return "read"
	case RoleWrite:
		return "write"
	}
	return "none"
}

const (
	// maxToken is the longest token that is looked at, in bytes.
	maxToken = 512
	// maxTokenFile is the largest tokens file, in bytes.
	maxTokenFile = 1 << 20
)

// token is known by its hash alone.
type token struct {
	name string
	role Role
	hash [sha256.Size]byte
}

// Tokens are the bearer tokens of the admin port. The zero value knows none.
// Methods are safe for concurrent use.
type Tokens struct{ list atomic.Pointer[[]token] }

// Load reads a file of tokens: lines NAME read|write SHA256, # begins a comment.
// When it is not good, those of before stay.
func (t *Tokens) Load(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read tokens: %w", err)
	}
	if len(data) > maxTokenFile {
		return fmt.Errorf("cannot read tokens: %q is larger than %d bytes", path, maxTokenFile)
	}
	list, err := parseTokens(data)
	if err != nil {
		return fmt.Errorf("cannot read tokens: %s%w", path, err)
	}
	t.list.Store(&list)
	return nil
}

// parseTokens reads the lines. Its errors begin with the place, and never repeat
// a line: somebody may have put a token there instead of its hash.
func parseTokens(data []byte) ([]token, error) {
	var list []token
	name := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 {
			return nil, fmt.Errorf(":%d: %d words; want NAME read|write SHA256", n, len(fields))
		}
		t := token{name: fields[0]}
		switch fields[1] {
		case "read":
			t.role = RoleRead
		case "write":
			t.role = RoleWrite
		default:
			return nil, fmt.Errorf(":%d: unknown role; want read or write", n)
		}
		hash, err := hex.DecodeString(fields[2])
		if err != nil || len(hash) != sha256.Size {
			return nil, fmt.Errorf(":%d: no SHA-256; want the 64 hexadecimal digits of the token's hash, not the token", n)
		}
		if !name.MatchString(t.name) {
			return nil, fmt.Errorf(":%d: no name; want up to 64 letters, digits, dots, dashes and underscores", n)
		}
		copy(t.hash[:], hash)
		for _, o := range list {
			if o.name == t.name || o.hash == t.hash {
				return nil, fmt.Errorf(":%d: the name or the hash of %q again; want each once", n, o.name)
			}
		}
		list = append(list, t)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf(": no token in it; want at least one line NAME read|write SHA256")
	}
	return list, nil
}

// check finds whose token it is. How long it takes says how many there are, and
// nothing of any.
func (t *Tokens) check(secret string) (name string, role Role) {
	list := t.list.Load()
	if list == nil || secret == "" || len(secret) > maxToken {
		return "", RoleNone
	}
	sum := sha256.Sum256([]byte(secret))
	for i := range *list {
		if one := &(*list)[i]; subtle.ConstantTimeCompare(sum[:], one.hash[:]) == 1 {
			name, role = one.name, one.role
		}
	}
	return name, role
}

// localName is who made changes with the token that serve wrote.
const localName = "local"

// Issue makes a new token that may write, in place of all others, and writes it
// to a file that only its owner reads. The file is always a new one: whatever
// was there, a link or somebody else's file, is not followed and not believed.
func (t *Tokens) Issue(path string) error {
	secret := "sluice_" + rand.Text() + rand.Text()
	f, err := os.CreateTemp(filepath.Dir(path), ".sluice.token-*") // 0600
	if err != nil {
		return fmt.Errorf("cannot write the token file %q: %w", path, err)
	}
	_, err = f.WriteString(secret + "\n")
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("cannot write the token file %q: %w", path, err)
	}
	t.list.Store(&[]token{{localName, RoleWrite, sha256.Sum256([]byte(secret))}})
	return nil
}

// Withdraw removes a file that Issue wrote, unless another has taken its place.
func (t *Tokens) Withdraw(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return
	}
	if _, role := t.check(strings.TrimSpace(string(data))); role != RoleNone {
		_ = os.Remove(path)
	}
}
