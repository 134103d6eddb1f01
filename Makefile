# Each target installs what it needs, and is quick if there is nothing to do.
target := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help setup build packages check-packages peers workload run check test bench check-bench docs format clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## install the packages that building needs (Debian 12, as root)
	@scripts/setup

build: setup ## build target/release/tarsier
	@cargo build --quiet --release

packages: setup ## make target/packages: deb, rpm and tar archive for this architecture
	@scripts/setup packages
	@scripts/packages

check-packages: packages ## check the packages: files, lintian, an installation in a tree, its removal
	@scripts/setup packages check-packages
	@scripts/check-packages

peers: setup ## fetch Debian's audit programs and sample rules, without installing them
	@scripts/peers >/dev/null

workload: setup ## build the system-call workload that tests and benchmarks run
	@scripts/build-workload >/dev/null

run: build peers ## watch this system through Debian's sample rules; Ctrl-C ends it
	@exec scripts/run-demo

check: ## check formatting and lints, run the tests that take seconds
	@scripts/setup test
	@scripts/check

test: ## check formatting and lints, run every test
	@scripts/setup test
	@cargo build --quiet --release
	@scripts/peers >/dev/null
	@scripts/test

bench: ## measure calls, loggers and workloads: native, kernel audit, Tarsier
	@scripts/setup bench
	@cargo build --quiet --release
	@scripts/peers >/dev/null
	@scripts/bench

check-bench: ## lint, type-check and test the Python package of the benchmarks
	@scripts/setup test
	@scripts/check-bench

docs: setup ## make the manual: target/book/index.html
	@cargo xtask book target/book-source
	@"$$(scripts/mdbook)" build target/book-source --dest-dir "$(CURDIR)/target/book"

format: ## format Rust, C and the benchmarks' Python sources
	@cargo fmt --all
	@git ls-files -z 'crates/*.c' 'crates/*.h' 'tests/*.c' | xargs -0 -r clang-format -i
	@scripts/bench-tools ruff format --quiet

clean: ## remove what was built and what runs have written
	rm -rf "$(target)" target run /run/tarsier-demo
