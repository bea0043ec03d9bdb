# Every target sets up what it needs; the work itself stands in tools/. `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help demo reproduce-small test test-changed venv extras build check check-all bench fuzz stub pages signature format clean distclean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

demo: ## From nothing to a report: a small search on real images (about 4 minutes after set-up)
	@tools/demo.sh

reproduce-small: ## The paper's steps and figures at small scale (at most an hour; goes on when interrupted)
	@tools/reproduce_small.sh

test: ## Set up, build, run the C++ and the Python tests (not the slow ones and those of the laboratory)
	@tools/test.sh

test-changed: ## The Python tests nearest to what changed since the commit SINCE (HEAD), at most three minutes
	@tools/venv.sh
	@tools/test_changed.sh $(SINCE)

venv: ## The environment alone: .venv with .venv/bin/syno
	@tools/venv.sh
	@tools/build.sh release _core

extras: ## The extras tvm, triton, ray, ... in .venv (1.7 GB), so that their tests run
	@tools/venv.sh
	@tools/extras.sh

build: venv ## The C++ library, its tests and the Python extension
	@tools/build.sh release

check: ## Formatting, lint, types, layers, words, numbers in pages (under a minute)
	@tools/venv.sh
	@tools/build.sh release _core
	@tools/check.sh

check-all: ## Everything, for hours, or the parts PARTS="tidy fuzz ..."; a part that passed is not run again
	@tools/venv.sh
	@tools/check_all.sh

bench: ## The C++ benchmarks
	@tools/venv.sh
	@tools/bench.sh

fuzz: ## The fuzzers, 20 seconds each (needs Clang)
	@tools/venv.sh
	@tools/fuzz.sh

stub: ## Regenerate python/syno/_core.pyi after a change of the bindings
	@tools/venv.sh
	@tools/build.sh release syno_stub

pages: ## Write the generated tables and numbers of README.md and docs/ anew
	@tools/venv.sh
	@tools/build.sh release _core
	@tools/pages.sh

signature: ## What the search finds, as one number; after a change, written to tests/golden/search/signature.txt
	@tools/venv.sh
	@tools/build.sh release _core
	@.venv/bin/python tools/signature.py --write

format: ## Format C++ and Python in place
	@tools/venv.sh
	@tools/format.sh

clean: ## Remove what was built (the environment stays)
	rm -rf build dist
	rm -f python/syno/_core.*.so

distclean: clean ## Remove the environment, too
	rm -rf .venv
