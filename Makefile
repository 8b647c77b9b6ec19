# `make help` lists the targets. A build needs only Go; the tests install the rest.

SHELL = /bin/sh
PORT ?= 8080

# The folders of this module with Go code for the browser alone.
JS_PACKAGES := ./jsbridge/... ./opfs/... ./wasm/...
JS := GOOS=js GOARCH=wasm
OPFS_TEST = cd opfs && ../.cache/wasmworker ../.cache/opfs.wasm -test.timeout 20m

# The Wasm tests run side by side, each in a browser of its own. They wait for the disk and for time to pass, so one alone would leave half
# of two cores idle.
WASM_TESTS := test-opfs test-opfs-store test-opfs-faults test-opfs-helped test-js

# The npm packages of the tests. They are installed while other targets compute.
NPM := web/node_modules/.package-lock.json tests/docs/editors/node_modules/.package-lock.json \
	tests/docs/frameworks/node_modules/.package-lock.json tests/docs/runners/node_modules/.package-lock.json \
	tests/docs/sqlite/node_modules/.package-lock.json

# These tests drive whole tabs, so they run after the rest. Six tests run at once, because they mostly wait.
BROWSER_TESTS := ./tests/browser/... ./tests/e2e/... ./tests/race/...
# The tests of the server wait longest, so they begin first.
NATIVE_TESTS = ./server/... $$(go list ./... | grep -Ev '/tests/(arch|browser|consumer|docs|e2e|engines|bench|race|simulation|strangers|wpt)(/|$$)')

.PHONY: help build package docs run check test engines linter bench bench-server chaos-server chaos-members test-oidc upgrade check-deploy tools lint typecheck test-native test-wasm $(WASM_TESTS) opfs-tests test-docs test-e2e test-package test-consumers test-dav test-long test-soak test-simulation test-campaign test-engines race simulate find-defects find-planted soak campaign wpt strangers clean

##@ Build and run

# A line with ##@ begins a group of targets in this list.
help: ## list these targets
	@awk -F ':.*## ' '/^##@ / { print (n++ ? "\n" : "") substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: ## make the npm package in dist/ and the site that the server serves; DEBUG=1 keeps the names of functions for a debugger
	go run ./web/build $(if $(DEBUG),-debug)

package: ## build, then pack dist/ as an npm tarball in .cache/package/
	go run ./web/build -pack .cache/package

docs: ## write the reference pages of docs/, from the declaration file and the comments of the Go packages
	go run ./web/reference

run: build ## build, then serve the demo at http://localhost:8080 (PORT= changes the port)
	go build -o .cache/holdfast ./cmd/holdfast
	exec .cache/holdfast serve --addr 127.0.0.1:$(PORT) --data-dir .cache/holdfast-data

tools: ## install Chromium, Node.js, zsh, litmus and a C compiler where they are missing
	@tools/need chromium
	@tools/need shell
	@tools/need node
	@tools/need zsh
	@tools/need cc
	@tools/need litmus

clean: ## remove the files that the other targets made
	rm -rf .cache dist web/node_modules tests/bench/node_modules tests/docs/editors/node_modules tests/docs/frameworks/node_modules tests/docs/runners/node_modules tests/docs/sqlite/node_modules
	find web/site web/packed -mindepth 1 ! -name .keep -delete

##@ Check and test

check: ## in less than a minute, check what changed since main: format, lint, types, native tests; BASE= names another commit
	@tools/check

# Most targets of the second step wait for the disk and for time to pass, so five run at once, the longest ones first: make runs a target
# once although it is named twice. The end-to-end tests keep both cores busy alone.
test: ## check everything; installs the programs it needs; MORE= names targets to run before the end-to-end tests
	$(MAKE) -j2 --output-sync=target tools linter
	$(MAKE) -j5 --output-sync=target build $(NPM) test-opfs test-docs test-native typecheck $(WASM_TESTS) lint test-simulation $(MORE)
	$(MAKE) test-e2e

# They read the site that the server serves, which must not change meanwhile.
lint test-native test-docs: | build

# Building the linter takes longer than installing everything else, and needs only Go.
linter:
	@go tool -modfile=tools/golangci.mod -n golangci-lint >/dev/null

lint: ## gofmt, golangci-lint (go vet and staticcheck among others), natively and for the browser, and the rules of tests/arch
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	test -z "$$unformatted" || { echo "not formatted with gofmt:"; echo "$$unformatted"; exit 1; }
	@linter=$$(go tool -modfile=tools/golangci.mod -n golangci-lint) && set -x && \
	$$linter run ./... && $(JS) $$linter run $(JS_PACKAGES)
	go test ./tests/arch

typecheck: web/node_modules/.package-lock.json ## check the TypeScript sources against holdfast.d.ts
	web/node_modules/.bin/tsc --project web/tsconfig.json

# npm writes this file when it has installed everything.
%/node_modules/.package-lock.json: %/package.json %/package-lock.json
	cd $* && npm ci --no-progress
	touch $@

# With -trimpath, the build cache of another clone serves here too. The tests of the server mostly wait for leases to expire, so four
# packages run at once.
test-native: ## Go tests outside the browser, with the race detector
	go test -race -trimpath -timeout 20m -p 4 -parallel 4 -skip '^Test(Soak|Campaign)' $(NATIVE_TESTS)

test-wasm: ## tests of the Go packages that touch JavaScript, in Chromium: in a page, those of opfs in a worker
	$(MAKE) -j3 --output-sync=target $(WASM_TESTS)

test-js:
	tools/test-wasm -count=1 ./jsbridge/... ./wasm/...

test-opfs: opfs-tests
	$(OPFS_TEST) -test.skip '^Test(ThroughAHelper|Store|Killed|Every|Fails)'

test-opfs-helped: opfs-tests
	$(OPFS_TEST) -test.run '^TestThroughAHelper'

test-opfs-store: opfs-tests
	$(OPFS_TEST) -test.run '^TestStore'

test-opfs-faults: opfs-tests
	$(OPFS_TEST) -test.run '^Test(Killed|Every|Fails)'

# The installation of npm packages would keep the disk of these tests busy, so it comes first when both run.
opfs-tests: | $(filter $(NPM),$(MAKECMDGOALS))
	go build -o .cache/wasmworker ./tests/wasmworker
	$(JS) go test -c -o .cache/opfs.wasm ./opfs

test-docs: $(NPM) ## check every code block, name and command of the documentation
	go test -count=1 -timeout 20m ./tests/docs/...

test-e2e: build web/node_modules/.package-lock.json ## end-to-end tests in Chromium, over several tabs
	go run ./web/build -tags faults -out .cache/faults -site .cache/faults
	go test -count=1 -timeout 30m -p 2 -parallel 6 $(BROWSER_TESTS)

test-package: build ## pack the package twice, and use it as its users do: in a Vite project, a plain page, a Go program; needs Node.js 20.19
	@tools/need chromium
	@tools/need node
	go test -count=1 ./tests/consumer

engines:
	@tools/need chromium
	@tools/need firefox
	@tools/need webkit

test-engines: build engines ## test the package in Chromium, Firefox and WebKitGTK; installs them where they are missing
	go test -count=1 -timeout 20m -parallel 4 ./tests/engines/...

test-dav: ## test WebDAV: the suite litmus, cadaver, a mounted folder and LibreOffice against the server; installs them
	@tools/need litmus
	@tools/need office
	go test -count=1 -v ./tests/dav -args -full

test-simulation: ## run a minute of make simulate, half of it for rooms, always from the same seed
	go test -count=1 -v -run 'TestSimulation$$|TestSimulatedRooms|TestDefectsApply' ./tests/simulation -for 30s -seed 1

test-soak: build ## run the short form of make soak
	@tools/need chromium
	go test -count=1 -v -run 'TestSoak$$' ./tests/soak -seed $(or $(SEED),0)

test-campaign: build ## run the short form of make campaign, always from the same seed
	@tools/need chromium
	go test -count=1 -v -run 'TestCampaign$$' ./tests/campaign -seed $(or $(SEED),1)

##@ Long tests

test-long: build $(NPM) ## test AutoSave for longer: 200 handovers while typing, 200 takeovers from a frozen tab, 50 tabs closed in each way, every attack on unsaved text 20 times
	@tools/need chromium
	@tools/need firefox
	go test -count=1 -timeout 0 -v -run 'TestAutoSave(Handovers|Frozen|TabsLeave)|TestNothingLost' ./tests/e2e -args -full
	go test -count=1 -timeout 0 -v -run TestNothingLost ./tests/engines -args -full
	go test -count=1 -timeout 1h -v -run TestNothingLostByRecipes ./tests/docs -args -full

test-consumers: build ## test-package, and the package in every stack of docs/stacks.md: installs them all, 1 GB, for up to an hour
	@tools/need chromium
	@tools/need node
	go test -count=1 -timeout 2h -v ./tests/consumer -args -full

race: build ## let tabs and workers race for 10,000 grants over each strategy, in Chromium; GRANTS=, SEED= and EVERY= change the defaults
	@tools/need chromium
	go test -count=1 -timeout 2h -v ./tests/race -grants $(or $(GRANTS),10000) -seed $(or $(SEED),0) -every $(or $(EVERY),4s)

soak: build ## run tabs and two servers under all kinds of faults for 30 minutes, then write a report; SOAK=, SEED= and PACE= change the defaults
	@tools/need chromium
	go test -count=1 -timeout 0 -v -run 'TestSoak$$' ./tests/soak -for $(or $(SOAK),30m) -seed $(or $(SEED),0) -pace $(or $(PACE),2s)

SIMULATED = -tags simulated -overlay .cache/simulation/overlay.json

simulate: ## simulate tabs, browsers and servers in virtual time, each run from another seed, and then rooms; FOR= says for how long each, SEED= repeats one run
	go run ./tests/simulation/overlay .cache/simulation
	go test -count=1 -timeout 0 -v $(SIMULATED) -run 'TestSimulation$$|TestSimulatedRooms' ./tests/simulation -for $(or $(FOR),10m) $(if $(SEED),-seed $(SEED) -runs 1 -verbose)

find-defects: ## check that make simulate finds each of sixteen planted defects; FOR= is the time limit for each
	go test -count=1 -timeout 0 -v -run TestFindsDefects ./tests/simulation -find $(or $(FOR),10m)

campaign: build ## end pages, browsers and servers in every way while simulated people type, and look for lost words; FOR=, SEED=, ENDINGS= and GENERATIONS= change the defaults, BEFORE= names the folder of an older build, ONLY= the actions
	@tools/need chromium
	go test -count=1 -timeout 0 -v -run 'TestCampaign$$' ./tests/campaign -for $(or $(FOR),30m) -seed $(or $(SEED),0) -endings $(or $(ENDINGS),0) -generations $(or $(GENERATIONS),0) $(if $(BEFORE),-before $(abspath $(BEFORE))) -only '$(ONLY)'

find-planted: build ## check that make soak and make campaign find defects that are planted for them
	@tools/need chromium
	go test -count=1 -v -run FindsWhatIsPlanted ./tests/soak
	go test -count=1 -parallel 3 -v -run FindsWhatIsPlanted ./tests/campaign

wpt: build ## run the public web-platform-tests for web-locks against holdfast.locks; WPT= names a checkout, ROUNDS= says how often each test runs
	@tools/need chromium
	@test -n "$(WPT)" || test -d .cache/wpt/web-locks || { \
		git clone --quiet --depth 1 --filter=blob:none --sparse https://github.com/web-platform-tests/wpt .cache/wpt && \
		git -C .cache/wpt sparse-checkout set web-locks resources; }
	go test -count=1 -timeout 0 -v ./tests/wpt -suite $(abspath $(or $(WPT),.cache/wpt)) -rounds $(or $(ROUNDS),20)

strangers: build ## run suites of other projects for navigator.locks, against holdfast.locks and the browser's own; DIR= names the folder for their sources, ONLY= and GREP= select tests
	@tools/need chromium
	@tools/need node
	tools/strangers $(or $(DIR),.cache/strangers)
	go test -count=1 -timeout 0 -v ./tests/strangers -sources $(abspath $(or $(DIR),.cache/strangers)) $(if $(ONLY),-run '$(ONLY)') $(if $(GREP),-grep '$(GREP)')

chaos-server: build ## run the server's long tests: 1,000,000 operations under faults (OPERATIONS= changes the number), a start with 1,000,000 locks, 1,000 sockets through kills, 10,000 races, real durations, contents in a real S3 server, an hour of 500 saves a second
	CHAOS_OPERATIONS=$(or $(OPERATIONS),1000000) go test -count=1 -timeout 0 -v -run Linearizable ./tests/chaosserver
	LOCKS=1000000 go test -count=1 -timeout 30m -v -run StartWithManyLocks ./server/locks
	KILLS=20 EVENT_SOCKETS=1000 EVENT_KILLS=5 go test -count=1 -timeout 30m -v -run 'Lost|EveryEvent' ./tests/chaosserver
	go build -o .cache/holdfast ./cmd/holdfast
	HOLDFAST_BINARY=$(CURDIR)/.cache/holdfast go test -count=1 -v -run SIGTERM ./cmd/holdfast
	RACES=10000 go test -count=1 -timeout 30m -run 'ParentsAndChildrenRace' ./server/locks
	go test -count=1 -run Crowd ./server/rooms -crowd 1000
	FENCING_RUNS=1000 REAL_TIMES=1 go test -count=1 -timeout 30m ./server
	VERSITYGW=$$(go tool -modfile=tools/versitygw.mod -n versitygw) && export VERSITYGW && \
	go test -count=1 -v -run 'S3|Bucket' ./server/blobs ./server
	SOAK_SECONDS=3600 go test -count=1 -timeout 0 -v -run StaysLevel ./tests/chaosserver

chaos-members: build ## run three servers behind a proxy, and kill, cut off and replace each of them while clients work; ROUNDS= says how often
	MEMBER_ROUNDS=$(or $(ROUNDS),1) go test -count=1 -timeout 0 -v -run EveryMember ./tests/members

test-oidc: build ## test users with the OpenID Connect provider of another project: sign-in, renewal, refusals, new keys
	OIDC_PROVIDER=$$(go tool -modfile=tools/oidcprovider.mod -n server) && export OIDC_PROVIDER && \
	go test -count=1 -v -run TestRealProvider ./server

##@ Measure

bench: tools build tests/bench/node_modules/.package-lock.json ## measure speed against raw Web Locks and other packages; BEFORE= names the site of an older build
	go run ./tests/bench -update docs $(if $(BEFORE),-before $(BEFORE))

bench-server: build ## measure the server beside etcd's own mutex, a Redis lock and Apache's WebDAV; installs Redis and Apache for that
	@tools/need redis
	@tools/need apache
	go build -trimpath -ldflags="-s -w" -o .cache/holdfast ./cmd/holdfast
	cd tests/benchserver && go run . -update $(CURDIR)/docs/performance.md $(CURDIR)/.cache/holdfast
	go test -run '^$$' -bench FanOut -benchtime 100x ./server/rooms

##@ Operate

HELM = go tool -modfile=tools/helm.mod helm
HELM_VALUES := --set blobs=s3://contents/production --set peerTLS=peers --set hosts={locks.example.com} --set ingress.enabled=true --set ingress.tls=locks \
	--set policy='anyone * read' --set flags.lock-ttl=1m

check-deploy: build ## check the files in deploy/: alert rules with their tests, the unit of systemd, the proxy, the members of the compose file, the file system of the image, the chart; installs Prometheus and HAProxy for that
	@tools/need promtool
	@tools/need haproxy
	cd deploy && promtool check rules alerts.yaml && promtool test rules alerts_test.yaml
	@mkdir -p .cache && sed 's| ssl crt .*||' deploy/haproxy.cfg >.cache/haproxy.cfg && haproxy -c -f .cache/haproxy.cfg
	$(HELM) lint --strict deploy/helm $(HELM_VALUES) --set apiKeys=keys
	$(HELM) template holdfast deploy/helm $(HELM_VALUES) --set apiKeys=keys >.cache/chart.yaml
	$(HELM) template holdfast deploy/helm $(HELM_VALUES) --set oidc.issuer=https://id.example.com --set oidc.audience=holdfast >>.cache/chart.yaml
	! $(HELM) template holdfast deploy/helm $(HELM_VALUES) >/dev/null 2>&1 # nobody can sign in
	CHART=$(CURDIR)/.cache/chart.yaml go test -count=1 -run 'TestDeployed|TestChart' ./tests/members ./tests/docs
	@! command -v systemd-analyze >/dev/null || ! systemd-analyze verify deploy/holdfast.service 2>&1 | grep -v 'is not executable'

FORMER := .cache/former
FROM ?= $(shell git describe --tags --abbrev=0 2>/dev/null || echo HEAD~20)

upgrade: build ## upgrade three servers of the version FROM= (the last tag) to this version, one after the other, while clients work
	@git rev-parse -q --verify '$(FROM)^{commit}' >/dev/null || { echo 'this clone has no commit $(FROM): fetch it, or name another one with FROM='; exit 1; }
	rm -rf $(FORMER) && mkdir -p $(FORMER)/source
	git archive $(FROM) | tar -x -C $(FORMER)/source
	cp -R web/site web/packed $(FORMER)/source/web/
	cd $(FORMER)/source && go build -trimpath -o ../holdfast ./cmd/holdfast
	HOLDFAST_FORMER=$(CURDIR)/$(FORMER)/holdfast go test -count=1 -timeout 0 -v -run Upgrade ./tests/members
