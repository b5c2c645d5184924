#!/usr/bin/env bash
# Runs a command in a network namespace of its own where that is permitted, and plainly elsewhere.
# Wires between hosts that appear beside a browser make it drop what it is loading (ERR_NETWORK_CHANGED).
set -euo pipefail
if unshare --net ip link set lo up 2>/dev/null; then
    exec unshare --net bash -c 'ip link set lo up; exec "$@"' "$0" "$@"
fi
exec "$@"
