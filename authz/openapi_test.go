package authz

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

func loadOpenAPI(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openapi)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Whatever the admin port serves is described, and nothing else is; roles are those
// that the guard wants.
func TestOpenAPIDescribesHandlers(t *testing.T) {
	t.Parallel()
	doc := loadOpenAPI(t)
	var described []string
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			described = append(described, method+" "+path)
			role, want := op.Extensions["x-role"], "write"
			switch {
			case path == "/healthz" || path == "/readyz":
				want = "open"
			case method == http.MethodGet || path == explainPath:
				want = "read"
			}
			if role != want || (op.Security != nil) != (want == "open") {
				t.Errorf("%s %s has role %v; want %s", method, path, role, want)
			}
		}
	}
	served := append([]string{"GET /healthz", "GET /readyz"}, newOffice(t).admin.patterns...)
	slices.Sort(described)
	slices.Sort(served)
	if !slices.Equal(described, served) {
		t.Errorf("described\n%s\nserved\n%s", strings.Join(described, "\n"), strings.Join(served, "\n"))
	}
}

// Every operation is asked, and asked wrongly, and answers as the document says.
func TestOpenAPIAnswers(t *testing.T) {
	t.Parallel()
	doc := loadOpenAPI(t)
	doc.Servers = nil
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	o, _ := newShopOffice(t)
	o.site.passes(3, "rest", key("sk_a"))
	asked := map[string]bool{}
	f := func(status int, method, path, body string, headers ...string) string {
		t.Helper()
		got, text, header := o.send(method, path, strings.NewReader(body), headers...)
		if got != status {
			t.Fatalf("%s %s: status %d, want %d\n%s", method, path, got, status, text)
		}
		r, err := http.NewRequest(method, path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		route, params, err := router.FindRoute(r)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		asked[method+" "+route.Path] = true
		checkExchange(t, r, route, params, got, header, text)
		return text
	}
	me := bearer(writeToken)
	for _, path := range []string{"/healthz", "/metrics", "/openapi.yaml", "/-/status", "/v1/tenants", "/v1/tenants?size=1", "/v1/tenants/acme/usage", "/v1/tenants/nobody/usage?unlisted=1"} {
		f(200, "GET", path, "", me)
	}
	f(503, "GET", "/readyz", "")
	f(200, "POST", "/-/reload", "", me)
	o.site.swap(sold)
	f(201, "POST", "/v1/tenants/acme/grants", `{"limit": "daily", "add": 2, "from": "2026-02-03", "until": "2026-02-04", "reason": "r"}`, me)
	f(200, "PUT", "/v1/tenants/acme/block", `{"until": "2026-02-04T00:00:00Z", "reason": "r"}`, me)
	f(200, "GET", "/v1/tenants/acme/usage?ip=192.0.2.1&user=ann", "", me)
	f(200, "GET", "/v1/tenants", "", me)
	f(200, "POST", "/v1/explain", `{"url": "/v1/search", "headers": {"X-API-Key": "sk_a"}}`)
	list := f(200, "GET", "/v1/tenants/acme/grants", "", me)
	_, id, _ := strings.Cut(list, `"id": "`)
	id, _, _ = strings.Cut(id, `"`)
	f(204, "DELETE", "/v1/tenants/acme/grants/"+id+"?reason=r", "", me)
	f(204, "DELETE", "/v1/tenants/acme/block?reason=r", "", me)
	f(200, "POST", "/v1/tenants/acme/reset", `{"reason": "r", "limit": "daily"}`, me)

	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if !asked[method+" "+path] {
				t.Errorf("%s %s is not asked", method, path)
			}
			if op.Extensions["x-role"] == "open" {
				continue
			}
			at := strings.NewReplacer("{tenant}", "acme", "{grant}", "x").Replace(path)
			f(401, method, at, "", bearer("guessed"))
			if op.Extensions["x-role"] == "write" {
				f(403, method, at, "", bearer(readToken))
			}
			if strings.Contains(at, "acme") {
				f(404, method, strings.Replace(at, "acme", "nobody", 1)+"?reason=r", "", me)
			}
			if op.RequestBody != nil {
				f(400, method, at, "{", me)
				f(422, method, at, "{}", me)
				f(413, method, at, `{"reason":"`+strings.Repeat("x", adminBody)+`"}`, me)
			}
		}
	}
}

// checkExchange holds a question (when it was a good one) and its answer against
// the document.
func checkExchange(t *testing.T, r *http.Request, route *routers.Route, params map[string]string, status int, header http.Header, text string) {
	t.Helper()
	question := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if status < 400 {
		if err := openapi3filter.ValidateRequest(t.Context(), question); err != nil {
			t.Errorf("%s %s: the question: %v", r.Method, r.URL, err)
		}
	}
	if strings.HasPrefix(header.Get("Content-Type"), "text/plain") || strings.HasSuffix(header.Get("Content-Type"), "yaml") {
		question.Options.ExcludeResponseBody = true
	}
	err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: question, Status: status, Header: header, Body: io.NopCloser(bytes.NewReader([]byte(text))),
		Options: question.Options,
	})
	if err != nil {
		t.Errorf("%s %s: the answer: %v\n%s", r.Method, r.URL, err, text)
	}
}
