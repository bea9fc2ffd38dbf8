# Two commands matter: `make try` to see it, `make test` to believe it. The rest is listed by `make help`.
# Everything lands in .venv and .cache inside this folder; a second run needs no network.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
READY := .venv/.ready
RIG := $(BIN)/python tests/rig
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
LUA := $(wildcard lua plugin tests/demo tests/screens)
LUA_FILES = $(shell find $(LUA) -name '*.lua')
PY := rplugin/python3 tests $(if $(wildcard bench/*.py),bench)
SH := $(wildcard hooks/emit .ci/run tests/rig/nvim tests/rig/claude tests/rig/fetch tests/rig/peer tests/rig/tool)
need = command -v $(1) >/dev/null || { echo "make test: $(1) is missing; $(2)" >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help try test needs check fmt lint types bench truth wild fuzz doc picture rig left-out
.DELETE_ON_ERROR:

help: ## list what can be made
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1@\2/p' $(MAKEFILE_LIST) | column -t -s @ 2>/dev/null \
		|| sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1   \2/p' $(MAKEFILE_LIST)

try: $(READY) ## open a Neovim with a live demo (HEADLESS=1: print its last screen)
	@$(BIN)/python tests/demo/run.py $(if $(HEADLESS),--headless)

needs:
	@$(call need,git,install git)
	@$(call need,tmux,install tmux (apt install tmux, brew install tmux))

test: needs $(READY) rig ## set up and run all tests (ARGS="-k float" runs some)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

check: CHECK := 1
check: fmt lint types test left-out ## what CI runs: fmt lint types test

fmt: $(READY) ## format Python and Lua (CHECK=1: only complain)
	$(BIN)/ruff format $(if $(CHECK),--check) --quiet $(PY)
	@if found=$$($(RIG) tool stylua 2>/dev/null); then $$found $(if $(CHECK),--check) $(LUA_FILES); fi

lint: $(READY) ## ruff, shellcheck, luacheck
	$(BIN)/ruff check $(PY)
	$(if $(SH),$(BIN)/shellcheck $(SH))
	@if found=$$($(RIG) tool luacheck 2>/dev/null); then $$found --quiet --codes $(LUA_FILES); fi

types: $(READY) ## mypy, strict
	$(BIN)/mypy

bench: $(READY) ## measure every bar
	@for b in bench/*.py; do $(BIN)/python "$$b" || exit 1; done

truth: $(READY) rig ## play every scene on real CLIs; write doc/truth.md (CLI=newest: one)
	cd tests && PYTHONPATH=. ../$(BIN)/python -m truth $(if $(CLI),--cli $(CLI),--write) $(ARGS)

wild: $(READY) rig ## a monkey at the keyboard of real CLIs (MINUTES=5 SEED=… CLI=2.1.330)
	cd tests && PYTHONPATH=. ../$(BIN)/python -m wild --minutes $(or $(MINUTES),5) \
		$(if $(SEED),--seed $(SEED)) $(if $(CLI),--cli $(CLI)) $(ARGS)

fuzz: $(READY) ## hostile input for a live host (MINUTES=10 SEED=1 ONLY=payload)
	@cd tests && PYTHONPATH=. ../$(BIN)/python -m fuzz $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only "$(ONLY)") $(if $(CASES),--cases $(CASES))

doc: $(READY) ## write the table of rules, build the help tags, open the manual
	@$(BIN)/python doc/tables.py
	@$$($(BIN)/python tests/demo/run.py --which) --clean -c 'helptags doc' -c 'set rtp+=.' -c 'help bellboard | only'

picture: $(READY) ## draw doc/bellboard.svg from the demo's real screen
	@$(BIN)/python tests/demo/run.py --picture doc/bellboard.svg

# Set-up: uv if it is there, else venv and pip. Done once, until pyproject.toml changes.
# An environment that is half there (no pip in it, or its Python gone) is made again.
$(READY): pyproject.toml
	@unreached() { echo "The packages in pyproject.toml cannot be fetched; is there a network?" \
		"A mirror is set with PIP_INDEX_URL, or UV_INDEX_URL for uv." >&2; exit 1; }; \
	if command -v uv >/dev/null; then \
		echo "setting up .venv with uv"; uv sync --quiet || unreached; \
	else \
		[ -n "$(PYTHON)" ] || { echo "Python 3.10 or newer is missing; apt install python3 python3-venv, or get uv" >&2; exit 1; }; \
		echo "setting up .venv with $(PYTHON)"; \
		$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv \
			|| { echo "no venv; apt install python3-venv, or get uv" >&2; exit 1; }; \
		$(PIP) --upgrade 'pip>=25.1' && $(PIP) --group dev --editable . || unreached; \
	fi
	@touch $@

# The Neovims, agent CLIs and shells of the tests. What cannot be had is said here, and the tests
# that need it are named as left out; where nothing may be left out (BELLBOARD_WHOLE=1) it ends here.
rig: $(READY)
	@$(RIG) fetch >/dev/null || [ -z "$$BELLBOARD_WHOLE" ]

left-out:
	@out=; \
	for tool in stylua luacheck; do $(RIG) tool $$tool >/dev/null 2>&1 || out="$$out $$tool,"; done; \
	echo "left out:$$out LuaCATS types (no registry here carries lua-language-server)"; \
	[ -z "$$out" ] || [ -z "$$BELLBOARD_WHOLE" ]
