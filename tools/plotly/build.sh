#!/usr/bin/env bash
# Builds static/vendor/plotly.min.js: plotly.js with only the traces in use (entry.js). Needs node and npm; run it after a
# change of the version in package.json or of a trace in octweb/figures, and keep the result in the repository.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$here/../../static/vendor/plotly.min.js
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/entry.js" "$work"
cd "$work"
npm install --no-audit --no-fund --no-package-lock --ignore-scripts --silent
version=$(node -p 'require("plotly.js/package.json").version')
year=$(node -p 'new Date().getFullYear()')
npx esbuild entry.js --bundle --minify --format=iife --global-name=Plotly --target=es2020 --log-level=error \
  --define:global=window --define:define.amd=false --alias:stream=stream-browserify --legal-comments=none --outfile=bundle.js
{
  echo "/*! plotly.js v$version, traces scatter and bar. Copyright 2012-$year, Plotly, Inc. MIT license. Built by tools/plotly/build.sh */"
  cat bundle.js
} > "$out"
echo "$out: $(wc -c < "$out") bytes, $(gzip -9 -c "$out" | wc -c) compressed"
