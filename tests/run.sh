#!/usr/bin/env bash
# Lint, types, import contracts, then pytest on SQLite and, where a server can be started, on PostgreSQL.
# ALL=1 includes the tests marked slow. INSTANCES=200 gives each variant of a solver 200 random instances on each back end, instead of 5.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=${VENV:-.venv} MAKE=${MAKE:-make}
BIN=$VENV/bin
MARKS="not slow" environments=("$VENV/.test")
if [ -n "${ALL:-}" ]; then
    MARKS="" environments=("$VENV"/{.test,clients/.ready,docs/.ready})
fi
unset PYTHONDONTWRITEBYTECODE # or each of the hundreds of processes would compile every module for itself
export NUMBA_CACHE_DIR=${NUMBA_CACHE_DIR:-$PWD/.venv/numba-cache}
# for the processors of which the wheel brings code, so that the code that is shipped is the code that is tested
eval "$("$BIN/python" -m tools.ready --variables)"

warming=() hosts=$(mktemp) campaign=
trap 'kill "${warming[@]}" $campaign 2>/dev/null || true; rm -f "$hosts"' EXIT
beside() { # run a command beside what comes next
    "$@" >/dev/null &
    warming+=($!)
}

# the kernels are compiled once, beside installing and checking, and not by every test process for itself
# the longest of the three has a processor of its own, since it is waited for at the end
beside "$BIN/python" manage.py warm exact
echo "== packages"
"$MAKE" --silent -j3 "${environments[@]}"
beside nice "$BIN/python" manage.py warm bivariate exact-numeric bendoct-accelerated
beside nice "$BIN/python" manage.py warm odt oc1 cut-h
# asserts are rewritten once, and not by each test process, which says what is wrong if this fails
rewritten() { nice "$BIN/python" -m pytest --collect-only -q || true; }
beside rewritten

echo "== lint, types, import contracts"
"$BIN/ruff" check .
"$BIN/ruff" format --check .
nice "$BIN/mypy"
nice "$BIN/lint-imports"
"$BIN/hadolint" deploy/Dockerfile

echo "== image"
"$BIN/python" -m tests.container

echo "== browser"
bash tests/find_chromium.sh
for one in "${warming[@]}"; do wait "$one"; done

# several hosts mostly wait for leases that end, so they run beside the tests, and are told of at the end
bash tests/own_network.sh bash tests/with_postgres.sh "$BIN/python" -m tests.hosts --runs 3 >"$hosts" 2>&1 &
campaign=$!
echo "== tests (SQLite)"
"$BIN/python" -m pytest -m "$MARKS" -n 3 --dist loadfile --no-loadscope-reorder --instances "${INSTANCES:-5}" "$@"

echo "== tests of the application (PostgreSQL)"
bash tests/with_postgres.sh "$BIN/python" -m pytest tests/octweb/{jobs,runs,batch,datasets,sources,experiments,registry,workbench,checking,core,decisions,demo} tests/trainer/counts/test_sources.py \
    -m "not slow" --only-database -n 2 --dist loadfile --no-loadscope-reorder

echo "== several hosts (PostgreSQL, a bucket, network namespaces where they are permitted)"
wait "$campaign" && status=0 || status=$?
cat "$hosts"
exit "$status"
