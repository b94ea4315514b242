# shellcheck shell=bash
# The demo: one broker on loopback, one real file through it and back, then enough generated records for a rate.

demo_folder='' demo_broker=''

demo_cleanup() {
  if [ -n "$demo_broker" ]; then
    kill -TERM "$demo_broker" 2>/dev/null || true
    local waited=0
    while kill -0 "$demo_broker" 2>/dev/null && [ "$waited" -lt 100 ]; do
      sleep 0.1
      waited=$((waited + 1))
    done
    kill -KILL "$demo_broker" 2>/dev/null || true
    wait "$demo_broker" 2>/dev/null || true
    demo_broker=''
  fi
  if [ -n "$demo_folder" ]; then rm -rf -- "$demo_folder"; fi
  demo_folder=''
}

demo_fail() {
  if [ -s "$demo_folder/broker.log" ]; then
    echo "the broker's last lines:" >&2
    tail -8 "$demo_folder/broker.log" | sed 's/^/  /' >&2
  fi
  fail 1 "demo: $1"
}

# A loopback port that nobody listens on now. Somebody may take it before the broker does; then the next one is tried.
free_port() {
  local port hex
  while :; do
    port=$((20000 + RANDOM))
    hex=$(printf '%04X' "$port")
    if ! cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '{print $2}' | grep -q ":$hex\$"; then
      echo "$port"
      return
    fi
  done
}

demo_start_broker() {
  local bin=$1 try waited
  for try in 1 2 3 4 5; do
    demo_address=127.0.0.1:$(free_port)
    cat >"$demo_folder/broker.toml" <<TOML
[broker]
id = 1
metadata = "local"
[[storage.disk]]
path = "$demo_folder/data"
[listener.clients]
bind = "$demo_address"
TOML
    mkdir -p "$demo_folder/data"
    "$bin/mqbroker" --config "$demo_folder/broker.toml" >"$demo_folder/broker.log" 2>&1 </dev/null &
    demo_broker=$!
    for ((waited = 0; waited < 200; waited++)); do
      if demo_mqctl 5 status >/dev/null 2>&1; then return 0; fi
      kill -0 "$demo_broker" 2>/dev/null || break
      sleep 0.1
    done
    if kill -0 "$demo_broker" 2>/dev/null; then demo_fail "the broker did not become ready within 20 s"; fi
    wait "$demo_broker" 2>/dev/null || true
    demo_broker=''
    grep -qi 'in use' "$demo_folder/broker.log" || demo_fail "the broker stopped while starting"
    say "port ${demo_address#*:} was taken in between, trying another ($try)"
  done
  demo_fail "no free port found"
}

# demo_mqctl SECONDS ARGUMENTS…
demo_mqctl() {
  local seconds=$1
  shift
  timeout "$seconds" "$demo_bin/mqctl" -b "$demo_address" "$@" </dev/null
}

# How the file is cut into records: paragraphs of a package list, else lines, else pieces of 64 KiB.
demo_framing() {
  local file=$1
  if [ "$file" = /var/lib/dpkg/status ]; then
    echo paragraph
  elif [ "$(head -c 16777216 "$file" | tr -d -c '\000' | wc -c)" -gt 0 ] || ! LC_ALL=C awk 'length($0) > 65536 {exit 1}' "$file"; then
    echo chunk
  else
    echo line
  fi
}

# shows the command as the reader would type it, then runs it
demo_step() {
  local seconds=$1
  shift
  printf '\n$ mqctl %s\n' "$*"
  demo_mqctl "$seconds" "$@" || demo_fail "mqctl ${*:1:2} failed with exit code $?"
}

demo_file() {
  local file=$1 framing sent received
  local -a key=()
  framing=$(demo_framing "$file")
  if [ "$framing" = paragraph ]; then key=(--key-field Package); fi
  demo_step 30 topic create demo --partitions 1
  demo_step 300 produce demo "$file" --framing "$framing" "${key[@]}"
  printf '\n$ mqctl consume demo -o start -e -f %%v > copy\n'
  demo_mqctl 300 consume demo -o start -e -f '%v' >"$demo_folder/copy" || demo_fail "mqctl consume failed with exit code $?"
  sent=$(sha256sum <"$file" | cut -d' ' -f1)
  received=$(sha256sum <"$demo_folder/copy" | cut -d' ' -f1)
  printf '\nsent      %s  %s bytes  %s\nreceived  %s  %s bytes  through the broker\n' \
    "$sent" "$(stat -L -c %s "$file")" "$file" "$received" "$(stat -c %s "$demo_folder/copy")"
  if [ "$sent" != "$received" ]; then demo_fail "what came back is not what was sent"; fi
  echo "equal: every byte came back"
}

demo_next() {
  cat <<TEXT

Next, with a broker of your own (no root needed; it stays until you stop it):
  $demo_bin/mqctl local up
  $demo_bin/mqctl topic create orders --partitions 3
  printf 'k1:v1\nk2:v2\n' | $demo_bin/mqctl produce orders -K :
  $demo_bin/mqctl consume orders -o start -e -J
  $demo_bin/mqctl status
  $demo_bin/mqctl local down
TEXT
}

dev_demo() {
  local preset=release file=/var/lib/dpkg/status built='' start=$SECONDS
  while [ $# -gt 0 ]; do
    case $1 in
      --built) preset=${2:?} built=yes && shift ;; # from tools/dev test: this preset, as it is
      -*) fail 2 "demo takes a file, not '$1'" ;;
      *) file=$1 ;;
    esac
    shift
  done
  if [ ! -f "$file" ] || [ ! -r "$file" ]; then fail 2 "demo needs a file that can be read; '$file' is not"; fi
  file=$(readlink -f -- "$file")
  if [ -z "$built" ]; then
    dev_setup product
    quiet_build "$preset" mqbroker mqctl
  fi
  demo_bin=$(build_root)/$preset/bin
  if [ ! -x "$demo_bin/mqbroker" ] || [ ! -x "$demo_bin/mqctl" ]; then fail 1 "demo: no mqbroker and mqctl in $demo_bin"; fi
  trap demo_cleanup EXIT
  trap 'exit 130' INT TERM HUP
  demo_folder=$(mktemp -d "${TMPDIR:-/tmp}/mq-demo.XXXXXX")
  if [ "$(df -Pk "$demo_folder" | awk 'NR == 2 {print $4}')" -lt 700000 ]; then
    fail 1 "demo: ${demo_folder%/*} has less than 700 MB free; set TMPDIR to a folder that has"
  fi
  demo_start_broker "$demo_bin"
  say "broker $demo_broker is ready on $demo_address; its data is in $demo_folder"
  demo_file "$file"
  demo_step 30 topic create rate --partitions 1
  demo_step 120 bench produce --topic rate --bytes 200MiB --record-bytes 1KiB
  demo_step 120 bench consume --topic rate --bytes 200MiB
  demo_next
  demo_cleanup
  trap - EXIT INT TERM HUP
  printf '\ndemo passed in %s s; broker stopped, %s removed\n' "$(seconds_since "$start")" "its folder"
}
