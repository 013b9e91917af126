package limit

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed *.lua
var lua embed.FS

// stepScript is the script of every step: what all share, the kinds, and the
// step itself.
func stepScript() string {
	var text strings.Builder
	for _, name := range []string{"head", "bucket", "window", "log", "quota", "lease", "take"} {
		part, err := lua.ReadFile(name + ".lua")
		if err != nil {
			panic("BUG: no " + name + ".lua")
		}
		text.Write(part)
	}
	return text.String()
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
