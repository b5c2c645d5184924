#!/usr/bin/env bash
# Runs a command with DATABASE_URL set to a throw-away PostgreSQL; says so and ends well where there are no binaries.
set -euo pipefail
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 || true)
if [ -z "$bin" ] && command -v initdb >/dev/null; then bin=$(dirname "$(command -v initdb)"); fi
if [ -z "$bin" ] || [ ! -x "$bin/initdb" ]; then
  echo "no PostgreSQL server binaries found: these tests are left out. Install the package postgresql to run them."
  exit 0
fi
folder=$(mktemp -d)
port=$((20000 + RANDOM % 20000))
as=()
# the server refuses to run as root
if [ "$(id -u)" = 0 ]; then chown nobody "$folder"; as=(setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups); fi
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
(cd "$folder" && "${as[@]}" "$bin/initdb" -D "$folder/data" -U octweb --auth=trust >"$folder/log" 2>&1) || { cat "$folder/log"; exit 1; }
(cd "$folder" && "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -o "-p $port -k $folder -h 127.0.0.1 -F" -l "$folder/data/server.log" start >/dev/null)
export DATABASE_URL="postgresql://octweb@127.0.0.1:$port/postgres"
status=0
"$@" || status=$?
exit $status
