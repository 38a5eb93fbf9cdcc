#!/bin/sh
# Installs the Debian packages of the named groups, and only what is missing.
#
# Usage: tools/install.sh GROUP...      groups: run build lint test
#
# Says nothing when all is there. Needs root or sudo only when something is missing.
set -eu

# What building and trying the program takes. netcat is for the quick start of README.md.
run="g++ cmake ninja-build pkg-config liburing-dev libssl-dev libxxhash-dev libyaml-dev libc-ares-dev libfmt-dev liblua5.4-dev
  netcat-openbsd"
# Unit tests and benchmarks; ccache and mold make rebuilding quick.
build="libgtest-dev libgmock-dev libbenchmark-dev ccache mold git python3 python3-pytest"
# Second compiler, sanitizer runtimes for fuzzing, formatter and linter, all of one version.
lint="clang-19 libclang-rt-19-dev clang-tidy-19 clang-format-19"
# Real servers and clients for the system tests.
test="memcached nutcracker libmemcached-tools python3-pymemcache python3-memcache python3-pylibmc python3-binary-memcached
  redis-server redis-tools python3-redis python3-hiredis ruby ruby-dalli ruby-redis php-cli php-memcached php-redis
  php-predis libhiredis-dev ca-certificates openssl procps util-linux"

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=
for group in "$@"; do
  case $group in
    run) packages=$run ;;
    build) packages=$build ;;
    lint) packages=$lint ;;
    test)
      packages=$test
      # Any Node.js with npm will do; Debian's is taken when there is none.
      command -v node >/dev/null 2>&1 || packages="$packages nodejs"
      command -v npm >/dev/null 2>&1 || packages="$packages npm"
      ;;
    *)
      echo "tools/install.sh: unknown group $group; groups are run, build, lint, test" >&2
      exit 2
      ;;
  esac
  for package in $packages; do
    is_installed "$package" || missing="$missing $package"
  done
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || {
    echo "kvferry needs these packages, and neither is this root nor is there sudo. As root:" >&2
    echo "  apt-get install --no-install-recommends$missing" >&2
    exit 1
  }
  as_root=sudo
fi

echo "Installing:$missing" >&2

# Debian starts a server when its package is installed. The tests start their own, and a memcached on its usual port
# would stand in kvferry's way, so services stay off during this installation (unless a policy is already in place).
policy=/usr/sbin/policy-rc.d
made_policy=
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
  $as_root chmod 755 $policy
  made_policy=yes
fi
remove_policy() {
  [ -z "$made_policy" ] || $as_root rm -f $policy
}
trap remove_policy EXIT
trap 'exit 130' INT TERM

apt_get() {
  # shellcheck disable=SC2086  # One word per package.
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 "$@" </dev/null >&2
}
# Lists may be absent on a fresh machine, or too old to name files that still exist.
if ! ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1; then
  apt_get update
fi
# shellcheck disable=SC2086
apt_get install --no-install-recommends $missing || {
  apt_get update
  apt_get install --no-install-recommends $missing
}
