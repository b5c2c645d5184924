#!/usr/bin/env bash
# Puts a backup into an empty place: deploy/restore.sh FOLDER. Stop web server and workers first.
# OCTWEB_DATA_DIR (and DATABASE_URL, OCTWEB_FILES where they are used) say where to; nothing that exists is overwritten.
set -euo pipefail
source=$(cd "${1:?usage: deploy/restore.sh FOLDER}" && pwd)
cd "$(dirname "$0")/.."
data=${OCTWEB_DATA_DIR:-var}
python=${PYTHON:-.venv/bin/python}
umask 077
(cd "$source" && sha256sum --check --quiet SHA256SUMS)
mkdir -p "$data"
if [ -f "$source/database.pgdump" ]; then
  : "${DATABASE_URL:?the backup is of PostgreSQL: set DATABASE_URL to an empty database}"
  pg_restore --no-owner --exit-on-error --single-transaction --dbname "$DATABASE_URL" "$source/database.pgdump"
else
  [ ! -e "$data/octweb.sqlite3" ] || { echo "there is a database in $data already: choose an empty OCTWEB_DATA_DIR" >&2; exit 1; }
  cp "$source/octweb.sqlite3" "$data/"
fi
if [ -d "$source/files" ]; then
  files=${OCTWEB_FILES:-$data/files}
  [ ! -e "$files" ] || { echo "$files exists already" >&2; exit 1; }
  cp -a "$source/files" "$files"
fi
for key in secret_key dossier_key.pem; do
  if [ -f "$source/$key" ] && [ ! -e "$data/$key" ]; then cp -a "$source/$key" "$data/"; fi
done
"$python" manage.py migrate --no-input --verbosity 0
echo "restored; start the web server and the workers"
