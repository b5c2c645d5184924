#!/usr/bin/env bash
# Browser tests drive a real Chromium: say which, or try to install Debian's, or say why there is none.
for name in chromium chromium-browser google-chrome; do
  if path=$(command -v "$name"); then echo "browser tests use $path"; exit 0; fi
done
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "installing Chromium for the browser tests"
  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium) >/dev/null 2>&1 \
    && { echo "browser tests use $(command -v chromium)"; exit 0; }
fi
echo "no Chromium found: the browser tests are skipped. Install it (apt-get install chromium) to run them."
