#!/bin/bash
# check_service.sh BUILD: installs BUILD into a bare Debian 12 made by debootstrap, boots that with systemd-nspawn and runs inside.sh
# there. It needs root, the packages debootstrap and systemd-container, and a Debian mirror; where one of these is missing it says so and
# exits with 77 (skipped). Three brokers take part where this machine has a ZooKeeper server, whose Java it lends. About four minutes. Nothing stays: the machine ends with its nspawn, its folder is removed.
set -euo pipefail
build=$1
here=$(cd -- "$(dirname -- "$0")" && pwd)

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}
[ "$(id -u)" -eq 0 ] || skip "booting a machine needs root"
for program in debootstrap systemd-nspawn; do
  command -v "$program" >/dev/null || skip "$program is missing (packages debootstrap and systemd-container)"
done

# Not below TMPDIR: the machine needs a file system that can hold device nodes and be booted from.
scratch=$(mktemp -d "${MQ_MACHINES:-/var/tmp}/mq-service.XXXXXX")
machine=$scratch/machine
nspawn=''
# The power goes: process 1 of the machine is killed, and with it every process there.
power_off() {
  local child children=()
  [ -n "$nspawn" ] || return 0
  # The list has no newline at its end, which read reports as a failure.
  read -ra children <"/proc/$nspawn/task/$nspawn/children" || true
  for child in "${children[@]}"; do kill -KILL "$child" 2>/dev/null || true; done
  kill -KILL "$nspawn" 2>/dev/null || true
  wait "$nspawn" 2>/dev/null || true
  nspawn=''
}
# What inside.sh has left of the boot before.
expect_success() {
  local status
  status=$(cat "$machine/opt/check/status" 2>/dev/null || echo "none (no end within 300 s)")
  [ "$status" = 0 ] && return
  echo "inside.sh $1: exit $status"
  exit 1
}
# --one-file-system keeps rm out of anything that is still mounted below.
cleanup() {
  power_off
  rm -rf --one-file-system -- "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# The shared libraries that the programs load, as Debian packages: what a package of mq would depend on.
runtime_packages() {
  local library
  ldd "$build/bin/mqbroker" "$build/bin/mqctl" | awk '$3 ~ /^\// {print $3}' | sort -u | while read -r library; do
    dpkg-query -S "$(readlink -f "$library")" 2>/dev/null || dpkg-query -S "$library" 2>/dev/null || true
  done | cut -d: -f1 | sort -u
}

echo "-- a bare Debian 12"
packages=$(runtime_packages | tr '\n' ',')
timeout 600 debootstrap --variant=minbase --include="systemd,systemd-sysv,dbus,procps,$packages" bookworm "$machine" >"$scratch/debootstrap.log" 2>&1 || {
  if grep -qE 'Failed getting release file|Invalid Release|Could not|cannot be|mknod|unshare|mount:' "$scratch/debootstrap.log"; then
    skip "debootstrap: $(grep -m1 -E '^E:|mknod|mount:' "$scratch/debootstrap.log")"
  fi
  tail -20 "$scratch/debootstrap.log"
  exit 1
}
DESTDIR=$machine cmake --install "$build" --prefix /usr >"$scratch/install.log" 2>&1 || {
  tail -20 "$scratch/install.log"
  exit 1
}

# boot ROUND: boots the machine; a unit in it runs inside.sh ROUND and leaves its exit code.
mkdir -p "$machine/opt/check" "$machine/etc/systemd/system/multi-user.target.wants" "$machine/var/log/journal"
install -m 0755 "$here/inside.sh" "$machine/opt/check/"
cat >"$machine/etc/systemd/system/check.service" <<'UNIT'
[Unit]
After=basic.target
[Service]
Type=exec
ExecStart=/bin/bash -c '/opt/check/inside.sh $(cat /opt/check/round) >/opt/check/out 2>&1; echo $? >/opt/check/status'
[Install]
WantedBy=multi-user.target
UNIT
ln -s ../check.service "$machine/etc/systemd/system/multi-user.target.wants/check.service"

# Java and the ZooKeeper server of this machine, for one that has neither.
zookeeper_binds() {
  local folder
  for folder in /usr/lib/jvm /usr/share/java /etc/java-*-openjdk; do
    if [ -d "$folder" ]; then echo "--bind-ro=$folder"; fi
  done
}
has_zookeeper() { command -v java >/dev/null && [ -e /usr/share/java/zookeeper.jar ]; }
readarray -t binds < <(if has_zookeeper; then zookeeper_binds; fi)

boot() {
  local waited=0
  echo "-- booting: inside.sh $1"
  echo "$1" >"$machine/opt/check/round"
  rm -f "$machine/opt/check/status"
  systemd-nspawn --quiet --register=no --keep-unit --private-network "${binds[@]}" --boot -D "$machine" --console=pipe </dev/null >"$scratch/console" 2>&1 &
  nspawn=$!
  for ((waited = 0; waited < 300; waited++)); do
    if [ -s "$machine/opt/check/status" ] || ! kill -0 "$nspawn" 2>/dev/null; then break; fi
    sleep 1
  done
  cat "$machine/opt/check/out" 2>/dev/null || true
}

boot first
if [ ! -e "$machine/opt/check/out" ]; then
  power_off
  skip "systemd-nspawn cannot boot a machine here: $(tail -1 "$scratch/console")"
fi
power_off
expect_success first
boot second
power_off
expect_success second
if has_zookeeper; then
  readlink -f "$(command -v java)" >"$machine/opt/check/java"
  boot three
  power_off
  expect_success three
else
  echo "-- without three brokers: no java or no zookeeper.jar here"
fi
echo "mqbroker.service: as promised, from a bare machine to a power cut"
