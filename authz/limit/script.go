package limit

import (
	"crypto/sha1"
	"encoding/hex"
)

// script is a Lua script as Redis knows it.
type script struct {
	text string
	sha  string
}

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}
