#!/usr/bin/env bash
# Builds static/fonts/inter-latin.woff2: the letters of Inter that European languages and our pages use, in one variable file.
# Needs npm and Python; run it after a change of VERSION, and keep the result in the repository.
set -euo pipefail
VERSION=4.1.1
here=$(cd "$(dirname "$0")" && pwd)
out=$here/../../static/fonts
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent "inter-ui@$VERSION" >/dev/null
tar xzf "inter-ui-$VERSION.tgz"
python3 -m venv fonts
fonts/bin/python -m pip install --quiet fonttools brotli
# text size only, and the weights that the pages use
fonts/bin/fonttools varLib.instancer package/variable/InterVariable.woff2 opsz=14 wght=400:700 -o inter.ttf
# Latin letters, punctuation and the narrow space, then arrows, signs of comparison and marks
fonts/bin/pyftsubset inter.ttf --flavor=woff2 --name-IDs='*' --output-file="$out/inter-latin.woff2" \
  --layout-features=kern,liga,calt,ccmp,locl,mark,mkmk,tnum,pnum,frac,numr,dnom,case,zero \
  --unicodes="$(tr -d ' \n' <"$here/letters.txt")"
cp package/LICENSE.txt "$out/LICENSE.txt"
echo "$out/inter-latin.woff2: $(wc -c <"$out/inter-latin.woff2") bytes"
