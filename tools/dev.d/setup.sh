# shellcheck shell=bash
# Installs what is missing, and nothing else. Never removes a package: if apt would have to, it is told in one line.

product_packages=(
  g++ cmake ninja-build pkg-config
  libboost1.81-dev libprotobuf-dev protobuf-compiler libspdlog-dev libfmt-dev libcli11-dev libtomlplusplus-dev
  nlohmann-json3-dev liblz4-dev libzstd-dev libisal-dev libxxhash-dev libsqlite3-dev libsystemd-dev
)
test_packages=(
  libgtest-dev libgmock-dev clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev llvm-14 mold ccache strace python3
  shellcheck systemd
)

# The packages of the arguments that are not installed, one a line.
missing_packages() {
  local installed package
  installed=" $(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null | awk '$1 == "installed" {print $2}' | tr '\n' ' ')"
  for package in "$@"; do
    case $installed in
      *" $package "*) ;;
      *) printf '%s\n' "$package" ;;
    esac
  done
}

os_release=${MQ_OS_RELEASE:-/etc/os-release}

require_debian_12() {
  local id='' version=''
  if [ -r "$os_release" ]; then
    id=$(sed -n 's/^ID=//p' "$os_release" | tr -d '"')
    version=$(sed -n 's/^VERSION_ID=//p' "$os_release" | tr -d '"')
  fi
  if [ "$id" != debian ] || [ "$version" != 12 ] || ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail 20 "this is ${id:-an unknown system} ${version}, not Debian 12; packages were not installed. With the libraries of README.md (Dependencies) in place: cmake --preset release && cmake --build --preset release"
  fi
}

# Turns apt's report into one line.
explain_apt() {
  local report=$1
  if grep -qE 'need to be removed but remove is disabled|Packages need to be removed|held broken packages|unmet dependencies' "$report"; then
    fail 23 "apt would have to remove installed packages and was not allowed to; see: apt-get install -s --no-install-recommends $2"
  elif grep -qE 'Could not resolve|Temporary failure resolving|Could not connect|Failed to fetch|Network is unreachable|Unable to connect|Connection timed out' "$report"; then
    fail 22 "no network to the Debian mirror ($(grep -m1 -oE 'Could not resolve [^ ]+|Temporary failure resolving [^ ]+|Could not connect to [^ ]+|Unable to connect to [^ ]+|Failed to fetch [^ ]+|Network is unreachable|Connection timed out' "$report")); still missing: $2"
  elif grep -qE 'Unable to locate package' "$report"; then
    fail 22 "this system's package sources do not have $(grep -m1 -oE 'Unable to locate package [^ ]+' "$report" | awk '{print $NF}'); bookworm main is needed in /etc/apt/sources.list"
  fi
  fail 22 "apt-get failed: $(grep -m1 '^E:' "$report" || tail -1 "$report")"
}

install_packages() {
  local report
  report=$(mktemp "${TMPDIR:-/tmp}/mq-apt.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -f '$report'" EXIT
  local options=(-q -y -o DPkg::Lock::Timeout=300 -o APT::Update::Error-Mode=any -o Acquire::Retries=2 -o Acquire::http::Timeout=30)
  say "installing $# Debian packages: $*"
  export DEBIAN_FRONTEND=noninteractive
  apt-get "${options[@]}" update >"$report" 2>&1 </dev/null || explain_apt "$report" "$*"
  apt-get "${options[@]}" install --no-install-recommends --no-remove "$@" >"$report" 2>&1 </dev/null || explain_apt "$report" "$*"
  rm -f "$report"
  trap - EXIT
}

dev_setup() {
  local what=${1:-test} wanted missing
  case $what in
    product) wanted=("${product_packages[@]}") ;;
    test) wanted=("${product_packages[@]}" "${test_packages[@]}") ;;
    *) fail 2 "setup takes 'product' or 'test', not '$what'" ;;
  esac
  require_debian_12
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  if [ ${#missing[@]} -eq 0 ]; then return 0; fi
  if [ "$(id -u)" -ne 0 ]; then
    fail 21 "packages are missing (${missing[*]}); run once as root: $here/dev setup $what"
  fi
  if [ "$(missing_packages libboost1.74-dev)" = "" ]; then
    fail 23 "libboost1.74-dev is installed and cannot stand beside libboost1.81-dev, which mq needs; nothing was changed. If nothing of yours needs it: apt-get install libboost1.81-dev"
  fi
  install_packages "${missing[@]}"
}
