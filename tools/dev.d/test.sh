# shellcheck shell=bash
# The test lanes. Each prints the closing line of ctest for every build that it tests.

test_scratch=''

# run_ctest PRESET ARGUMENTS…: temporary files of the tests land in a folder of their own, which goes with the run.
run_ctest() {
  local preset=$1 folder status=0
  shift
  folder=$(build_root)/$preset
  say "testing $preset: ctest $*"
  TMPDIR=$test_scratch "${test_wrapper[@]}" ctest --test-dir "$folder" --output-on-failure --no-tests=error -j 4 "$@" </dev/null || status=$?
  return "$status"
}

test_cleanup() {
  if [ -n "$test_scratch" ]; then rm -rf -- "$test_scratch"; fi
}

lane_quick() {
  local failed=()
  # A change is judged by the same seeds every time; lane sim looks for new ones.
  quiet_build dev
  MQ_SIM_FIRST=1 run_ctest dev -LE long || failed+=("dev tests")
  # What follows tests no more; real processes run with the binaries above.
  quiet_build asan tests/unit/all tests/fuzz/all sim_test
  MQ_SIM_FIRST=1 MQ_SIM_SECONDS=15 run_ctest asan -L 'unit|fuzz|sim' -LE long -E '^(sim_mutants|storage.histories)$' || failed+=("asan tests")
  say "the demo, from the tree built for the tests"
  "$here/dev" demo --built dev || failed+=(demo)
  if [ ${#failed[@]} -gt 0 ]; then fail 1 "lane quick failed: $(printf '%s, ' "${failed[@]}" | sed 's/, $//')"; fi
}

lane_tsan() {
  quiet_build tsan
  # The shadow memory of this ThreadSanitizer does not fit beside a fully randomised address space.
  if setarch "$(uname -m)" -R true 2>/dev/null; then test_wrapper=(setarch "$(uname -m)" -R); fi
  # What searches by one thread alone has no races.
  MQ_SIM_SECONDS=30 run_ctest tsan -L 'unit|integration|sim' -LE long -E '^(sim_mutants|storage.histories)$' || fail 1 "lane tsan failed"
}

lane_tidy() {
  quiet_build dev mq_headers_stand_alone
  # What the sources include and no compiler has to have seen: generated headers and the precompiled one.
  quiet_build asan mq_generated src/base/CMakeFiles/mq_base.dir/cmake_pch.hxx.pch
  python3 -B "$here/dev.d/tidy.py" "$(build_root)/asan" "$(build_jobs)" </dev/null || fail 1 "lane tidy failed"
}

lane_sim() {
  quiet_build dev
  MQ_SIM_SEEDS=${1:-5000} MQ_STORAGE_SEEDS=${1:-5000} run_ctest dev -L sim -V || fail 1 "lane sim failed"
}

lane_faults() {
  quiet_build dev
  # Power cuts need root, mkfs.ext4, mkfs.xfs and xfs_io; without them that test says so and is skipped.
  MQ_FAULT_ROUNDS=${1:-500} run_ctest dev -R '^(kill_tests|repeat_tests|power_cut_tests|client_case_tests|storage_tests|storage.histories|integration.clock|integration.full_disk|integration.many_partitions|integration.way_out|integration.damage_everywhere|faults\..*)$' ||
    fail 1 "lane faults failed"
  dev_chaos --seconds 180
}

# One trouble after the other for three brokers with three replicas, drawn from a seed; it says which.
dev_chaos() {
  local seed='' seconds=600
  while [ $# -gt 0 ]; do
    case $1 in
      --seed | --seconds)
        [ $# -ge 2 ] || fail 2 "$1 needs a value"
        if [ "$1" = --seed ]; then seed=$2; else seconds=$2; fi
        shift
        ;;
      *) fail 2 "chaos takes --seconds N and --seed N; not '$1'" ;;
    esac
    shift
  done
  dev_setup test
  quiet_build dev mqbroker mqctl fault_load
  MQ_BIN=$(build_root)/dev/bin MQ_CHAOS_SECONDS=$seconds env ${seed:+"MQ_CHAOS_SEED=$seed"} \
    python3 -B "$root/tests/integration/faults/chaos.py" </dev/null || fail 1 "chaos found something, or could not run"
}

lane_fuzz() {
  quiet_build asan
  MQ_FUZZ_SECONDS=${1:-120} run_ctest asan -L fuzz || fail 1 "lane fuzz failed"
}

lane_service() {
  dev_setup machine
  quiet_build dev
  run_ctest dev -L service -V || fail 1 "lane service failed"
}

dev_test() {
  local lane=quick count='' start=$SECONDS
  test_wrapper=()
  while [ $# -gt 0 ]; do
    case $1 in
      --lane | --seeds | --rounds | --seconds)
        [ $# -ge 2 ] || fail 2 "$1 needs a value"
        if [ "$1" = --lane ]; then lane=$2; else count=$2; fi
        shift
        ;;
      *) fail 2 "test takes --lane NAME and, for lane sim --seeds N, faults --rounds N, fuzz --seconds N; not '$1'" ;;
    esac
    shift
  done
  case $lane in
    quick | tsan | tidy | sim | faults | fuzz | service) ;;
    *) fail 2 "there is no lane '$lane'; lanes: quick, tsan, tidy, sim, faults, fuzz, service" ;;
  esac
  dev_setup test
  trap test_cleanup EXIT
  trap 'exit 130' INT TERM HUP
  test_scratch=$(mktemp -d "${TMPDIR:-/tmp}/mq-test.XXXXXX")
  "lane_$lane" ${count:+"$count"}
  say "lane $lane passed in $(seconds_since "$start") s"
}
