# shellcheck shell=bash
# Installs what is missing, and nothing else. Never removes a package: if apt would have to, it is told in one line.

product_packages=(
  g++ cmake ninja-build pkg-config
  libboost1.81-dev libprotobuf-dev protobuf-compiler libspdlog-dev libfmt-dev libcli11-dev libtomlplusplus-dev
  nlohmann-json3-dev liblz4-dev libzstd-dev libisal-dev libxxhash-dev libsqlite3-dev libsystemd-dev
  libzookeeper-mt-dev
)
test_packages=(
  libgtest-dev libgmock-dev clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev llvm-14 mold ccache strace python3
  shellcheck systemd libfaketime libzookeeper-java default-jre-headless nftables iproute2
)
machine_packages=(debootstrap systemd-container)

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

unreachable='Could not resolve [^ ]+|Temporary failure resolving [^ ]+|Could not connect to [^ ]+|Unable to connect to [^ ]+|Failed to fetch [^ ]+|Network is unreachable|Connection timed out'

# Turns apt's reports (update, install) into one line. A source that could not be updated matters only if the install failed.
explain_apt() {
  local update=$1 install=$2 report
  shift 2
  if grep -qE 'remove is disabled|held broken packages|unmet dependencies' "$install"; then
    fail 23 "apt would have to remove or hold back installed packages and was not allowed to; see: apt-get install -s --no-install-recommends $*"
  fi
  for report in "$install" "$update"; do
    if grep -qE "$unreachable" "$report"; then
      fail 22 "no network to the Debian mirror ($(grep -m1 -oE "$unreachable" "$report" | head -1)); still missing: $*"
    fi
  done
  if grep -q 'Unable to locate package' "$install"; then
    fail 22 "the package sources of this system do not have $(grep -oE 'Unable to locate package [^ ]+' "$install" | awk '{printf "%s ", $NF}')(bookworm main is needed in /etc/apt/sources.list)"
  fi
  fail 22 "apt-get failed: $(grep -m1 '^E:' "$install" || tail -1 "$install")"
}

install_packages() {
  local reports
  local options=(-q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 -o Acquire::http::Timeout=30)
  reports=$(mktemp -d "${TMPDIR:-/tmp}/mq-apt.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf -- '$reports'" EXIT
  say "installing $# Debian packages: $*"
  export DEBIAN_FRONTEND=noninteractive
  apt-get "${options[@]}" update >"$reports/update" 2>&1 </dev/null || true
  apt-get "${options[@]}" install --no-install-recommends --no-remove "$@" >"$reports/install" 2>&1 </dev/null ||
    explain_apt "$reports/update" "$reports/install" "$@"
  rm -rf -- "$reports"
  trap - EXIT
}

dev_setup() {
  local what=${1:-test} wanted missing
  case $what in
    machine) wanted=("${machine_packages[@]}") ;; # for lane service
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
