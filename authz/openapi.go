package authz

import (
	_ "embed" // the document
	"net/http"
)

//go:embed openapi.yaml
var openapi []byte

// describe answers with what the admin port answers. A test holds the document
// against the handlers and their answers.
func (a *Admin) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openapi) // whoever is gone needs no answer
}
