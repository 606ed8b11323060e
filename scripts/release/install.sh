#!/bin/sh
# Installs the version that this file lies in, as root and without network: /opt/tilld/VERSION, with the links
# /opt/tilld/current and /usr/bin/tilld. Other versions, the configuration and the data stay as they are, and nothing is
# started: a running daemon keeps its version until it is restarted. Run that of another version to go back to it.
set -eu
umask 022
export LC_ALL=C
from=$(dirname "$(readlink -f "$0")")

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$from/package.json")
[ -n "$version" ] || fail "$from/package.json names no version: unpack the archive again"
[ "$(id -u)" = 0 ] || fail "run it as root"
if [ "${1-}" != --packaged ] && [ "$(dpkg-query -W -f '${db:Status-Status}' tilld 2>/dev/null)" = installed ]; then
  fail "the Debian package tilld is installed: install the .deb of $version instead, or remove the package first"
fi
(cd "$from" && sha256sum --check --quiet --strict SHA256SUMS) || fail "files in $from are damaged: unpack the archive again"
command -v node >/dev/null || fail "there is no node in PATH: install Node 24"
(cd "$from" && node -e 'new (require("better-sqlite3"))(":memory:"); require("secp256k1")' 2>/dev/null) ||
  fail "this package is for Node @NODES@ on Linux @ARCH@ with glibc; $(command -v node) is $(node -p 'process.version + " on " + process.arch'). Install such a Node, or the package for this machine"
mkdir -p /opt/tilld 2>/dev/null && [ -w /opt/tilld ] || fail "/opt/tilld cannot be written: is /opt mounted read-only?"

getent group tilld >/dev/null || groupadd --system tilld
getent passwd tilld >/dev/null ||
  useradd --system --gid tilld --home-dir /var/lib/tilld --no-create-home --shell /usr/sbin/nologin tilld

place=/opt/tilld/$version
if [ "$from" != "$place" ] && ! cmp -s "$from/SHA256SUMS" "$place/SHA256SUMS"; then
  [ ! -e "$place" ] || fail "$place holds another build of $version: stop what runs from it, remove it, and run this again"
  rm -rf "$place.partial"
  if [ "${1-}" = --packaged ]; then
    # The package manager removes its own files with the next version; these stay for whom they run.
    cp -al "$from" "$place.partial"
  else
    cp -a "$from" "$place.partial"
  fi
  chown -R root:root "$place.partial"
  mv "$place.partial" "$place"
fi
ln -sfn "$version" /opt/tilld/current.partial
mv -T /opt/tilld/current.partial /opt/tilld/current

if [ "${1-}" != --packaged ]; then
  ln -sfn /opt/tilld/current/bin/tilld /usr/bin/tilld
  install -d -m 0750 -g tilld /etc/tilld
  [ -e /etc/tilld/tilld.toml ] || install -m 0640 -g tilld "$from/config/tilld.example.toml" /etc/tilld/tilld.toml
  for unit in "$from"/systemd/*.service "$from"/systemd/*.timer; do
    [ ! -e "$unit" ] || install -m 0644 "$unit" /etc/systemd/system/
  done
fi
[ ! -d /run/systemd/system ] || systemctl daemon-reload

echo "tilld $version is installed in $place."
[ -e /etc/tilld/master-key ] ||
  echo "It needs a master key: (umask 077; openssl rand -base64 32 > /etc/tilld/master-key)"
