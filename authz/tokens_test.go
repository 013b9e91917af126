package authz

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mustURL(query string) *url.URL { return &url.URL{Path: "/", RawQuery: query} }

func TestTokens(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	f := func(text, want string) {
		t.Helper()
		_, err := parseTokens([]byte(text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v, want %q", text, err, want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%q: the error repeats what may be a token: %v", text, err)
		}
	}
	f("ann read "+hash, "")
	f("# x\n\n  ann\twrite\t"+strings.ToUpper(hash)+" # y\r\n", "")
	f("", "no token in it")
	f("# only\n", "no token in it")
	f("ann read hunter2", ":1: no SHA-256")
	f("\nann admin "+hash, ":2: unknown role")
	f("ann read", ":1: 2 words")
	f("hunter2 ann read "+hash, ":1: 4 words")
	f("../ann read "+hash, ":1: no name")
	f("ann read "+hash+"\nann write "+strings.Repeat("cd", 32), `:2: the name or the hash of "ann" again`)
	f("ann read "+hash+"\nbob write "+hash, `:2: the name or the hash of "ann" again`)
}

// A tokens file that has become bad changes nothing.
func TestTokensStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var tokens Tokens
	// printf one | sha256sum
	write("ann write 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed\n")
	if err := tokens.Load(path); err != nil {
		t.Fatal(err)
	}
	write("ann write\n")
	if err := tokens.Load(path); err == nil || !strings.Contains(err.Error(), path+":1:") {
		t.Errorf("a bad file: %v", err)
	}
	if name, role := tokens.check("one"); name != "ann" || role != RoleWrite {
		t.Errorf("after a bad file: %q %v", name, role)
	}
	if _, role := tokens.check("two"); role != RoleNone {
		t.Error("a wrong token is known")
	}
}

// The token of this machine is its owner's alone, and always new: what lies in
// its place is neither followed nor believed.
func TestIssue(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "sluice.token"), filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("planted\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	var tokens Tokens
	if err := tokens.Issue(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, error %v; want a file of 0600", info.Mode(), err)
	}
	if data, _ := os.ReadFile(victim); string(data) != "planted\n" {
		t.Errorf("a link was followed: %q", data)
	}
	if _, role := tokens.check("planted"); role != RoleNone {
		t.Error("a planted token is believed")
	}
	secret := func() string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	first := secret()
	if name, role := tokens.check(first); name != localName || role != RoleWrite || len(first) < 50 {
		t.Errorf("the token %q is %q, %v", first, name, role)
	}
	var second Tokens
	if err := second.Issue(path); err != nil {
		t.Fatal(err)
	}
	if secret() == first {
		t.Error("the same token again")
	}
	// The first process ends after the second has begun.
	tokens.Withdraw(path)
	if _, err := os.Stat(path); err != nil {
		t.Error("another's token was removed")
	}
	second.Withdraw(path)
	if _, err := os.Stat(path); err == nil {
		t.Error("the token is left behind")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files are left, want the victim alone", len(entries))
	}
	if err := tokens.Issue(filepath.Join(dir, "gone", "t")); err == nil {
		t.Error("no error where nothing can be written")
	}
}
