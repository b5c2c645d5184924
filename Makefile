# make run: set up and serve; make test: every test. Python 3.11 or newer and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000
# Python keeps compiled modules, whatever the shell says: pip leaves that to the first import, and workers and children start often
unexport PYTHONDONTWRITEBYTECODE
export OCTWEB_DATA_DIR ?= $(CURDIR)/var

.PHONY: setup run docs wheel test test-fast lint bench lock clean torture mixed hosts container

setup: $(VENV)/.runtime

$(VENV)/.runtime: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "octweb needs Python 3.11 or newer; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/.test: $(VENV)/.runtime requirements-test.txt
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -r requirements-test.txt
	touch $@

# clients whose pins are not octweb's, in an environment of their own
$(VENV)/clients/.ready: $(VENV)/.runtime requirements-clients.txt
	test -x $(VENV)/clients/bin/python || $(PYTHON) -m venv $(VENV)/clients
	$(VENV)/clients/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -r requirements-clients.txt
	touch $@

$(VENV)/.bench: $(VENV)/.test requirements-bench.txt
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -r requirements-bench.txt
	touch $@

run: setup
	PORT=$(PORT) $(BIN)/python manage.py serve

# what writes the documentation as a site, in an environment of its own
$(VENV)/docs/.ready: requirements-docs.txt
	test -x $(VENV)/docs/bin/python || $(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -r requirements-docs.txt
	touch $@

# the documentation as a site, in build/docs: open build/docs/index.html, or /docs/ of the application
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/docs/.ready
	$(VENV)/docs/bin/mkdocs build --strict --quiet

# the package that pip installs, in dist/, with its kernels compiled (docs/install.md)
wheel: export NUMBA_CACHE_DIR ?= $(CURDIR)/$(VENV)/numba-cache
wheel: $(VENV)/.test docs
	$(BIN)/python -m tools.ready
	$(BIN)/python -m hatchling build -t wheel -d dist

test: $(VENV)/.runtime
	MAKE="$(MAKE)" VENV=$(VENV) tests/run.sh

test-fast: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m "not slow and not browser"

torture: $(VENV)/.test
	$(BIN)/python -m tests.torture

# an hour of predictions, lists, uploads and two trainings at once; MINUTES=20 make mixed for less
mixed: $(VENV)/.test
	$(BIN)/python -m tests.torture --only mixed --minutes $(or $(MINUTES),60)

hosts: $(VENV)/.test
	bash tests/with_postgres.sh $(BIN)/python -m tests.hosts

# the image of deploy/Dockerfile, built and tried by docker or podman; where that cannot be, this says why and fails
container:
	OCTWEB_CONTAINER=1 $(PYTHON) -m tests.container

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint deploy/Dockerfile
	$(BIN)/python tests/audit.py

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run_all.py

lock: $(VENV)/.runtime
	$(BIN)/python tests/lock.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
