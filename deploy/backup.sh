#!/usr/bin/env bash
# Writes database, files and secrets of octweb into a new folder: deploy/backup.sh FOLDER. The service goes on meanwhile.
# The database first, then the files: files are only added, so everything that the copy of the database names is among them.
set -euo pipefail
target=${1:?usage: deploy/backup.sh FOLDER}
case $target in /*) ;; *) target=$PWD/$target ;; esac  # a relative folder is meant from where one stands
cd "$(dirname "$0")/.."
data=${OCTWEB_DATA_DIR:-var}
python=${PYTHON:-.venv/bin/python}
umask 077
mkdir "$target"
if [ -n "${DATABASE_URL:-}" ] && [[ $DATABASE_URL == postgres* ]]; then
  pg_dump --format=custom --no-owner --file "$target/database.pgdump" "$DATABASE_URL"
else
  "$python" - "$data/octweb.sqlite3" "$target/octweb.sqlite3" <<'PYTHON'
import sqlite3, sys
source, copy = (sqlite3.connect(path) for path in sys.argv[1:])
source.backup(copy)  # a consistent copy of a database in use
assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
PYTHON
fi
case ${OCTWEB_FILES:-} in
  s3://*) echo "files lie in $OCTWEB_FILES: turn on versions of the bucket, or copy it with the tools of its server" ;;
  *) files=${OCTWEB_FILES:-$data/files}; if [ -d "$files" ]; then cp -a "$files" "$target/files"; fi ;;
esac
for key in secret_key dossier_key.pem; do if [ -f "$data/$key" ]; then cp -a "$data/$key" "$target/"; fi; done
(cd "$target" && find . -type f ! -name SHA256SUMS -exec sha256sum {} + >SHA256SUMS)
echo "backed up to $target"
