#!/bin/bash
# check_install.sh BUILD SOURCE CXX: installs a built tree into a temporary prefix and looks at it as an operator and as a developer
# of an application would.
set -euo pipefail
build=$1 source=$2 cxx=$3
scratch=$(mktemp -d "${TMPDIR:-/tmp}/mq-install.XXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
prefix=$scratch/usr
failures=0

wrong() {
  printf 'install: %s\n' "$*"
  failures=$((failures + 1))
}

cmake --install "$build" --prefix "$prefix" >"$scratch/log" 2>&1 || {
  cat "$scratch/log"
  exit 1
}

for path in bin/mqbroker bin/mqctl include/mq/mq.h include/mq/errors.def lib/systemd/system/mqbroker.service lib/sysusers.d/mq.conf \
  lib/tmpfiles.d/mq.conf share/doc/mq/README.md share/doc/mq/LICENSE share/doc/mq/CHANGELOG.md share/doc/mq/examples/broker.toml \
  share/doc/mq/examples/cluster/broker.toml share/doc/mq/examples/zookeeper/zoo.cfg \
  share/bash-completion/completions/mqctl share/zsh/vendor-completions/_mqctl share/fish/vendor_completions.d/mqctl.fish; do
  if [ ! -s "$prefix/$path" ]; then wrong "$path is missing or empty"; fi
done
for what in 'libmqclient.so*' mqConfig.cmake mq-client.pc; do
  if [ -z "$(find "$prefix/lib" -name "$what" -print -quit)" ]; then wrong "no $what below lib"; fi
done
# What is installed must run where the build tree is gone.
if readelf -d "$prefix/bin/mqbroker" "$prefix/bin/mqctl" 2>/dev/null | grep -E 'R(UN)?PATH' | grep -qF "$build"; then
  wrong "an installed program still points into the build tree"
fi

"$prefix/bin/mqbroker" --version >"$scratch/version" || wrong "mqbroker --version: exit $?"
"$prefix/bin/mqctl" version >>"$scratch/version" || wrong "mqctl version: exit $?"

# The sample configuration, as it stands and with every commented key switched on, is a valid one.
sample=$prefix/share/doc/mq/examples/broker.toml
sed "s#/var/lib/mq#$scratch/data#" "$sample" >"$scratch/plain.toml"
sed -E "s@^# ?([a-z_.]+ = )@\1@; s@^# ?(\[)@\1@; s#/var/lib/mq#$scratch/data#" "$sample" >"$scratch/full.toml"
mkdir "$scratch/data"
for config in plain full; do
  "$prefix/bin/mqbroker" --check --config "$scratch/$config.toml" >"$scratch/check" 2>&1 || {
    wrong "mqbroker --check refuses the $config sample:"
    cat "$scratch/check"
  }
done

# The unit: systemd understands it, and its sandbox stays as tight as it was (100 = open, 14 = today).
unit=$prefix/lib/systemd/system/mqbroker.service
if grep -q '@' <(grep -E '^Exec|^Documentation' "$unit"); then wrong "the unit has unfilled places"; fi
systemd-analyze verify --man=no "$unit" >"$scratch/verify" 2>&1 || {
  wrong "systemd-analyze verify:"
  cat "$scratch/verify"
}
if [ -s "$scratch/verify" ] && grep -q 'mqbroker' "$scratch/verify"; then
  wrong "systemd-analyze verify has remarks:"
  cat "$scratch/verify"
fi
systemd-analyze security --offline=yes --no-pager --threshold=20 "$unit" >"$scratch/security" 2>&1 || {
  wrong "the sandbox of the unit is weaker than 2.0:"
  tail -3 "$scratch/security"
}
systemd-sysusers --dry-run "$prefix/lib/sysusers.d/mq.conf" >"$scratch/sysusers" 2>&1 || {
  wrong "systemd-sysusers:"
  cat "$scratch/sysusers"
}

# An application that knows nothing but the installed package.
if ! { cmake -S "$source/tests/install/consumer" -B "$scratch/consumer" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$scratch/consumer"; } >"$scratch/log" 2>&1; then
  wrong "a project using find_package(mq) does not build:"
  tail -20 "$scratch/log"
fi
# The same application by hand, with what pkg-config says. It is a build tool of the application's, so it may be missing here.
if command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix/lib" -name mq-client.pc)")
  export PKG_CONFIG_PATH
  read -ra flags <<<"$(pkg-config --cflags --libs mq-client)"
  libdir=$(pkg-config --variable=libdir mq-client)
  if ! { "$cxx" -std=c++20 -o "$scratch/by-hand" "$source/tests/install/consumer/main.cc" "${flags[@]}" &&
    LD_LIBRARY_PATH=$libdir "$scratch/by-hand"; } >"$scratch/log" 2>&1; then
    wrong "an application built with pkg-config mq-client does not work (${flags[*]}):"
    tail -20 "$scratch/log"
  fi
fi
# It meets an address where nobody listens, then a broker that the installed programs bring up.
application() {
  "$scratch/consumer/application" "$@" >"$scratch/out" 2>&1 || {
    wrong "the application failed (arguments: $*):"
    cat "$scratch/out"
  }
}
if [ -x "$scratch/consumer/application" ]; then
  application
  export HOME=$scratch XDG_STATE_HOME=$scratch/state
  trap '"$prefix/bin/mqctl" local down >/dev/null 2>&1 || true; rm -rf -- "$scratch"' EXIT
  if "$prefix/bin/mqctl" local up >"$scratch/up" 2>&1; then
    application "$(grep -m1 -oE '127\.0\.0\.1:[0-9]+' "$scratch/up")"
    "$prefix/bin/mqctl" local down >"$scratch/down" 2>&1 || wrong "mqctl local down: exit $?"
  else
    wrong "mqctl local up of the installed tree:"
    cat "$scratch/up"
  fi
fi

if [ "$failures" -gt 0 ]; then exit 1; fi
echo "installed tree: complete"
