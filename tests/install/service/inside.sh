#!/bin/bash
# Runs as root on a machine of its own (check_service.sh boots one; a throw-away virtual machine does as well) where systemd is process 1
# and mq is installed: starts, kills, misconfigures and stops mqbroker.service and looks at what an operator would see.
# inside.sh first: from the bare machine on. inside.sh second: after that machine lost its power. inside.sh three: three brokers there, each
# a copy of the unit with a configuration and a directory of its own, and a ZooKeeper server run by the Java that /opt/check/java names.
set -euo pipefail
failures=0
unit=mqbroker.service
config=/etc/mq/broker.toml
data=/var/lib/mq
export NO_COLOR=1

wrong() {
  printf 'WRONG: %s\n' "$*"
  failures=$((failures + 1))
}
step() { printf '\n== %s\n' "$*"; }
property() { systemctl show --value -p "$1" "$unit"; }
journal() { journalctl --no-pager -q -o cat -u "$unit" "$@"; }
ctl() { timeout 30 mqctl "$@" </dev/null; }

# until_true SECONDS COMMAND…
until_true() {
  local tries=$(($1 * 10))
  shift
  for ((; tries > 0; tries--)); do
    if "$@"; then return 0; fi
    sleep 0.1
  done
  return 1
}
has_state() { [ "$(property ActiveState)/$(property SubState)" = "$1" ]; }
has_other_pid() { [ "$(property MainPID)" != "$1" ] && has_state active/running; }
expect_property() { # NAME WANTED
  local have
  have=$(property "$1")
  if [ "$have" != "$2" ]; then wrong "$1 is '$have', not '$2'"; fi
}
expect_journal() { # WORDS: since the last mark
  journalctl --sync
  if ! journal --after-cursor="$cursor" | grep -qE -- "$1"; then
    wrong "the journal does not say '$1':"
    journal --after-cursor="$cursor" | tail -8
  fi
}
expect_silence() { # WORDS
  journalctl --sync
  if journal --after-cursor="$cursor" | grep -E -- "$1"; then wrong "the journal should not say '$1'"; fi
}
mark() {
  journalctl --sync
  cursor=$(journalctl --no-pager -q -n 1 -o cat --show-cursor | sed -n 's/^-- cursor: //p')
}
start() {
  mark
  timeout 60 systemctl start "$unit" || {
    wrong "systemctl start: exit $?"
    systemctl status --no-pager -l "$unit" || true
    journal -n 20
  }
}
# expect_records COUNT: so many are in the topic, each once
expect_records() {
  local have
  have=$(ctl consume service -o start -e -f '%v\n' | sort -u | wc -l)
  if [ "$have" -ne "$1" ]; then wrong "$have records are there, not $1"; fi
}
produce() { # FROM TO
  seq "$1" "$2" | sed 's/^/record /' | timeout 30 mqctl -q produce service || wrong "produce: exit $?"
}

first_start() {
  step "a machine that never had mq: user, folders, configuration"
  systemd-sysusers || wrong "systemd-sysusers: exit $?"
  systemd-tmpfiles --create mq.conf || wrong "systemd-tmpfiles: exit $?"
  id mq || wrong "no user mq"
  mark
  # Enabled before it has a configuration: refused, once.
  if timeout 60 systemctl start "$unit"; then wrong "the service started without a configuration"; fi
  expect_property ExecMainStatus 78
  expect_property NRestarts 0
  systemctl reset-failed "$unit"
  cp /usr/share/doc/mq/examples/broker.toml "$config"
  mqbroker --check --config "$config" >/tmp/check || wrong "mqbroker --check refuses the sample: exit $?"

  step "start: ready when systemctl start returns"
  systemctl enable "$unit"
  start
  expect_property ActiveState active
  expect_property SubState running
  if [[ "$(property StatusText)" != "serving 127.0.0.1:9500,"* ]]; then wrong "STATUS is '$(property StatusText)'"; fi
  systemctl status --no-pager -l -n 5 "$unit" || wrong "systemctl status: exit $?"
  expect_journal '^broker: mqbroker [0-9.]+ ready in [0-9]+ ms: broker 1 of cluster .*config /etc/mq/broker.toml, data /var/lib/mq'
  expect_silence 'runs as root|boot id'
  # A line of the broker is an entry with the priority of the line, without a second timestamp.
  if journal -p warning _COMM=mqbroker | grep ' ready in '; then wrong "an ordinary line has the priority of a warning"; fi
  if journal | grep -E '^(<[0-7]>|[0-9]{4}-[0-9]{2}-)'; then wrong "a journal entry has a prefix or a timestamp of its own"; fi
  mqctl status || wrong "mqctl status: exit $?"
}

limits_and_permissions() {
  step "limits and permissions"
  local pid
  pid=$(property MainPID)
  ps -o user:12,pid,nlwp,args -p "$pid" || true
  if [ "$(stat -c %U "/proc/$pid")" != mq ]; then wrong "the broker runs as $(stat -c %U "/proc/$pid")"; fi
  # systemd lowers what the machine does not allow.
  local files=131072
  if [ "$(ulimit -Hn)" != unlimited ] && [ "$(ulimit -Hn)" -lt "$files" ]; then files=$(ulimit -Hn); fi
  if ! grep -qE "^Max open files +$files +$files" "/proc/$pid/limits"; then wrong "$(grep 'open files' "/proc/$pid/limits")"; fi
  if ! grep -q '^CapEff:[[:space:]]*0*$' "/proc/$pid/status"; then wrong "$(grep CapEff "/proc/$pid/status")"; fi
  if ! grep -q '^Seccomp:[[:space:]]*2$' "/proc/$pid/status"; then wrong "no system call filter: $(grep Seccomp "/proc/$pid/status")"; fi
  find "$data" -printf '%M %u:%g %P\n' | sort -k3
  if [ -n "$(find "$data" ! -user mq -o ! -group mq)" ]; then wrong "files below $data do not belong to mq"; fi
  if [ -n "$(find "$data" -type d ! -perm 0700 -o -type f ! -perm 0600)" ]; then wrong "modes below $data are not 0700 and 0600"; fi
  systemd-analyze security --no-pager --threshold=20 "$unit" | tail -1 || wrong "systemd-analyze security: weaker than 2.0"
}

second_instance() {
  step "a second broker on the same data is refused and disturbs nobody"
  local status=0 pid
  pid=$(property MainPID)
  timeout 30 setpriv --reuid=mq --regid=mq --clear-groups mqbroker --config "$config" --set listener.clients.bind=127.0.0.1:9600 || status=$?
  echo "exit $status"
  case $status in 0 | 124 | 13?) wrong "the second broker: exit $status" ;; esac
  expect_property MainPID "$pid"
  ctl status >/dev/null || wrong "mqctl status: exit $?"
}

killed() {
  step "kill -9: restarted by itself, nothing lost, not taken for a power cut"
  kill_and true
  expect_property NRestarts 1
  expect_silence 'went down|may be missing'
  expect_records 2000
  produce 2001 3000
  expect_records 3000
}

bad_configuration() {
  step "a configuration that cannot work: refused once, with its line"
  timeout 60 systemctl stop "$unit" || wrong "systemctl stop: exit $?"
  cp "$config" /tmp/good.toml
  printf '\n[broker2]\nid = 2\n' >>"$config"
  mark
  if timeout 60 systemctl start "$unit"; then wrong "the service started"; fi
  sleep 4 # longer than RestartSec
  expect_property ActiveState failed
  expect_property ExecMainStatus 78
  expect_property NRestarts 0
  expect_journal 'broker.toml:[0-9]+:[0-9]+'
  if ! journal -p err _COMM=mqbroker | grep -q 'broker.toml:'; then wrong "the mistake in the configuration is no error in the journal"; fi
  cp /tmp/good.toml "$config"
  systemctl reset-failed "$unit"
}

clean_stop() {
  step "a clean stop leaves the clean marker; the next start reads no log"
  start
  mark
  timeout 60 systemctl stop "$unit" || wrong "systemctl stop: exit $?"
  expect_property ActiveState inactive
  expect_property Result success
  expect_property ExecMainStatus 0
  expect_journal '^broker: stopped$'
  [ -s "$data/clean" ] || wrong "no clean marker: $(ls "$data")"
  start
  expect_silence 'bytes of log read|may be missing'
  expect_records 3000
  if [ -e "$data/clean" ]; then wrong "the clean marker stays while the broker runs"; fi
}

# kill_and COMMAND…: which is done before the unit starts again by itself
kill_and() {
  local pid
  pid=$(property MainPID)
  mark
  kill -9 "$pid"
  "$@" || wrong "$*: exit $?"
  until_true 30 has_other_pid "$pid" || wrong "not restarted: $(property ActiveState)/$(property SubState)"
  expect_journal '^broker: mqbroker .* ready in '
}
mount_anew() { until_true 1 umount /srv/mq && mount --bind /srv/disk /srv/mq; }

unmounted() {
  if [ ! -s /run/mqbroker/mounts ]; then
    echo "this kernel does not number mounts"
    return
  fi
  step "a disk that was unmounted under a killed broker is told from one that was not"
  kill_and true
  expect_silence 'may be missing'
  kill_and mount_anew
  expect_journal 'may be missing'
}

another_disk() {
  step "a disk elsewhere needs its drop-in, and the refusal says where it is missing"
  timeout 60 systemctl stop "$unit" || wrong "systemctl stop: exit $?"
  cp "$config" /tmp/good.toml
  install -d -o mq -g mq -m 0700 /srv/disk /srv/mq
  mount --bind /srv/disk /srv/mq
  sed -i 's#^path = "/var/lib/mq"#path = "/srv/mq"#' "$config"
  mark
  if timeout 60 systemctl start "$unit"; then wrong "the service wrote outside its sandbox"; fi
  timeout 60 systemctl stop "$unit"
  expect_journal '/srv/mq'
  systemctl reset-failed "$unit"
  mkdir -p "/etc/systemd/system/$unit.d"
  printf '[Service]\nReadWritePaths=/srv/mq\n' >"/etc/systemd/system/$unit.d/disks.conf"
  systemctl daemon-reload
  start
  ctl topic create elsewhere >/dev/null || wrong "topic create: exit $?"
  unmounted
  timeout 60 systemctl stop "$unit" || wrong "systemctl stop: exit $?"
  umount /srv/mq
  rm "/etc/systemd/system/$unit.d/disks.conf"
  systemctl daemon-reload
  cp /tmp/good.toml "$config"
}

first() {
  first_start
  step "records through the service"
  ctl topic create service --partitions 2 || wrong "topic create: exit $?"
  produce 1 2000
  expect_records 2000
  limits_and_permissions
  second_instance
  killed
  bad_configuration
  clean_stop
  another_disk
  start # and the power goes while it runs
  produce 3001 4000
}

second() {
  step "after a power cut: started at boot, recovered, and it says that this was another boot"
  cursor=''
  until_true 60 has_state active/running || wrong "not started at boot: $(property ActiveState)/$(property SubState)"
  journalctl --sync
  journalctl --no-pager -q -b -o cat -u "$unit" | head -8
  journalctl --no-pager -q -b -o cat -u "$unit" | grep -q 'may be missing' || wrong "the power cut was not noticed"
  expect_records 4000
  mark
  timeout 60 systemctl stop "$unit" || wrong "systemctl stop: exit $?"
  expect_journal '^broker: stopped$'
}

# Three brokers

units=(mqbroker-1 mqbroker-2 mqbroker-3)
brokers=127.0.0.1:9501,127.0.0.1:9502,127.0.0.1:9503
all_run() { systemctl is-active --quiet "${units[@]}"; }
all_well() { timeout 20 mqctl -b "$brokers" health </dev/null >/dev/null 2>&1; }

start_zookeeper() {
  install -d /var/lib/zookeeper
  printf 'tickTime=500\nadmin.enableServer=false\ndataDir=/var/lib/zookeeper\nclientPortAddress=127.0.0.1\nclientPort=2181\n' >/etc/zoo.cfg
  systemd-run --quiet --unit=zookeeper "$(cat /opt/check/java)" -Xmx96m -XX:+UseSerialGC -cp \
    /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar org.apache.zookeeper.server.quorum.QuorumPeerMain /etc/zoo.cfg
}

make_units() {
  local number
  for number in 1 2 3; do
    sed -e "s/^id = 1 .*/id = $number/" -e "s#^path = .*#path = \"/var/lib/mq-$number\"#" -e "s/^bind = .*/bind = \"127.0.0.1:950$number\"/" \
      -e "s/^advertised = .*/advertised = \"127.0.0.1:950$number\"/" -e 's#^metadata = .*#metadata = "zookeeper://127.0.0.1:2181/mq"#' \
      /usr/share/doc/mq/examples/cluster/broker.toml >"/etc/mq/broker-$number.toml"
    sed -e "s#/etc/mq/broker.toml#/etc/mq/broker-$number.toml#" -e "s#^StateDirectory=mq\$#StateDirectory=mq-$number#" \
      "$(property FragmentPath)" >"/etc/systemd/system/mqbroker-$number.service"
  done
  systemctl daemon-reload
}

# Numbered lines, a batch after the other; those of each batch that was acknowledged are in /tmp/acknowledged.
write_on() {
  local number=0
  while [ ! -e /tmp/enough ]; do
    seq "$number" $((number + 499)) | sed 's/^/record /' >"/tmp/batch-$1"
    if timeout 60 mqctl -q -b "$brokers" --timeout 20s produce "$1" <"/tmp/batch-$1" 2>/dev/null; then cat "/tmp/batch-$1" >>"/tmp/acknowledged-$1"; fi
    number=$((number + 500))
  done
}

# kill_all ORDER…: all at once; they come back in that order, or as systemd brings them back.
kill_all() {
  local number
  step "kill -9 of all three units at once; they come back: $*"
  systemctl reset-failed "${units[@]}"
  systemctl kill --signal=KILL "${units[@]}"
  if [ "$1" != "by themselves" ]; then
    for number in "$@"; do systemctl start --no-block "mqbroker-$number"; done
  fi
  until_true 60 all_run || wrong "not running again: $(systemctl is-active "${units[@]}" | tr '\n' ' ')"
  until_true 60 all_well || {
    wrong "not well again"
    timeout 20 mqctl -b "$brokers" health </dev/null || true
  }
  sleep 2 # of writing
}

expect_all_of() { # TOPIC
  local lost
  timeout 100 mqctl -b "$brokers" consume "$1" -o start -e -f '%v\n' </dev/null >/tmp/read || wrong "consume $1: exit $?"
  sort /tmp/read >/tmp/read.sorted
  lost=$(sort "/tmp/acknowledged-$1" | comm -23 - /tmp/read.sorted | wc -l)
  echo "$1: $(wc -l <"/tmp/acknowledged-$1") acknowledged, $(wc -l </tmp/read) there"
  if [ "$lost" -ne 0 ]; then wrong "$lost acknowledged records of $1 are lost"; fi
  if [ -n "$(uniq -d /tmp/read.sorted)" ]; then wrong "records of $1 are there twice"; fi
  if [ "$(wc -l <"/tmp/acknowledged-$1")" -lt 5000 ]; then wrong "too little was written to $1"; fi
}

three() {
  local order
  systemctl disable --now "$unit" || wrong "systemctl disable: exit $?"
  start_zookeeper
  make_units
  step "three brokers, each in its unit"
  timeout 100 systemctl start "${units[@]}" || {
    wrong "systemctl start: exit $?"
    journalctl --no-pager -q -n 30 -u 'mqbroker-*' -u zookeeper
  }
  ctl -b "$brokers" topic create disk --partitions 3 --replicas 3 -c durability=disk || wrong "topic create: exit $?"
  ctl -b "$brokers" topic create memory --partitions 3 --replicas 3 -c durability=memory || wrong "topic create: exit $?"
  write_on disk &
  write_on memory &
  for order in "1 2 3" "3 1 2" "2 3 1" "1 3 2" "3 2 1" "2 1 3"; do
    # shellcheck disable=SC2086  # three words
    kill_all $order
  done
  kill_all "by themselves"
  touch /tmp/enough
  wait
  expect_all_of disk
  expect_all_of memory
  if journalctl --no-pager -q -o cat -u 'mqbroker-*' | grep -E 'may be missing|may have lost'; then wrong "kill -9 is taken for a power cut"; fi
  timeout 100 systemctl stop "${units[@]}" || wrong "systemctl stop: exit $?"
  for order in 1 2 3; do
    [ -s "/var/lib/mq-$order/clean" ] || wrong "broker $order has no clean marker"
  done
}

"$1"
printf '\n%s: %s wrong\n' "$1" "$failures"
if [ "$failures" -gt 0 ]; then exit 1; fi
echo "$1: everything as promised"
