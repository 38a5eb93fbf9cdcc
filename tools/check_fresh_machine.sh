#!/bin/bash
# Proves the quick start on a machine that has nothing: a minimal Debian 12 in a folder, into which the committed tree
# is cloned, where ./run installs, builds, starts and answers, and where ./test can run.
#
# Usage (as root): tools/check_fresh_machine.sh [--test | --test-quick] [--sources FILE] [--root FOLDER] [--keep]
#
#   --test, --test-quick   run ./test, or ./test --quick, in it as well
#   --sources FILE         apt sources for Debian 12; without it, those of this machine that name bookworm
#   --root FOLDER          use the system in FOLDER, made there when it is absent, and leave it there
#   --keep                 leave the system in its folder at the end
#
# Needs mmdebstrap, git, iproute2 and util-linux. How apt, npm and certificates are set up here is handed to the new
# system when it runs; nothing of it is written into the tree.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

test_arguments='' sources='' root='' keep=''
while [ $# -gt 0 ]; do
  case $1 in
    --test) test_arguments=full ;;
    --test-quick) test_arguments=--quick ;;
    --sources) sources=${2:?}; shift ;;
    --root) root=${2:?}; keep=yes; shift ;;
    --keep) keep=yes ;;
    *) sed -n '5,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
[ "$(id -u)" -eq 0 ] || { echo "check_fresh_machine: only root can make a system in a folder" >&2; exit 1; }

scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/kvferry-fresh.XXXXXX")
root=${root:-$scratch/root}
# Mounts live in a namespace of their own (see enter), so removing the folder cannot reach beyond it.
trap '[ -n "$keep" ] || rm -rf --one-file-system "$root"; rm -rf "$scratch"' EXIT

say() { echo "== $*"; }

find_sources() {
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    if [ -f "$file" ] && grep -v '^[[:space:]]*#' "$file" | grep -q '\bbookworm\b'; then echo "$file"; fi
  done
}

make_system() {
  # How this machine reaches its sources: proxies, certificates, checks of dates. Not its hooks and cleaners.
  apt-config dump | grep -E '^Acquire::(https?::|Check-|Retries|ForceIPv)' >"$scratch/apt.conf" || true
  local from=()
  if [ -n "$sources" ]; then from=("$sources"); else mapfile -t from < <(find_sources); fi
  [ ${#from[@]} -gt 0 ] || { echo "check_fresh_machine: no apt sources for bookworm here; give --sources" >&2; exit 1; }
  mmdebstrap --quiet --variant=minbase --mode=root --aptopt="$scratch/apt.conf" bookworm "$root" "${from[@]}"
  cp "$scratch/apt.conf" "$root/etc/apt/apt.conf.d/90machine"
}

hand_over() {
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
  mkdir -p "$root/etc/ssl/certs" "$root/usr/local/share/ca-certificates"
  if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
    cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
  fi
  local bundle=/etc/ssl/certs/ca-certificates.crt registry=''
  if [ -f $bundle ]; then
    cp $bundle "$root/etc/ssl/machine-certificates.crt"
    echo "cafile=/etc/ssl/machine-certificates.crt" >"$root/root/.npmrc"
    registry=$(npm config get registry 2>/dev/null || true)
    [ -z "$registry" ] || echo "registry=$registry" >>"$root/root/.npmrc"
  fi
}

# enter COMMAND...: runs it inside, with the kernel's file systems mounted. ENTER_NET=none cuts it off the network and
# gives it a loopback of its own, so that port 11211 is free whatever runs here.
enter() {
  local net=()
  [ "${ENTER_NET-}" = none ] && net=(--net)
  # shellcheck disable=SC2016  # Expanded by the inner shell.
  unshare --mount --pid --fork --kill-child "${net[@]}" bash -c '
    set -e
    root=$1 net=$2; shift 2
    [ "$net" != none ] || ip link set lo up
    mount --make-rprivate /
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 LC_ALL=C.UTF-8 \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
      ${no_proxy:+"no_proxy=$no_proxy"} "$@"
  ' bash "$root" "${ENTER_NET-}" "$@"
}

if [ ! -d "$root/etc" ]; then
  say "making a minimal Debian 12 in $root"
  make_system
fi
hand_over

say "cloning the committed tree"
rm -rf --one-file-system "$root/kvferry"
git -c safe.directory="$here" clone -q --no-hardlinks "$here" "$root/kvferry"

say "./run --version: installs and builds"
begin=$SECONDS
enter /kvferry/run --version
echo "took $((SECONDS - begin)) s"

say "./run, then a round trip on 127.0.0.1:11211"
# shellcheck disable=SC2016  # Expanded inside.
ENTER_NET=none enter /bin/bash -c '
  /kvferry/run & program=$!
  for _ in $(seq 300); do
    if nc -z 127.0.0.1 11211; then break; fi
    kill -0 $program || exit 1
    sleep 0.1
  done
  got=$(printf "set a 0 0 1\r\nx\r\nget a\r\nquit\r\n" | timeout 10 nc 127.0.0.1 11211 | tr -d "\r")
  kill $program; wait $program; status=$?
  echo "$got"
  [ "$got" = "STORED
VALUE a 0 1
x
END" ] || { echo "wrong answer"; exit 1; }
  [ $status -eq 0 ] || { echo "SIGTERM ended kvferry with status $status"; exit 1; }
'

if [ -n "$test_arguments" ]; then
  arguments=()
  [ "$test_arguments" = full ] || arguments=("$test_arguments")
  say "./test ${arguments[*]}"
  enter /bin/bash -c 'cd /kvferry && exec ./test "$@"' bash "${arguments[@]}"
fi
say "passed"
