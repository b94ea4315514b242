# shellcheck shell=bash
# Configures when needed, then builds. Two builds of one build folder never overlap: the second says what it waits for.

known_preset() {
  case $1 in dev | release | asan | tsan) return 0 ;; *) return 1 ;; esac
}

# locked COMMAND…: runs it while holding the build lock. The lock is gone with the process, whatever ends it.
locked() {
  local base lock
  base=$(build_root)
  mkdir -p "$base" || fail 1 "cannot create $base"
  lock=$base/.lock
  (
    exec 9>>"$lock"
    if ! flock -n 9; then
      say "waiting for another build here: $(tail -1 "$lock" 2>/dev/null || echo 'unknown')"
      flock 9
    fi
    printf 'pid %s, %s, since %s\n' "$BASHPID" "$*" "$(date +%T)" >"$lock"
    "$@" 9>&-
  )
}

configure_and_build() {
  local preset=$1 folder
  shift
  folder=$(build_root)/$preset
  # Ninja runs cmake again when a CMakeLists.txt changed; only a first, a broken or a copied build folder needs it here.
  if [ ! -f "$folder/build.ninja" ] || ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
    (cd "$root" && cmake --fresh --preset "$preset" -B "$folder") >"$folder.configure.log" 2>&1 || {
      tail -30 "$folder.configure.log" >&2
      fail 1 "cmake failed; the whole report is in $folder.configure.log"
    }
  fi
  cmake --build "$folder" -j "$(build_jobs)" ${1:+--target "$@"}
}

# Says now and then how far the build in this log is, as long as process PID is there.
report_progress() {
  local log=$1 pid=$2 start=$SECONDS at
  while sleep 20 >/dev/null 2>&1 && kill -0 "$pid" 2>/dev/null; do
    at=$(grep -oE '^\[[0-9]+/[0-9]+\]|waiting for another build.*' "$log" | tail -1)
    say "${at:-configuring} after $(seconds_since "$start") s"
  done
}

# quiet_build PRESET [TARGET…]: the compiler's chatter goes to a file; what is seen is a line now and then, and the end if it fails.
quiet_build() {
  local preset=$1 start=$SECONDS log reporter status=0
  log=$(build_root)/$preset.build.log
  mkdir -p "$(build_root)" || fail 1 "cannot create $(build_root)"
  say "building $preset; the compiler's words go to $log"
  : >"$log"
  report_progress "$log" $$ </dev/null &
  reporter=$!
  (dev_build "$@") >>"$log" 2>&1 </dev/null || status=$?
  kill "$reporter" 2>/dev/null || true
  wait "$reporter" 2>/dev/null || true
  if [ "$status" -ne 0 ]; then
    { grep -nE '^FAILED|error:|undefined' "$log" || true; } | head -20 >&2
    tail -25 "$log" >&2
    fail "$status" "the build of preset $preset failed; all of it is in $log"
  fi
  say "built $preset in $(seconds_since "$start") s"
}

dev_build() {
  local preset=${1:-dev} start=$SECONDS
  [ $# -eq 0 ] || shift
  known_preset "$preset" || fail 2 "there is no preset '$preset'; presets: dev, release, asan, tsan"
  if ! command -v cmake >/dev/null || ! command -v ninja >/dev/null; then
    fail 21 "cmake or ninja is missing; run once as root: $here/dev setup"
  fi
  locked configure_and_build "$preset" "$@" || fail 1 "the build of preset $preset failed"
  say "built $preset in $(seconds_since "$start") s: $(build_root)/$preset"
}

cxx_files() {
  find "$root/src" "$root/include" "$root/tools" "$root/tests" -name fixtures -prune -o \( -name '*.cc' -o -name '*.h' \) -print
}

dev_format() {
  command -v clang-format-14 >/dev/null || fail 21 "clang-format-14 is missing; run once as root: $here/dev setup"
  cxx_files | xargs -r clang-format-14 -i
}

dev_lint() {
  command -v python3 >/dev/null || fail 21 "python3 is missing; run once as root: $here/dev setup"
  python3 "$root/tests/lint/lint.py" all "$@"
}
