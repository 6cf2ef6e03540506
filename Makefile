# Everything that is done to this repository from the command line. "make" lists the targets; each fetches what it
# needs, shows what it does, and uses nothing outside the repository.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

GO    ?= go
TAGS  ?=
TIME  ?= 30s
BASE  ?= build/bench/base.txt
FLOOR ?= 70
CITEST = CGO_ENABLED=0 $(GO) build -o build/citest ./tools/citest && build/citest
LINTER = $(GO) tool -modfile=tools/lint.mod

# Where git does not trust the owner of the folder, the go command cannot read the commit and would refuse to build.
ifneq ($(shell git status >/dev/null 2>&1 && echo ok),ok)
export GOFLAGS := $(GOFLAGS) -buildvcs=false
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help build demo test test-race test-alloc fuzz lint lint-gofmt lint-vet lint-arm64 lint-staticcheck \
	lint-repolint lint-generated bench bench-peers netns soak poison cover

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/moonpath; TAGS=static leaves out libraries that are loaded at run time
	@echo "building bin/moonpath (the first time, Go fetches the modules in go.mod)"
	@CGO_ENABLED=0 $(GO) build -trimpath -tags '$(TAGS)' -o bin/moonpath ./cmd/moonpath

demo: build ## two engines on this host, verified writes and reads, and the path that each batch took
	@bin/moonpath demo

test: ## all tests, those against the published C++ engine included; shuffled, without cgo
	@interop/venv.sh >/dev/null || echo "going on without the C++ engine; the tests that need it are skipped by name"
	@$(CITEST) -- -shuffle=on -timeout=15m

test-race: ## the same without the C++ engine, under the race detector, with the tag invariants
	@$(CITEST) -race -tags=invariants -without=interop -- -shuffle=on -timeout=15m -skip='^TestAllocs'

test-alloc: ## only the tests that count allocations
	@$(CITEST) -- -count=1 -run='^TestAllocs'

fuzz: ## every fuzz target in turn, TIME=30s each; BUDGET=5m names the rest as skipped after that
	@$(CITEST) fuzz -time='$(TIME)' $(if $(BUDGET),-budget='$(BUDGET)')

lint: ## gofmt, vet, the same for arm64, staticcheck, and the rules of this repository
	@$(MAKE) --keep-going --no-print-directory lint-gofmt lint-vet lint-arm64 lint-staticcheck \
		lint-repolint lint-generated

lint-gofmt:
	@echo "gofmt -l"
	@bad=$$(gofmt -l .) || exit 1; [ -z "$$bad" ] || { echo "$$bad"; echo "not formatted: run gofmt -w on them"; exit 1; }

lint-vet:
	@echo "go vet"
	@CGO_ENABLED=0 $(GO) vet ./...

lint-arm64:
	@echo "go vet for arm64: everything must compile there, too"
	@CGO_ENABLED=0 GOARCH=arm64 $(GO) vet ./...

lint-staticcheck:
	@echo "staticcheck (the first time, Go fetches and builds it)"
	@CGO_ENABLED=0 $(LINTER) staticcheck ./...

lint-repolint:
	@echo "repolint: the rules of this repository"
	@$(CITEST) ./internal/repolint -- -count=1

lint-generated:
	@echo "generated documents against what they are generated from"
	@$(CITEST) -- -count=1 -run='^TestGenerated'

bench: ## ten runs of every benchmark, compared with BASE; the first run becomes the base
	@mkdir -p build/bench
	CGO_ENABLED=0 $(GO) test -run='^$$' -bench=. -benchmem -count=10 ./... | tee build/bench/new.txt
	@if [ -e '$(BASE)' ]; then $(LINTER) benchstat '$(BASE)' build/bench/new.txt; \
	else mkdir -p "$$(dirname '$(BASE)')" && cp build/bench/new.txt '$(BASE)' && echo "no base yet: this run is now $(BASE)"; fi

bench-peers: build ## against the C++ engine, iperf3 and a bare Go program, interleaved; ARGS=… for its flags
	@CGO_ENABLED=0 $(GO) run ./tools/benchpeers $(ARGS)

netns: build ## against iperf3 over delay, loss and limited rate, between network namespaces; needs root; ARGS=… for its flags
	@CGO_ENABLED=0 $(GO) run ./tools/netns $(ARGS)

soak: build ## random transfers between processes that are killed and frozen, TIME=10m; ARGS=--seed=N
	@CGO_ENABLED=0 $(GO) run ./tools/soak --time '$(TIME)' $(ARGS)

poison: ## a million random batches whose memory is overwritten when they end, TIME=10m at most; ARGS=--seed=N
	@CGO_ENABLED=0 $(GO) run ./tools/soak poison --time '$(TIME)' $(ARGS)

cover: ## build/cover.out, and FLOOR=70 per cent for every package that has tests
	@mkdir -p build
	@$(CITEST) -floor='$(FLOOR)' -without=interop,tools -- -coverprofile=build/cover.out
