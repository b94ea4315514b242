#!/usr/bin/env python3
"""tidy.py BUILD JOBS [FILE…]: clang-tidy over every .cc of src and tools, or over the files named. One line for each file with its
time, findings below it. First it looks at a file with planted mistakes: a lane that finds nothing there proves nothing."""
import json
import re
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIDY = 'clang-tidy-14'
CPU_SECONDS = 300  # for one file; 10 to 20 are usual. Time by the clock says nothing on a busy machine.


def tidy(*arguments):
    """Exit code, and what was found. What clang-tidy says about itself (warnings counted in system headers) is left out."""
    def bound():
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))

    done = subprocess.run([TIDY, '--quiet', *map(str, arguments)], capture_output=True, text=True, cwd=ROOT, preexec_fn=bound)
    if done.returncode < 0:
        return 1, f'ended by signal {-done.returncode}; {CPU_SECONDS} s of CPU time are the limit\n'
    return done.returncode, done.stdout + ''.join(
        line for line in done.stderr.splitlines(True) if not re.match(r'\d+ warnings? (and \d+ errors? )?generated', line))


def without_analyzer(path):
    """The path-sensitive analyzer of clang 14 does not know coroutine frames: it reports Asio's own code at every co_await."""
    return ['--checks=-clang-analyzer-*'] if re.search(r'\bco_(await|return)\b|\basio::', path.read_text()) else []


def planted():
    """The checks that the planted file asks for and that did not speak."""
    path = ROOT / 'tests/lint/fixtures/planted.cc'
    wanted = re.search(r'^// finds: (.*)$', path.read_text(), re.M).group(1).split()
    _, found = tidy(path, '--', '-std=c++20')
    return [check for check in wanted if check not in found]


def sources(build):
    """Every file of src and tools that is compiled, each once."""
    listed = {Path(entry['file']) for entry in json.loads((build / 'compile_commands.json').read_text())}
    return sorted(path for path in listed if path.is_relative_to(ROOT / 'src') or path.is_relative_to(ROOT / 'tools'))


def main(build, jobs, *names):
    build = Path(build).resolve()
    silent = planted()
    if silent:
        print(f'tidy: planted mistakes were not found: {", ".join(silent)}')
        return 1
    paths = sources(build)
    unknown = [name for name in names if Path(name).resolve() not in paths]
    if unknown or not paths:
        print(f'tidy: not compiled in {build}: {", ".join(unknown) or "anything of src and tools"}')
        return 2
    if names:
        paths = [Path(name).resolve() for name in names]
    began, bad = time.monotonic(), []

    def look(path):
        start = time.monotonic()
        return path, *tidy('-p', build, *without_analyzer(path), path), time.monotonic() - start

    with ThreadPoolExecutor(int(jobs)) as pool:
        for number, (path, status, found, seconds) in enumerate(pool.map(look, paths), 1):
            print(f'[{number}/{len(paths)}] {path.relative_to(ROOT)}: {"FOUND" if status else "clean"}, {seconds:.0f} s', flush=True)
            if status:
                bad.append(path)
                print(found, flush=True)
    print(f'tidy: {len(paths)} files, {len(bad)} with findings, {time.monotonic() - began:.0f} s; planted mistakes found')
    for path in bad:
        print(f'  {path.relative_to(ROOT)}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
