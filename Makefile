# What people type. `make demo` and `make test` need a Debian machine with Go;
# the demo installs nginx when it is missing.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
PACKAGES   ?= ./...

.PHONY: build demo test bench fuzz lint

build: ## the one binary, bin/sluice
	go build -o bin/sluice ./cmd/sluice

demo: build ## NGINX, the service and an application on loopback, and what they answer
	examples/saas/demo.sh bin/sluice

test: ## everything; TESTFLAGS=-race as CI does
	go test $(TESTFLAGS) $(PACKAGES)

bench: ## how fast; compare only within one run
	go test -run '^$$' -bench . -benchmem $(PACKAGES)

FUZZTIME ?= 20s
fuzz: ## every fuzz target for FUZZTIME
	@for pkg in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

lint: ## gofmt, vet, staticcheck
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
