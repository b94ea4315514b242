#!/bin/bash
# tools/dev setup must say in one line, with an exit code of its own, why it cannot go on. apt, dpkg and id are replaced by shims:
# nothing is installed.
set -euo pipefail
dev=$(cd -- "$(dirname -- "$0")/../.." && pwd)/tools/dev
scratch=$(mktemp -d "${TMPDIR:-/tmp}/mq-setup.XXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
mkdir "$scratch/bin"
failures=0

shim() { # NAME BODY
  printf '#!/bin/bash\n%s\n' "$2" >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}

# expect CODE WORDS COMMAND…: that exit code, and one line on stderr (beside progress lines) that holds the words
expect() {
  local code=$1 words=$2 status=0 lines
  shift 2
  PATH=$scratch/bin:$PATH MQ_OS_RELEASE=$scratch/os-release "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
  lines=$(grep -cv '^-- ' "$scratch/err" || true)
  if [ "$status" -ne "$code" ] || { [ -n "$words" ] && ! grep -qF -- "$words" "$scratch/err"; } || [ "$lines" -gt 1 ]; then
    printf 'wanted exit %s and one line with "%s", got exit %s:\n' "$code" "$words" "$status"
    cat "$scratch/out" "$scratch/err"
    failures=$((failures + 1))
  fi
}

debian() { printf 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n' >"$scratch/os-release"; }

# What dpkg-query -W lists: everything but the packages named.
packages_without() {
  # shellcheck disable=SC1091
  . "${dev%/*}/dev.d/setup.sh"
  # shellcheck disable=SC2154
  printf 'installed %s\n' "${product_packages[@]}" "${test_packages[@]}" | grep -vxF "$(printf 'installed %s\n' "$@")" >"$scratch/installed"
  shim dpkg-query "cat $scratch/installed"
}

shim id 'echo 0'
shim apt-get 'echo "apt-get was called: $*" >&2; exit 99'

debian
packages_without none
expect 0 '' "$dev" setup test # nothing missing: apt is not even asked
expect 2 "there is no command 'dance'" "$dev" dance

printf 'ID=ubuntu\nVERSION_ID="24.04"\n' >"$scratch/os-release"
expect 20 'this is ubuntu 24.04, not Debian 12' "$dev" setup product
rm "$scratch/os-release"
expect 20 'an unknown system' "$dev" setup product

debian
packages_without libisal-dev cmake
shim id 'echo 1000'
expect 21 'packages are missing (cmake libisal-dev); run once as root' "$dev" setup product

shim id 'echo 0'
no_network='echo "  Temporary failure resolving deb.debian.org"; echo "W: Some index files failed to download."; exit 0'
shim apt-get "case \" \$* \" in *' update '*) $no_network ;; esac; echo 'E: Unable to locate package cmake'; exit 100"
expect 22 'no network to the Debian mirror (Temporary failure resolving deb.debian.org)' "$dev" setup product
shim apt-get "case \" \$* \" in *' update '*) $no_network ;; esac; exit 0"
expect 0 '' "$dev" setup product # a source that nobody needs may be away

shim apt-get 'case " $* " in *" update "*) exit 0 ;; esac; echo "E: Unable to locate package libisal-dev"; exit 100'
expect 22 'do not have libisal-dev' "$dev" setup product

shim apt-get 'case " $* " in *" update "*) exit 0 ;; esac; echo "The following packages will be REMOVED:"; echo "E: Packages need to be removed but remove is disabled."; exit 100'
expect 23 'apt would have to remove or hold back installed packages' "$dev" setup product

printf 'installed libboost1.74-dev\n' >>"$scratch/installed"
expect 23 'libboost1.74-dev is installed and cannot stand beside libboost1.81-dev' "$dev" setup product

if [ "$failures" -gt 0 ]; then exit 1; fi
echo "tools/dev setup: every refusal is one line"
