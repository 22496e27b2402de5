# Watchkeeper. "make help" lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# PORT is the gateway's port ("make run PORT=9001"); its admin listener has the
# next one. DIR has the control plane's data. The environment does not set them.
DIR := .localcluster$(K8S:%=-%)
NODES := 5
PORT := 8001
# BALANCE is how test-ha spreads clients over API servers: request, random, connection.
BALANCE := request

# K8S chooses an older minor version of Kubernetes for the control plane ("K8S=1.34 make
# bin/localcluster"): then bin/localcluster-1.34 is built and used. OLDER are those that
# there are.
K8S ?=
OLDER := $(patsubst localcluster/kubernetes-%.mod,%,$(wildcard localcluster/kubernetes-*.mod))
LOCALCLUSTER := bin/localcluster$(K8S:%=-%)
ifneq ($(K8S),)
  ifeq ($(filter $(K8S),$(OLDER)),)
    $(error K8S=$(K8S): there is no localcluster/kubernetes-$(K8S).mod. K8S is one of: $(OLDER); or empty, for the version in localcluster/go.mod)
  endif
  export LOCALCLUSTER_BIN := $(CURDIR)/$(LOCALCLUSTER)
endif

.PHONY: help
help: ## Prints this list.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: deps
deps: ## Checks for Go, Node, curl and a C compiler (for the race detector).
	@scripts/deps

.PHONY: build
build: bin/watchkeeper bin/localcluster ## Builds both programs into bin/.

.PHONY: ui
ui: deps
	@scripts/ui

.PHONY: bin/watchkeeper
bin/watchkeeper: deps ui
	@scripts/progress "building bin/watchkeeper" \
	  env CGO_ENABLED=0 go build -v -trimpath -tags pebblegozstd -ldflags '-s -w' -o bin/watchkeeper ./cmd/watchkeeper

.PHONY: bin/localcluster
bin/localcluster: deps
	@[ -x $(LOCALCLUSTER) ] && [ -z "$$(find localcluster -type f -not -name '*_test.go' -newer $(LOCALCLUSTER) -print -quit)" ] || \
	  scripts/progress "building $(LOCALCLUSTER)$$([ -x $(LOCALCLUSTER) ] || echo ' (about 5 minutes)')" \
	  env GOWORK=off go build -C localcluster $(K8S:%=-modfile=kubernetes-%.mod) -v -trimpath -ldflags '-s -w' -o ../$(LOCALCLUSTER) .

.PHONY: run
run: build ## Starts a local control plane with workloads, and the gateway on 127.0.0.1:8001.
	@scripts/run "$(DIR)" "$(NODES)" "$(PORT)"

.PHONY: cluster
cluster: bin/localcluster ## Starts only the local control plane.
	@exec $(LOCALCLUSTER) up --dir "$(DIR)" --nodes "$(NODES)"

.PHONY: demo
demo: bin/watchkeeper ## Serves a recorded incident (a rollout, a crash loop, a lost Node) on 127.0.0.1:8001, without a cluster.
	@echo "the page: http://127.0.0.1:$(PORT)/ui/ - Ctrl-C stops it"
	@exec bin/watchkeeper open demo/incident.wkr --port "$(PORT)"

.PHONY: test
test: build ## Runs the tests that protect a change (about 9 minutes). It prints what it leaves to test-all.
	@scripts/deps test
	@scripts/gofmt
	@scripts/test -short

.PHONY: test-all
test-all: build ## Runs all tests except the soak tests (more than an hour). One part: scripts/test PART.
	@scripts/deps test-all
	@scripts/gofmt
	@scripts/test

.PHONY: image
image: deps ## Makes a container image for linux/amd64 and linux/arm64 in dist/image (an OCI layout), without a container engine.
	@scripts/ui
	@scripts/image

.PHONY: release
release: deps ## Makes the artifacts of a release in dist (archives, packages, SBOMs, the image), and checks each of them.
	@scripts/release

.PHONY: compat
compat: deps ## Tests the informer's adapters with each supported version of client-go and controller-runtime.
	@scripts/compat

.PHONY: test-ha
test-ha: build ## Runs the tests with a control plane in front of three API servers and a balancer (about 20 minutes).
	@scripts/deps test-all
	@for part in conformance acceptance robustness clients; do \
	  WATCHKEEPER_APISERVERS=3 WATCHKEEPER_BALANCE="$(BALANCE)" scripts/test $$part || exit; \
	done

.PHONY: test-shared
test-shared: build ## Runs the conformance and robustness tests with gateways in shared mode and a ServiceAccount's token (about 3 minutes).
	@scripts/deps test
	@WATCHKEEPER_SHARED=1 scripts/test conformance robustness

.PHONY: picture
picture: build ## Updates the README's screenshot of the page, and the pictures of the command line.
	cd ui && npm test --silent -- views
	cp ui/.test/shots/board.png docs/images/board.png
	go test -count=1 -run 'Picture' ./cmd/watchkeeper -update-pictures

.PHONY: lint
lint: deps ## Runs gofmt, vet, staticcheck and govulncheck.
	@scripts/gofmt
	for dir in . localcluster clients deploy informer/clientgo/compat; do (cd $$dir && if [ ! -f go.work ]; then export GOWORK=off; fi && go vet work && go run $(STATICCHECK) work) || exit; done
	@scripts/vulncheck $(GOVULNCHECK)

.PHONY: bench
bench: build ## Measures the gateway against the API server, the history and the page (about an hour); results in bench/results/.
	@scripts/deps test-all
	@scripts/bench fanout
	@scripts/bench history
	@scripts/bench page

.PHONY: bench-shared
bench-shared: build ## Measures shared mode: 10,000 users with their own tokens (about 40 minutes, 4 GB of memory).
	@scripts/bench shared

.PHONY: bench-informer
bench-informer: deps ## Measures informers, including client-go's, with a fake API server (about an hour).
	@scripts/bench informer

.PHONY: bench-widget
bench-widget: bin/localcluster ## Compares a controller with the same one of controller-runtime (about 10 minutes).
	@scripts/bench widget

.PHONY: soak
soak: build ## Runs long fuzzing and fault tests (about eight hours).
	for i in arm64 amd64; do GOOS=darwin GOARCH=$$i CGO_ENABLED=0 GOWORK=off go build -C localcluster -trimpath -o /dev/null . || exit; done
	scripts/compat
	scripts/fuzz 3m
	for i in 1 2 3; do go test -race -shuffle=on -timeout 20m $$(scripts/units) || exit; done
	scripts/bench page -run memory -minutes 60
	cd ui && WATCHKEEPER_SIMULATIONS=1000 npm test --silent -w informer
	cd ui && SLOW=4 npm test --silent && LATENCY=400 npm test --silent
	WATCHKEEPER_STARTS=10000 WATCHKEEPER_SIMULATIONS=20000 go test -race -count=1 -timeout 60m -run 'TestI7StartStop|TestSimulation' ./informer
	WATCHKEEPER_SIMULATIONS=2000 go test -race -count=1 -timeout 60m -run TestI14Faults ./informer/reconcile
	WATCHKEEPER_MODEL_SEEDS=5000 go test -race -count=1 -timeout 30m -run TestModel ./internal/timeline
	WATCHKEEPER_HISTORY_ROUNDS=40 go test -race -count=1 -timeout 30m -run 'TestModel|TestClockModel|TestCrash|TestFaults|TestFlippedBits|TestKilled' ./internal/record/history
	WATCHKEEPER_LINEARIZABLE_ROUNDS=10000 go test -count=1 -timeout 40m -v -run 'Linearizable' ./internal/testing/acceptance
	for i in request random; do WATCHKEEPER_APISERVERS=3 WATCHKEEPER_BALANCE=$$i WATCHKEEPER_LINEARIZABLE_ROUNDS=5000 go test -count=1 -timeout 40m -v -run 'Linearizable' ./internal/testing/acceptance || exit; done
	WATCHKEEPER_FIELD_REFUSALS=1000 WATCHKEEPER_COMPARE_ROUNDS=60 go test -count=1 -timeout 40m -v -run 'FieldSelectors|CompareUnderChurn' ./internal/testing/acceptance
	WATCHKEEPER_SIMULATIONS=2000 go test -race -count=1 -timeout 60m -v -run Simulation ./internal/testing/robustness | grep -vE '^===|    --- PASS'
	WATCHKEEPER_CLOCKS=2000 go test -race -count=1 -timeout 60m -v -run 'TestClock$$' ./internal/testing/robustness | grep -vE '^===|    --- PASS'
	for i in "" "" 3; do WATCHKEEPER_APISERVERS=$$i WATCHKEEPER_BALANCE=request WATCHKEEPER_FAULTS_SECONDS=3600 WATCHKEEPER_FAULTS_ROUND=60 go test -count=1 -timeout 3h -v -run Faults ./internal/testing/robustness | grep -vE '^===|    --- PASS' || exit; done
	WATCHKEEPER_SHARED=1 WATCHKEEPER_FAULTS_SECONDS=3600 WATCHKEEPER_FAULTS_ROUND=60 go test -count=1 -timeout 3h -v -run 'TestFaults$$' ./internal/testing/robustness | grep -vE '^===|    --- PASS'
	WATCHKEEPER_SHARED=1 go test -count=1 -timeout 20m -run 'TestConformance$$' ./internal/testing/conformance
	for k8s in $(OLDER); do $(MAKE) K8S=$$k8s bin/localcluster && LOCALCLUSTER_BIN=$$PWD/bin/localcluster-$$k8s go test -count=1 -timeout 20m ./internal/testing/conformance || exit; done
	for i in 1 2 3; do WATCHKEEPER_PAST_SECONDS=180 go test -count=1 -timeout 60m -v -run 'TestPast$$' ./internal/testing/robustness || exit; done
	WATCHKEEPER_BENCH_SHARED=1 go test -count=1 -timeout 20m -run TestAll ./bench/shared
	WATCHKEEPER_RIGHTS_CASES=20000 go test -count=1 -timeout 30m -v -run TestRights ./internal/testing/rights
	WATCHKEEPER_KILLS=60 go test -count=1 -timeout 40m -v -run 'Killed' ./internal/testing/acceptance
	cd clients && WATCHKEEPER_KILLS=20 go test -count=1 -timeout 40m -v -run 'Informers|Manager|Shared' .

.PHONY: clean
clean: ## Removes built files and the local control plane's data.
	rm -rf bin dist .run ui/dist/* ui/informer/dist ui/informer/build "$(DIR)" $(OLDER:%=.localcluster-%)
