# 'make' lists the targets; 'make test' is all that must hold of a commit.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.NOTPARALLEL:

STEP := @.ci/step
TOOL := go tool -modfile=tools/go.mod

RELEASE ?= dev
FUZZ    ?= 5
SEEDS   ?= 10000

CLIENTS := internal/e2e/clients
CONSOLE := internal/e2e/console
DIST    := $(CURDIR)/dist

# A checkout that belongs to somebody else has no revision that Go may read;
# only the binary that is kept needs one.
check unit tokenizers mcp e2e-sdk e2e-oidc e2e-clients e2e-console fuzz soak vuln postgres bench cover: export GOFLAGS := $(GOFLAGS) -buildvcs=false

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: ## build ./limen as it is released
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w -X main.release=$(RELEASE)' -o limen .

.PHONY: run
run: ## run the gateway, as 'go run .' does
	go run .

.PHONY: test
test: ## install what the tests need and run everything
	@start=$$SECONDS; $(MAKE) deps check types unit tokenizers mcp e2e-sdk e2e-oidc e2e-clients e2e-console postgres fuzz vuln; printf '\n== all of it: ok, %d s\n' $$((SECONDS - start))

.PHONY: deps
deps: ## install what the tests need and is not there
	$(STEP) 'C compiler, for the race detector' .ci/need gcc gcc libc6-dev
	$(STEP) 'curl' .ci/need curl curl
	$(STEP) 'Go modules' bash -c 'go mod download && cd tools && go mod download'
	$(STEP) 'Node 20 or newer' bash -c 'node -e "process.exit(Number(parseInt(process.versions.node) < 20))" && npm --version >/dev/null || { echo "install Node 20 or newer, with npm" >&2; exit 1; }'

.PHONY: check
check: ## formatting, vet, staticcheck, layers, the binary's size, pinned libc
	$(STEP) gofmt .ci/fmt
	$(STEP) vet go vet ./...
	$(STEP) staticcheck $(TOOL) staticcheck ./...
	$(STEP) layers go test -count=1 ./internal
	$(STEP) 'dead methods and size' .ci/binary
	$(STEP) 'libc of sqlite' .ci/libc
	$(STEP) 'go.sum' go mod verify

.PHONY: unit
unit: ## every Go test, with the race detector
	$(STEP) 'go test -race' env CGO_ENABLED=1 go test -race -timeout 20m ./...

.PHONY: tokenizers
tokenizers: ## the counts of tokens against the encodings' definitions
	$(STEP) 'tokenizers' bash -c 'cd internal/tokens/genvocabulary && go vet ./... && go test -count=1 ./...'

.PHONY: mcp
mcp: ## the calls of tools against servers of the official Go SDK
	$(STEP) 'MCP SDK' bash -c 'cd internal/mcp/conformance && go vet ./... && go test -count=1 ./...'

.PHONY: e2e-sdk
e2e-sdk: ## the official Go SDK against the gateway
	$(STEP) 'Go SDK' bash -c 'cd internal/e2e/sdk && go vet ./... && go test -count=1 ./...'

.PHONY: e2e-oidc
e2e-oidc: ## single sign-on at a provider of OpenID Connect
	$(STEP) 'OpenID Connect' bash -c 'cd internal/e2e/oidc && go vet ./... && go test -count=1 ./...'

.PHONY: e2e-clients
e2e-clients: $(CLIENTS)/node_modules/.package-lock.json ## the clients that people use against the gateway
	$(STEP) 'build for the clients' env CGO_ENABLED=0 go build -o $(DIST)/ . ./internal/e2e/upstream/fakeupstream
	$(STEP) 'clients' env -C $(CLIENTS) LIMEN_BIN=$(DIST)/limen FAKEUPSTREAM_BIN=$(DIST)/fakeupstream npm test

$(CLIENTS)/node_modules/.package-lock.json: $(CLIENTS)/package-lock.json
	$(STEP) 'npm ci' env -C $(CLIENTS) npm ci --no-audit --no-fund
	@touch $@

.PHONY: e2e-console
e2e-console: $(CONSOLE)/node_modules/.package-lock.json ## the web console in a browser
	$(STEP) 'Chromium' .ci/need chromium chromium
	$(STEP) 'build for the console' env CGO_ENABLED=0 go build -o $(DIST)/ . ./internal/e2e/upstream/fakeupstream
	$(STEP) 'build a provider of OpenID Connect' env -C internal/e2e/oidc go build -o $(DIST)/oidcprovider ./serve
	$(STEP) 'console' bash -c 'CHROMIUM_BIN=$$(command -v chromium) && cd $(CONSOLE) && LIMEN_BIN=$(DIST)/limen FAKEUPSTREAM_BIN=$(DIST)/fakeupstream OIDC_BIN=$(DIST)/oidcprovider CHROMIUM_BIN=$$CHROMIUM_BIN npm test'

.PHONY: types
types: $(CONSOLE)/node_modules/.package-lock.json ## the types of the web console
	$(STEP) 'types of the console' env -C $(CONSOLE) npm run --silent types

.PHONY: screenshots
screenshots: $(CONSOLE)/node_modules/.package-lock.json ## the pictures of docs/console.md, and that page
	$(STEP) 'Chromium' .ci/need chromium chromium
	$(STEP) 'build for the pictures' env CGO_ENABLED=0 go build -o $(DIST)/ . ./internal/e2e/console/pastcalls
	$(STEP) 'screenshots' bash -c 'CHROMIUM_BIN=$$(command -v chromium) && cd $(CONSOLE) && \
		LIMEN_BIN=$(DIST)/limen PASTCALLS_BIN=$(DIST)/pastcalls CHROMIUM_BIN=$$CHROMIUM_BIN node screenshots.mjs'

$(CONSOLE)/node_modules/.package-lock.json: $(CONSOLE)/package-lock.json
	$(STEP) 'npm ci' env -C $(CONSOLE) npm ci --no-audit --no-fund
	@touch $@

.PHONY: postgres
postgres: ## the tests of store, budgets and several gateways on Postgres, which is installed or skipped
	$(STEP) 'Postgres' .ci/postgres

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZ (5) seconds
	$(STEP) fuzz .ci/fuzz $(FUZZ)

.PHONY: soak
soak: ## simulated worlds in numbers, SEEDS (10000) of each; kills, outages and full disks for long
	$(STEP) 'budgets' go test -timeout 12h ./internal/ledger -run '^TestSimulation$$' -seeds $(SEEDS)
	$(STEP) 'routing' go test -timeout 12h ./internal/route -run '^TestSimulation$$' -seeds $(SEEDS)
	$(STEP) 'kills, a store that is away, full disks' go test -count=1 -timeout 2h ./internal/e2e -run '^Test(Kill|StoreDown|DiskFull)$$' -v -soak

.PHONY: vuln
vuln: ## known vulnerabilities, where their database can be reached
	$(STEP) govulncheck .ci/vuln

.PHONY: bench
bench: ## measure beside nginx and a bare proxy, into docs/performance.md
	$(STEP) nginx bash -c '.ci/need nginx nginx-light || echo "its column is left out"'
	$(STEP) bench go run ./bench -out docs/performance.md

.PHONY: cover
cover: ## which lines the Go tests reach, into dist/cover.html
	@mkdir -p $(DIST)
	$(STEP) cover go test -coverpkg=./... -coverprofile=$(DIST)/cover.out ./...
	@go tool cover -func=$(DIST)/cover.out | tail -n 1
	@go tool cover -html=$(DIST)/cover.out -o $(DIST)/cover.html
