package limit

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed *.lua
var lua embed.FS

// stepScript is the script of every step: what all share, buckets, the other kinds
// in a function of their own, and the step itself.
func stepScript() string {
	kinds := source("window") + source("log") + source("mark") + source("quota") + source("lease")
	other := strings.Replace(source("other"), "  -- the kinds\n", kinds, 1)
	return source("head") + source("bucket") + other + source("take")
}

func source(name string) string {
	text, err := lua.ReadFile(name + ".lua")
	if err != nil {
		panic("BUG: no " + name + ".lua")
	}
	return string(text)
}

// script is a Lua script as Redis knows it.
type script struct {
	text string
	sha  string
}

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}
