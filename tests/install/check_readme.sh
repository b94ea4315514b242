#!/bin/bash
# check_readme.sh BUILD README: runs the commands that the README tells a newcomer to type, as they stand there (the block below
# "A broker of your own"), one after the other, with the programs of the build. Every one must succeed.
set -euo pipefail
build=$1 readme=$2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/mq-readme.XXXXXX")
export PATH=$build/bin:$PATH HOME=$scratch XDG_STATE_HOME=$scratch/state XDG_CONFIG_HOME=$scratch/config NO_COLOR=1
trap 'timeout 30 mqctl local down >/dev/null 2>&1 || true; rm -rf -- "$scratch"' EXIT

awk '/^## /{here = /^## A broker of your own/} /^```/{inside = here && !fence && $0 == "```"; fence = !fence; next} inside' "$readme" |
  grep -v '^export PATH=' >"$scratch/commands"
[ -s "$scratch/commands" ] || { echo "README: no commands found"; exit 1; }
while IFS= read -r command; do
  printf '$ %s\n' "$command"
  timeout 60 bash -c "$command" </dev/null >"$scratch/out" || {
    echo "README: this command failed with exit code $?: $command"
    exit 1
  }
  cat "$scratch/out"
  # Port 9500 may be somebody else's; then local up takes another and says so, and a reader would follow it.
  if [ "$command" = 'mqctl local up' ]; then
    MQCTL_BROKERS=$(grep -m1 -oE '127\.0\.0\.1:[0-9]+' "$scratch/out")
    export MQCTL_BROKERS
  fi
done <"$scratch/commands"
