#!/bin/bash
# check_readme.sh BUILD README: runs the commands that the README tells a newcomer to type, as they stand there (the block below
# "A broker of your own"), one after the other, with the programs of the build. Every one must succeed.
set -euo pipefail
build=$1 readme=$2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/mq-readme.XXXXXX")
export PATH=$build/bin:$PATH HOME=$scratch XDG_STATE_HOME=$scratch/state XDG_CONFIG_HOME=$scratch/config NO_COLOR=1
trap 'timeout 30 mqctl local down >/dev/null 2>&1 || true; rm -rf -- "$scratch"' EXIT

awk '/^## /{here = /^## A broker of your own/} here && /^```/{inside = !inside; next} here && inside' "$readme" |
  grep -v '^export PATH=' >"$scratch/commands"
[ -s "$scratch/commands" ] || { echo "README: no commands found"; exit 1; }
while IFS= read -r command; do
  printf '$ %s\n' "$command"
  timeout 60 bash -c "$command" </dev/null || {
    echo "README: this command failed with exit code $?: $command"
    exit 1
  }
done <"$scratch/commands"
