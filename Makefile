# `make try` opens a demo, `make test` runs the tests, `make help` lists the rest.
# Everything is downloaded to .venv and .cache in this folder; a second run needs no network.

BIN := .venv/bin
READY := .venv/.ready
COMPILED := .venv/.compiled
RIG := $(BIN)/python tests/rig
LUA := $(wildcard lua plugin demo tests/data/screens)
LUA_FILES = $(shell find $(LUA) -name '*.lua')
BENCHES := hook latency backlog fold turn rest lying_around editor soak fleet
PY := rplugin/python3 demo tests $(if $(wildcard bench/*.py),bench)
SH := $(wildcard build.sh bellboard.tmux hooks/emit .ci/run tests/rig/nvim tests/rig/claude tests/rig/fetch tests/rig/peer tests/rig/tool tests/rig/machines/init)
# Four times as many as a small machine has cores: most of the time tests wait for processes.
WORKERS := -n 8 --dist worksteal
# Where it is set, each worker would compile all tests again.
unexport PYTHONDONTWRITEBYTECODE
need = command -v $(1) >/dev/null || { echo "make test: $(1) is missing; $(2)" >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help try test live quick needs check fmt lint types bench fuzz doc picture rig mutants left-out
.DELETE_ON_ERROR:

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1@\2/p' $(MAKEFILE_LIST) | column -t -s @ 2>/dev/null \
		|| sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1   \2/p' $(MAKEFILE_LIST)

try: $(READY) ## open a Neovim with a live demo (HEADLESS=1: only print the screen)
	@$(BIN)/python $(if $(HEADLESS),demo/film.py,demo/run.py)

needs:
	@$(call need,git,install git)
	@$(call need,tmux,install tmux (apt install tmux, brew install tmux))

test: needs $(READY) rig $(COMPILED) ## set up and run the tests (ARGS="-k float" runs some)
	$(BIN)/python -m pytest $(WORKERS) $(ARGS)

live: needs $(READY) $(COMPILED) ## start real agent CLIs (ONLY=tests|scenes|walks|answers|machines|… AGENT=codex CLI=newest MINUTES=5)
	@$(RIG) fetch live >/dev/null || [ -z "$$BELLBOARD_WHOLE" ]
	$(if $(filter tests,$(ONLY)),$(BIN)/python -m pytest $(WORKERS) --live $(if $(SHORT),short,all) -m live, \
		$(BIN)/python -m live $(ONLY) $(if $(AGENT),--agent $(AGENT)) \
		$(if $(CLI),--cli $(CLI)) $(if $(MINUTES),--minutes $(MINUTES))) $(ARGS)

quick: $(READY) $(COMPILED) ## the inner loop: core, store and house, in half a minute
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "core or quick or house" $(ARGS)

check: CHECK := 1
check: fmt lint types test left-out ## run what CI runs: fmt lint types test

fmt: $(READY) ## format Python and Lua (CHECK=1: only report)
	$(BIN)/ruff format $(if $(CHECK),--check) --quiet $(PY)
	@if found=$$($(RIG) tool stylua 2>/dev/null); then $$found $(if $(CHECK),--check) $(LUA_FILES); fi

lint: $(READY) ## run ruff, shellcheck, luacheck
	$(BIN)/ruff check $(PY)
	$(if $(SH),$(BIN)/shellcheck $(SH))
	@if found=$$($(RIG) tool luacheck 2>/dev/null); then $$found --quiet --codes $(LUA_FILES); fi

types: $(READY) ## run mypy
	$(BIN)/mypy

bench: $(READY) ## run the benchmarks
	@status=0; for b in $(BENCHES); do echo "== $$b"; $(BIN)/python bench/$$b.py || status=1; done; exit $$status

fuzz: $(READY) ## let faults happen to a host, at random (MINUTES=10 SEED=1 ONLY=payload)
	@$(BIN)/python -m faults $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only "$(ONLY)") $(if $(CASES),--cases $(CASES))

mutants: needs $(READY) $(COMPILED) ## make small faults at random, say which test catches each (SEED=1 COUNT=9)
	@$(BIN)/python -m house.mutants --seed $(or $(SEED),1) --count $(or $(COUNT),9) \
		| $(BIN)/python -m house.mutants /dev/stdin

doc: $(READY) ## update the table of rules and the help tags, open the manual
	@$(BIN)/python doc/tables.py
	@$$($(BIN)/python demo/run.py --which) --clean -c 'helptags doc' -c 'set rtp+=.' -c 'help bellboard | only'

picture: $(READY) ## redraw doc/bellboard.svg and doc/demo.svg from the demo's screen
	@$(BIN)/python demo/film.py --picture doc/bellboard.svg --film doc/demo.svg

# Again when pyproject.toml changes. The folder of the tests is on the path of this Python: a test runs
# a program of its folder, and `python -m rig`, `-m live`, `-m golden` are found from anywhere.
$(READY): pyproject.toml
	@./build.sh dev
	@echo '$(CURDIR)/tests' >"$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tests.pth"

# Compile the tests once; in a new checkout each worker would, at the same time.
$(COMPILED): $(READY)
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null && touch $@

# Download the Neovims, agent CLIs and shells of the tests. What is missing is named, and the tests
# that need it are skipped; with BELLBOARD_WHOLE=1 anything missing is an error.
rig: $(READY)
	@$(RIG) fetch >/dev/null || [ -z "$$BELLBOARD_WHOLE" ]

left-out:
	@out=; \
	for tool in stylua luacheck; do $(RIG) tool $$tool >/dev/null 2>&1 || out="$$out $$tool,"; done; \
	echo "left out:$$out LuaCATS types (no registry here carries lua-language-server)"; \
	[ -z "$$out" ] || [ -z "$$BELLBOARD_WHOLE" ]
