# Everything a developer types. `make check` is what the continuous integration runs.
GO       ?= go
FUZZTIME ?= 5s
# How long the tests of a package may take. The usual ten minutes are no limit for
# a test that hangs, but for a machine that is slow or busy.
TIMEOUT  ?= -timeout 40m
LIBRARY  = python/zarrdb/libzarrdb.shared
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.7.0

.PHONY: lines modules build library test random quick check race lint fuzz noasm cross qemu demo interop meaning interop-formats interop-names serve-interop s3 remote bench bench-quick soak soak-serve ui-test docs-test docs-update docs man screenshots python-test python-fork python-lint python-suites wheels wheels-smoke release clean

modules:          ## fetch what the other targets need from elsewhere
	$(GO) mod download
	$(GO) mod tidy -diff
	$(GO) run $(STATICCHECK) -version

build:            ## build the program into ./zarrdb
	@echo "compiling ./zarrdb: some minutes the first time, when every package is new to the build cache"
	CGO_ENABLED=0 $(GO) build -trimpath -o zarrdb ./cmd/zarrdb

# Go must not send signals to its own threads to interrupt them: a thread that gets one may take a signal that was
# meant for the main thread of Python, for example that of Ctrl-C. With pebblegozstd the index has the zstd of Go, as in the program.
library:          ## the library of the Python package, in its folder; needs a C compiler
	@cc=$$($(GO) env CC); command -v $${cc%% *} >/dev/null || { echo "make library: the Python package needs a C compiler, and $$cc was not found: install it (Debian: apt install gcc libc6-dev; macOS: xcode-select --install), or name another one in CC" >&2; exit 1; }
	CGO_ENABLED=1 $(GO) build -buildmode=c-shared -tags pebblegozstd -trimpath -buildvcs=false -ldflags='-s -X=runtime.godebugDefault=asyncpreemptoff=1' -o $(LIBRARY) ./python/lib
	@rm -f $(basename $(LIBRARY)).h

test:             ## run the tests, those that take long first
	$(GO) test $(TIMEOUT) ./internal/cli ./txn ./engine ./serve/local $$($(GO) list ./... | grep -v -E '/(internal/cli|txn|engine|serve/local)$$')

quick:            ## lint and short tests of what changed since BASE (default: where the branch left main), in two minutes mostly
	./scripts/quick.sh $(BASE)

demo: build       ## run the main job on bundled data
	./zarrdb demo

check: lint test race noasm cross fuzz   ## everything that must be green

# Every process with the race detector sleeps for a second before it ends, so that
# goroutines which still run can be caught. That is most of the time of scripts, which
# start hundreds of processes; a moment is enough, as tests wait for their goroutines.
race: export GORACE := atexit_sleep_ms=50 $(GORACE)
race:             ## tests under the race detector but for those that repeat the work of one goroutine; of the scripts those with work side by side
	CGO_ENABLED=1 $(GO) test $(TIMEOUT) -race -short ./txn ./engine ./serve/local $$($(GO) list ./... | grep -v -E '/internal/cli|/codecs/.+|/refs|/bench|/interop|/(txn|engine|serve/local)$$')
	CGO_ENABLED=1 $(GO) test $(TIMEOUT) -race -short -run 'TestScripts/(import|session|refs|remote|conflict|gc)$$|TestHelp' ./internal/cli

lint:             ## formatting, vet, staticcheck, tidy module files, no marks of a merge
	@! grep -rnE '^(<<<<<<<|>>>>>>>) ' --include='*.md' --include='*.go' --include='*.py' --include='*.sh' .
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) mod tidy -diff

noasm:            ## the generic twins of all assembly
	$(GO) test $(TIMEOUT) -short -tags noasm ./codecs/...

cross:            ## other systems must compile; the 32-bit tests of what depends on sizes
	$(GO) run ./scripts/typecheck linux/386 linux/s390x windows/amd64 darwin/arm64
	GOARCH=386 CGO_ENABLED=0 $(GO) test $(TIMEOUT) -short ./kv/... ./codecs/... ./zarr/...

qemu:             ## the tests of what depends on byte order on a big-endian machine (needs qemu-user)
	GOARCH=s390x CGO_ENABLED=0 $(GO) test -short -timeout 30m -exec qemu-s390x ./codecs/... ./zarr/... ./kv/tree ./txn/...

fuzz:             ## every fuzz target for FUZZTIME
	./scripts/fuzz.sh $(FUZZTIME)

interop:          ## other implementations read what we write, and the reverse
	./interop/run.sh
	./interop/refs.sh

meaning:          ## readers of others show the same values before and after conversions; ARGS are those of interop/meaning.sh
	./interop/meaning.sh $(ARGS)

interop-formats:  ## the same for foreign formats; see docs/formats.md
	./interop/formats.sh

interop-names:    ## the table for those who know Icechunk does the same there and here; PYTHON=python3.13 for Icechunk 2
	./interop/names.sh

serve-interop:    ## clients of other projects read and write a served database; see docs/serving.md
	./interop/serve.sh

s3:               ## buckets against a real server on the loopback device that checks signatures
	./scripts/s3.sh

remote:           ## three machines behind a bad network share a bucket of a real server, for SOAK seconds; SEED says which run. scripts/remote.sh --figures measures
	./scripts/remote.sh

ui-test: build    ## the page in real browsers (needs chromium; Firefox where there is one); ARGS are those of go test
	cd serve/page/uitest && GOFLAGS= $(GO) test -count=1 $(TIMEOUT) $(ARGS) .

docs-test:        ## the commands and programs of README.md and docs/ print what the pages show; links lead somewhere
	ZARRDB_PYTHON=$$(./scripts/python.sh --env) $(GO) test -count=1 $(TIMEOUT) -run '^Test(Docs|Links|Readme|Reference|Messages)$$' ./internal/cli $(ARGS)

docs:             ## the pages of docs as a site with a search, in build/site
	./scripts/site.sh

man:              ## manual pages of all commands, in build/man
	$(GO) run ./cmd/zarrdb help --man build/man

docs-update:      ## write what the commands print into the pages; look at the difference
	$(MAKE) docs-test ARGS=-update-docs

screenshots: build ## make the pictures of the page in docs/images, with the same browser
	cd serve/page/uitest && ZARRDB_IMAGES=$(CURDIR)/docs/images GOFLAGS= $(GO) test -count=1 -run Screenshots .

lines:            ## lines of the product and of tests by package
	@./scripts/lines.sh

bench:            ## all benchmarks beside other programs, in turn, to bench/RESULTS.md
	./bench/run.sh -out bench/RESULTS.md

bench-quick:      ## the rows that matter in five minutes, to bench/out
	mkdir -p bench/out
	./bench/run.sh -out bench/out/quick.md -only table -planes 64 -rounds 3 -layouts raw,blosc-lz4,trees

python-test: build ## tests of the Python package, in an environment of their own; ARGS are pytest's, EXAMPLES of random histories (10), EACH=1 for 100 spawned processes
	./scripts/python.sh $(ARGS)

python-fork: build ## the library of the Python package beside fork, threads and signals; ROUNDS of each (3)
	./scripts/python.sh tests/test_forks.py -s

python-lint:      ## types (mypy --strict, pyright) and style (ruff) of the Python package
	./scripts/python.sh --lint

python-suites: build ## tests of zarr-python and xarray with our store: half an hour
	./scripts/python.sh --suites

wheels-smoke:     ## a wheel in clean environments of each Python that is found
	./scripts/wheels.sh --smoke

wheels:           ## wheels of the Python package, one for each platform; TARGETS are some of them
	./scripts/wheels.sh $(TARGETS)

release:          ## archives, wheels, sums and what programs were built from, of the commit HEAD, in build/release; TARGETS are some platforms, WHEELS=no leaves wheels out
	./scripts/release.sh $(TARGETS)

soak:             ## random histories for SOAK (default 1h); SEED says which, LIMIT ends a run that hangs
	ZARRDB_SOAK=$${SOAK:-1h} ZARRDB_SEED=$$SEED $(GO) test -v -count=1 -run Soak -timeout $${LIMIT:-0} ./kv/index ./kv/depot ./txn ./engine ./engine/modeltest

random:           ## every test with seeds of its own; go test follows from the names of the tests
	ZARRDB_SEED=random $(GO) test -count=$${COUNT:-1} -timeout 60m ./...

soak-serve:       ## clients under load, holders that are killed, and short commands that hand over, for SOAK (default 10m) each, in processes and in a simulation; SEED says which
	ZARRDB_SOAK=$${SOAK:-10m} $(GO) test -v -count=1 -run Soak -timeout 0 ./serve/local
	ZARRDB_SOAK=$${SOAK:-10m} ZARRDB_SEED=$$SEED $(GO) test -v -count=1 -run SoakShortCommands -timeout 0 ./internal/cli
	ZARRDB_SOAK=$${SOAK:-10m} ZARRDB_SEED=$$SEED $(GO) test -v -count=1 -run SoakProcesses -timeout 0 ./txn

clean:
	rm -rf zarrdb bench/out build .cache
