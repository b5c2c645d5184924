#!/usr/bin/env bash
# Browser tests drive a real Chromium: say which, or try to install Debian's, or say why there is none.
# Its build without an interface draws with the same code, and opens and closes pages in less of the processor's time.
say() { for name in "$@"; do if path=$(command -v "$name"); then echo "browser tests use $path"; exit 0; fi; done; }
say chromium-headless-shell
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "installing Chromium for the browser tests"
  install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >/dev/null 2>&1; }
  apt-get update -qq >/dev/null 2>&1 || true
  install chromium-headless-shell || command -v chromium >/dev/null || install chromium || true
fi
say chromium-headless-shell chromium chromium-browser google-chrome
echo "no Chromium found: the browser tests are skipped. Install it (apt-get install chromium) to run them."
