#!/usr/bin/env bash
# Makes build/cxx-venv: a Python environment with the published C++ engine, the peer of the interop tests.
#
# Says on stderr what it does. Success: exit 0, and the last line of stdout is the path of the environment.
# Failure: exit 3, and the last line of stdout is the reason; the tests that need the engine are then skipped by that reason.
# Any number of callers may run it at once; a finished environment is used again. MOONPATH_INTEROP=off switches it off.
set -Eeuo pipefail

package=mooncake-transfer-engine-non-cuda
version=0.3.13.post1

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/build/cxx-venv
stamp=$venv/.ready # written last, so that a half-made environment is never taken for a finished one
log=$root/build/cxx-venv.log

say() { echo "interop/venv.sh: $*" >&2; }

give_up() {
  trap - ERR
  say "giving up: $*"
  echo "$*"
  exit 3
}
trap 'give_up "interop/venv.sh failed unexpectedly in line $LINENO; see build/cxx-venv.log"' ERR

logged() { "$@" >>"$log" 2>&1; }

apt_install() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "missing: $*; not installed, because that takes root and apt-get"
    return 1
  fi
  say "apt-get install $*"
  local get=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300)
  # Package lists may be absent or stale, so the first failure is answered with an update.
  logged "${get[@]}" install --no-install-recommends "$@" || {
    say "apt-get update"
    logged "${get[@]}" update && logged "${get[@]}" install --no-install-recommends "$@"
  }
}

# The wheel is built for CPython 3.10 to 3.13. Debian leaves ensurepip to the package python3-venv.
can_make_venv() {
  "$1" -c 'import sys, ctypes, ensurepip, venv; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

find_python() {
  local candidate
  for candidate in python3 /usr/bin/python3 python3.11 python3.12 python3.13 python3.10; do
    if command -v "$candidate" >/dev/null && can_make_venv "$candidate"; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

site() { echo "$venv"/lib/python3.*/site-packages/mooncake; }

# One line per shared library that the engine or its bench program wants and the system lacks.
missing_libraries() {
  local folder
  folder=$(site)
  ldd "$folder/engine.so" "$folder/transfer_engine_bench" 2>/dev/null | awk '/not found/ { print $1 }' | sort -u || true
}

debian_package_of() {
  case $1 in
    libibverbs.so.1) echo libibverbs1 ;;
    libnuma.so.1) echo libnuma1 ;;
    libcurl.so.4) echo libcurl4 ;;
    libstdc++.so.6) echo libstdc++6 ;;
    *) return 1 ;;
  esac
}

install_libraries() {
  local library name packages=()
  for library in $(missing_libraries); do
    name=$(debian_package_of "$library") ||
      give_up "the C++ engine needs $library; install the package that holds it, then run interop/venv.sh again"
    packages+=("$name")
  done
  [ ${#packages[@]} -eq 0 ] || apt_install "${packages[@]}" ||
    give_up "the C++ engine needs ${packages[*]}; run: apt-get install ${packages[*]}"
}

usable() {
  [ "$(cat "$stamp" 2>/dev/null)" = "$version" ] && "$venv/bin/python" -c 'import mooncake.engine' 2>/dev/null
}

make_venv() {
  local python
  : >"$log"
  python=$(find_python) || {
    apt_install python3 python3-venv ||
      give_up "no Python 3.10 to 3.13 with the venv module; run: apt-get install python3 python3-venv"
    python=$(find_python) || give_up "python3-venv is installed, and still no Python 3.10 to 3.13 can make an environment"
  }
  say "making ${venv#"$root"/} with $("$python" --version 2>&1)"
  rm -f "$stamp"
  logged "$python" -m venv --clear "$venv" || give_up "$python -m venv failed; see build/cxx-venv.log"
  say "pip install $package==$version (46 MB)"
  # Its Python dependencies serve other parts of the package than the engine.
  logged "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off --retries 2 \
    --no-deps --only-binary=:all: "$package==$version" ||
    give_up "pip could not install $package==$version: $(grep -a '^ERROR' "$log" | head -n 1)"
  echo "$version" >"$stamp"
}

mkdir -p "$root/build"
[ "${MOONPATH_INTEROP:-}" != off ] || give_up "switched off by MOONPATH_INTEROP=off"
command -v flock >/dev/null || give_up "flock is missing; run: apt-get install util-linux"
exec 9>"$root/build/cxx-venv.lock"
flock -w 1200 9 || give_up "another interop/venv.sh has been running for 20 minutes"
if ! usable; then
  # A finished environment may only lack a library here; anything else wrong with it is mended by a new one.
  if [ "$(cat "$stamp" 2>/dev/null)" = "$version" ]; then install_libraries; fi
  usable || { make_venv && install_libraries; }
  usable || {
    rm -f "$stamp"
    give_up "the C++ engine cannot be loaded: $("$venv/bin/python" -c 'import mooncake.engine' 2>&1 | tail -n 1)"
  }
  say "ready"
fi
echo "$venv"
