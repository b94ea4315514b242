#!/bin/bash
# check_readme.sh BUILD README [SECTION]: runs the commands that the README tells a newcomer to type, as they stand there (the first block
# below "A broker of your own", or SECTION), one after the other, with the programs of the build. Every one must succeed.
set -euo pipefail
build=$1 readme=$2 section=${3:-A broker of your own}
if [[ $section == 'Three brokers' ]] && ! { command -v java && [ -e /usr/share/java/zookeeper.jar ]; } >/dev/null; then
  echo "skipped: no java or no /usr/share/java/zookeeper.jar (packages libzookeeper-java, default-jre-headless)"
  exit 77
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/mq-readme.XXXXXX")
export PATH=$build/bin:$PATH HOME=$scratch XDG_STATE_HOME=$scratch/state XDG_CONFIG_HOME=$scratch/config NO_COLOR=1
trap 'timeout 30 mqctl local down >/dev/null 2>&1 || true; rm -rf -- "$scratch"' EXIT

awk -v section="## $section" '/^## /{here = $0 == section; blocks = 0}
  /^```/{inside = here && !fence && $0 == "```" && ++blocks == 1; fence = !fence; next} inside' "$readme" |
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
  if [[ $command == 'mqctl local up'* ]]; then
    MQCTL_BROKERS=$(grep -E '^broker ' "$scratch/out" | grep -oE '127\.0\.0\.1:[0-9]+' | paste -sd,)
    export MQCTL_BROKERS
  fi
done <"$scratch/commands"
