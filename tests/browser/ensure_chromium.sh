#!/bin/sh
# The browser tests need Chromium; install Debian's when it is missing and we may.
set -eu
if command -v chromium >/dev/null 2>&1; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Chromium is missing: installing Debian's package."
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
    exit 0
fi
echo "The browser tests need Chromium: install the Debian package 'chromium' (apt-get install chromium) and run make test again." >&2
exit 1
