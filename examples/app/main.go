// Command app is the application behind the demos: it says what reached it.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8081", "HOST:PORT")
	flag.Parse()
	log.Fatal(http.ListenAndServe(*listen, http.HandlerFunc(answer)))
}

func answer(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the client left
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "app: %s %s", r.Method, r.URL.RequestURI())
	if tenant := r.Header.Get("X-Sluice-Tenant"); tenant != "" {
		fmt.Fprintf(w, " for tenant %s on plan %s", tenant, r.Header.Get("X-Sluice-Plan"))
	}
	fmt.Fprintln(w)
}
