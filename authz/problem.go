package authz

import (
	"encoding/json"
	"net/http"
)

// Problem is an error of the admin port: RFC 9457.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Findings are those of a policy that is not good.
	Findings []Finding `json:"findings,omitempty"`
}

// WriteProblem answers with a problem.
func WriteProblem(w http.ResponseWriter, status int, detail string) {
	writeProblem(w, Problem{Status: status, Detail: detail})
}

func writeProblem(w http.ResponseWriter, p Problem) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	write(w, p.Status, "application/problem+json", p)
}

// WriteJSON answers with JSON for people and programs.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	write(w, status, "application/json", value)
}

func write(w http.ResponseWriter, status int, contentType string, value any) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		panic("BUG: an answer cannot be JSON: " + err.Error())
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // whoever is gone needs no answer
}
