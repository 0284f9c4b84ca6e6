#!/bin/sh
# The tests need Chromium and nginx; install Debian's when they are missing and we may.
set -eu
PATH="$PATH:/usr/sbin"
for name in chromium nginx; do
    if command -v "$name" >/dev/null 2>&1; then continue; fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "$name is missing: installing Debian's package."
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$name" >/dev/null
        continue
    fi
    echo "The tests need $name: install the Debian package '$name' (apt-get install $name) and run make test again." >&2
    exit 1
done
