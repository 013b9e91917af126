package authz

import "net/http"

// explainPath is asked by POST, as what is told of may hold a credential, and only
// reads.
const explainPath = "/v1/explain"

// ExplainAsked is a request whose way is to be told. Key, Tenant and User say who
// makes it, instead of a credential among its headers.
type ExplainAsked struct {
	Method  string            `json:"method,omitempty"` // GET when left out
	URL     string            `json:"url"`              // a path with its query, or a whole URL
	Headers map[string]string `json:"headers,omitempty"`
	IP      string            `json:"ip,omitempty"`   // the client; 203.0.113.1 when left out
	Peer    string            `json:"peer,omitempty"` // who connects, when it is a proxy
	Country string            `json:"country,omitempty"`
	Key     string            `json:"key,omitempty"` // the id of a key
	Tenant  string            `json:"tenant,omitempty"`
	User    string            `json:"user,omitempty"` // of the tenant
}

// Mistake is an error of whoever asked: the answer says it, with status 422.
func Mistake(err error) error { return answerNo{http.StatusUnprocessableEntity, err.Error()} }

func (a *Admin) explain(w http.ResponseWriter, r *http.Request) {
	var q ExplainAsked
	if err := readBody(r, &q); err != nil {
		a.fail(w, err)
		return
	}
	told, err := a.Explain(q)
	if err != nil {
		a.fail(w, err)
		return
	}
	WriteJSON(w, http.StatusOK, told)
}
