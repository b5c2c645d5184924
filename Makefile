# make run: set up and serve; make test: every check, and every test that is not slow; make test-all: the slow ones, too. Python 3.11 or newer and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000
# Python keeps compiled modules, whatever the shell says: pip leaves that to the first import, and workers and children start often
unexport PYTHONDONTWRITEBYTECODE
export OCTWEB_DATA_DIR ?= $(CURDIR)/var

# Packages of file 2 into environment 1. `make test` brings uv, which takes a fifth of pip's time; where uv is not there or cannot,
# for example because an index is named in the settings of pip alone, pip installs them.
PIP := $(BIN)/python -m pip --disable-pip-version-check
install = { test -x $(BIN)/uv && $(BIN)/uv pip install --quiet --python $(1)/bin/python -r $(2); } \
	|| $(PIP) --python $(1)/bin/python install --quiet --no-compile -r $(2)

.PHONY: setup run docs wheel test test-all test-fast lint bench lock clean torture mixed hosts mutants container

setup: $(VENV)/.runtime

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "octweb needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.uv: requirements-test.txt | $(BIN)/python
	sed -n '/^uv==/,/[^\\]$$/p' requirements-test.txt >$@.txt
	$(PIP) install --quiet --no-compile -r $@.txt || echo "uv cannot be installed; pip installs the packages"
	touch $@

$(VENV)/.runtime: requirements.txt | $(BIN)/python
	$(call install,$(VENV),requirements.txt)
	touch $@

$(VENV)/.test: $(VENV)/.runtime requirements-test.txt
	$(call install,$(VENV),requirements-test.txt)
	touch $@

# clients whose pins are not octweb's, in an environment of their own
$(VENV)/clients/.ready: $(VENV)/.runtime requirements-clients.txt
	test -x $(VENV)/clients/bin/python || $(PYTHON) -m venv --without-pip $(VENV)/clients
	$(call install,$(VENV)/clients,requirements-clients.txt)
	touch $@

$(VENV)/.bench: $(VENV)/.test requirements-bench.txt
	$(call install,$(VENV),requirements-bench.txt)
	touch $@

# the documentation is built beside the server where it is missing or old; /docs/ shows the pages as text until it is there
# compiled kernels belong to the checkout, so that a new data folder compiles nothing again
run: export NUMBA_CACHE_DIR ?= $(CURDIR)/$(VENV)/numba-cache
run: setup
	@mkdir -p build
	@{ nice -n 15 $(MAKE) --silent build/docs/index.html >build/docs.log 2>&1 || echo "no documentation site: see build/docs.log"; } &
	PORT=$(PORT) $(BIN)/python manage.py serve

# what writes the documentation as a site, in an environment of its own
$(VENV)/docs/.ready: requirements-docs.txt
	test -x $(VENV)/docs/bin/python || $(PYTHON) -m venv --without-pip $(VENV)/docs
	$(call install,$(VENV)/docs,requirements-docs.txt)
	touch $@

# the documentation as a site, in build/docs: open build/docs/index.html, or /docs/ of the application
docs: $(VENV)/docs/.ready
	rm -f build/docs/index.html
	$(MAKE) --silent build/docs/index.html

# built beside the old site and renamed, so that no reader sees half of it
build/docs/index.html: export NO_MKDOCS_2_WARNING = 1
build/docs/index.html: $(VENV)/docs/.ready mkdocs.yml $(shell find docs -type f)
	rm -rf build/docs.new
	$(VENV)/docs/bin/mkdocs build --strict --quiet --site-dir $(CURDIR)/build/docs.new
	rm -rf build/docs
	mv build/docs.new build/docs
	touch $@

# the package that pip installs, in dist/, with its kernels compiled (docs/install.md)
wheel: export NUMBA_CACHE_DIR ?= $(CURDIR)/$(VENV)/numba-cache
wheel: $(VENV)/.test docs
	$(BIN)/python -m tools.ready
	$(BIN)/python -m hatchling build -t wheel -d dist

test: $(VENV)/.uv
	$(MAKE) --silent $(VENV)/.runtime
	MAKE="$(MAKE)" VENV=$(VENV) tests/run.sh

test-all: export ALL := 1
test-all: test

test-fast: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m "not slow and not browser"

torture: $(VENV)/.test
	$(BIN)/python -m tests.torture

# an hour of predictions, lists, uploads and two trainings at once; MINUTES=20 make mixed for less
mixed: $(VENV)/.test
	$(BIN)/python -m tests.torture --only mixed --minutes $(or $(MINUTES),60)

hosts: $(VENV)/.test
	bash tests/own_network.sh bash tests/with_postgres.sh $(BIN)/python -m tests.hosts

# small changes of the checkers and other guards that no test notices; MODULES=trainer/check/proof/model.py make mutants for one file
mutants: $(VENV)/.bench
	$(BIN)/python -m tests.mutants $(MODULES)

# the image of deploy/Dockerfile, built and tried by docker or podman; where that cannot be, this says why and fails
container:
	OCTWEB_CONTAINER=1 $(PYTHON) -m tests.container

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint deploy/Dockerfile
	$(BIN)/python -m tests.audit

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run_all.py

lock: $(VENV)/.uv
	$(BIN)/python -m tests.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
