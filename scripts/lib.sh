# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # variables that seem unused here are used by the scripts that source this file
# Shared functions of the scripts: missing packages, progress, log files. Sourced, never executed.

set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly repository
cd "$repository"

# Exit codes of sysexits(3).
readonly EX_USAGE=64 EX_UNAVAILABLE=69

# The packages that a build needs in addition to Swift. CI uses this list.
readonly build_packages=(
  ca-certificates git pkg-config g++ libc6-dev
  libssl-dev librnp-dev libcurl4-openssl-dev libsqlite3-dev libgpiod-dev libusb-1.0-0-dev libmosquitto-dev
  libtomlplusplus-dev libfido2-dev libpcsclite-dev libpq-dev zlib1g-dev
  libxml2 # swift.org's compiler links it
)
readonly swift_minimum=6.2
# In bytes: 18 MiB for a program of the device, stripped.
# shellcheck disable=SC2034 # other scripts use it
readonly largest_device_program=$((18 << 20))

# Color only on a terminal, and not if the user disabled it (https://no-color.org).
if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' yellow=$'\e[33m' plain=$'\e[0m'
else
  bold='' dim='' green='' red='' yellow='' plain=''
fi
readonly bold dim green red yellow plain

fail() {
  local code=$1
  shift
  printf '%s\n' "${0##*/}: $*" >&2
  exit "$code"
}

# Formats 75 as 1:15.
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# Reports every second on a terminal, otherwise every minute, how long TITLE has taken and the last line of LOG. Runs in
# the background; ends with the script that started it.
follow_progress() {
  local title=$1 log=$2 began=$SECONDS width=80 line elapsed step=1 sleeper=''
  [[ -t 1 ]] || step=60
  # A `sleep` that outlives the loop would keep locks, and pipes that another process reads to their end.
  trap 'kill "$sleeper" 2>/dev/null || true; exit 0' TERM
  while
    sleep "$step" >/dev/null 2>&1 &
    sleeper=$!
    wait "$sleeper" && kill -0 $$ 2>/dev/null
  do
    elapsed=$(clock $((SECONDS - began)))
    # Compilers print "[12/345] Compiling …"; only the last such line matters.
    line=$(tail -c 4096 "$log" | tr '\r' '\n' | grep -v '^[[:space:]]*$' | tail -n 1 | tr -cd '[:print:]') || line=''
    if [[ -t 1 ]]; then
      width=$(stty size 2>/dev/null </dev/tty | cut -d ' ' -f 2) || width=80
      line="  $title $elapsed  $line"
      printf '\r\e[K%s' "${line:0:$((${width:-80} > 20 ? ${width:-80} - 1 : 79))}"
    else
      printf '  %s %s  %s\n' "$title" "$elapsed" "$line"
    fi
  done
}

# seconds_left MOST: the time until DEADLINE, in seconds of date +%s, if the caller set one.
seconds_left() {
  local left=$((${DEADLINE:-0} > 0 ? DEADLINE - $(date +%s) : $1))
  printf '%d' $((left < 1 ? 1 : left < $1 ? left : $1))
}

# with_progress TITLE LOG COMMAND…: runs the command with its output in LOG; if it fails, prints its errors and the end
# of LOG.
with_progress() {
  local title=$1 log=$2 began=$SECONDS status=0 ticker
  shift 2
  follow_progress "$title" "$log" &
  ticker=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  # `wait` prevents a message of the shell about the terminated process.
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  if [[ -t 1 ]]; then printf '\r\e[K'; fi
  if ((status == 0)); then
    printf '  %s%s%s (%s)\n' "$green" "$title" "$plain" "$(clock $((SECONDS - began)))"
  else
    printf '  %s%s failed%s after %s\n' "$red" "$title" "$plain" "$(clock $((SECONDS - began)))"
    {
      tail -n 20 "$log"
      # Compiler errors are in the middle of the log, and its last lines are often unrelated.
      grep --max-count=20 'error:' "$log" || true
    } >&2
    printf 'The whole output is in %s\n' "$log" >&2
  fi
  return "$status"
}

is_installed() { [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# mmdebstrap(1) mounts /dev and /sys in the directory that it makes. In a mount namespace of its own they are gone with
# it, also if it is killed: what removes the directory then must not reach them.
mmdebstrap() {
  if ((EUID == 0)); then unshare --mount --propagation private mmdebstrap "$@"; else command mmdebstrap "$@"; fi
}

# need_packages LOG PACKAGE…: installs missing Debian packages, as root or through sudo. Waits for other installations,
# of these scripts or of the system, for ten minutes each.
need_packages() {
  local log=$1 package missing=() as_root=()
  shift
  command -v dpkg-query >/dev/null ||
    fail "$EX_UNAVAILABLE" "this is not Debian or a derivative: install the equivalent of these packages: $*"
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then return; fi
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      fail "$EX_UNAVAILABLE" "needs root or sudo to install: apt-get install ${missing[*]}"
    # Ask for the password here, while the terminal is available.
    sudo -v || fail "$EX_UNAVAILABLE" "needs root or sudo to install: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  printf '  missing packages: %s\n' "${missing[*]}"
  # Any file can be locked. apt-get has no option to wait for the lock of its lists. Without --close, a service that a
  # package starts would keep the lock.
  local one_at_a_time=("${as_root[@]}" flock --close --timeout 600 /usr/bin/apt-get env DEBIAN_FRONTEND=noninteractive)
  with_progress "looking for packages" "$log" "${one_at_a_time[@]}" apt-get update ||
    fail "$EX_UNAVAILABLE" "apt-get update failed"
  with_progress "installing packages" "$log" "${one_at_a_time[@]}" \
    apt-get --option DPkg::Lock::Timeout=600 install --yes --no-install-recommends "${missing[@]}" ||
    fail "$EX_UNAVAILABLE" "apt-get install failed"
}

need_swift() {
  local version hint="Swift $swift_minimum or newer is needed. Get it from https://www.swift.org/install/linux/, or \
Debian's package swiftlang where that is new enough (apt-cache policy swiftlang)."
  command -v swift >/dev/null || fail "$EX_UNAVAILABLE" "there is no swift in PATH. $hint"
  version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9][0-9.]*\).*/\1/p') || version=''
  [[ -n $version ]] || fail "$EX_UNAVAILABLE" "$(command -v swift) does not run. $hint"
  dpkg --compare-versions "$version" ge "$swift_minimum" ||
    fail "$EX_UNAVAILABLE" "$(command -v swift) is version $version. $hint"
}

# The directory of the toolchain, which has usr/bin/swift. The command in PATH may be another file: a link to a program
# that starts the chosen toolchain (swiftly), or to a directory that is arranged in another way (Debian's swiftlang).
toolchain_directory() {
  local library toolchain=''
  library=$(swift -print-target-info 2>/dev/null | sed -n 's/^ *"runtimeResourcePath": "\(.*\)".*/\1/p') || library=''
  if [[ $library == */usr/lib/swift ]]; then toolchain=${library%/usr/lib/swift}; fi
  [[ -n $toolchain && -x $toolchain/usr/bin/swift ]] ||
    fail "$EX_UNAVAILABLE" "needs a toolchain in a directory of its own, with usr/bin/swift and usr/lib/swift, as that of \
https://www.swift.org/install/linux/: the library of $(command -v swift) is in ${library:-an unknown directory}"
  printf '%s' "$toolchain"
}

# The number of concurrent compilers: as many as there are cores, but at most one per GiB of memory, so that a small
# board does not run out of memory.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemTotal:/ { print int($2 / 1048576 + 0.5) }' /proc/meminfo)
  printf '%d' $((memory < 1 ? 1 : memory < cores ? memory : cores))
}

# Options of all debug builds, which then share one result. Others than these are in scripts/fuzz and scripts/package.
read -ra debug_options <<<"${DEBUG_BUILD_OPTIONS:-}"
readonly debug_options

# Builds all programs and tests. Tests of XCTest, of which there are none, need not be found.
test_build=(swift build "${debug_options[@]}" --jobs "$(build_jobs)" --build-tests --disable-xctest)
readonly test_build

# Options of the release builds that are installed or measured. LLD makes smaller programs: no symbols for libraries to
# find, compact relocations (glibc 2.36), equal functions once (neither Swift nor these programs compare the addresses
# of functions), no functions that are not used, no tables for C++ exceptions. Immediate binding makes the table of
# addresses read-only. Caches of generic types are made when they are needed: their pages cannot be reclaimed.
readonly release_options=(
  -c release --static-swift-stdlib -Xswiftc -use-ld=lld
  -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now -Xlinker --no-export-dynamic -Xlinker -z
  -Xlinker pack-relative-relocs -Xlinker --icf=all -Xlinker packaging/no-unwinding-tables.ld
  -Xswiftc -Xfrontend -Xswiftc -function-sections
  -Xswiftc -Xfrontend -Xswiftc -disable-preallocated-instantiation-caches
)

# The build directory that `swift build` uses; SWIFTPM_BUILD_DIR is SwiftPM's own variable.
build_directory=$(realpath --canonicalize-missing "${SWIFTPM_BUILD_DIR:-$repository/.build}")
readonly build_directory

# forget_other_clones DIRECTORY: in a build directory shared by several clones of this repository, removes the products
# of other clones. Dependencies stay: they are in DIRECTORY, independent of the clone.
forget_other_clones() {
  local directory=$1 sources module
  if [[ $(cat "$directory/clone" 2>/dev/null) == "$repository" ]]; then return; fi
  for sources in "$directory"/*/*/*.build/sources; do
    if [[ ! -e $sources ]] || grep --quiet /checkouts/ "$sources"; then continue; fi
    module=$(basename "${sources%.build/sources}")
    rm -rf "${sources%/sources}" "$(dirname "${sources%/*}")/Modules/$module".*
  done
  mkdir -p "$directory"
  printf '%s' "$repository" >"$directory/clone"
}

# Copies the state of the debug build that has just ended: SwiftPM writes that of release builds into the same file, and
# they may run beside scripts/debian13.
keep_build_state() { cp "$build_directory/build.db" "$build_directory/tests.db"; }

# build_programs LOGS PRODUCT…: debug builds, which are faster than release builds and which the tests use, too. Sets
# `programs` to their directory. scripts/test, which has built them, gives it in BUILT_PROGRAMS.
build_programs() {
  local logs=$1 product
  programs=${BUILT_PROGRAMS:-}
  if [[ -n $programs ]]; then return; fi
  for product in "${@:2}"; do
    with_progress "building $product" "$logs/build-$product.log" \
      swift build "${debug_options[@]}" --jobs "$(build_jobs)" --product "$product" || exit 1
  done
  programs=$(swift build --show-bin-path)
}

# lines_importing MODULE FOLDER…: each line of Swift code that imports the module (a regular expression), with its file.
lines_importing() {
  grep --recursive --line-number --include='*.swift' --extended-regexp \
    "^[[:space:]]*([@_a-z()]+[[:space:]]+)*import[[:space:]]+([a-z]+[[:space:]]+)?($1)(\$|[.[:space:]])" "${@:2}"
}

# The directory of logs that outlive the script, for the analysis of failures.
log_directory() {
  local directory=$repository/.build/logs
  mkdir -p "$directory"
  printf '%s' "$directory"
}

# A library for LD_PRELOAD that sets back the wall clock of a program, for the bench.
wall_clock=$repository/.build/wall-clock.so
build_wall_clock() {
  mkdir -p "$repository/.build" &&
    clang -shared -fPIC -O1 -o "$wall_clock" "$repository/Sources/Programs/BenchPage/Clock/wall-clock.c"
}
