"""A known mistake that is kept as a switch (base/mutants.h) is worth something only while a test switches it on and fails: no switch
without a test that names it, no test of a switch that is gone."""
import re
from source import Problems, files, line_of, read

SWITCH = re.compile(r'\bMQ_MUTANT\(\s*"(\w+)"\s*\)')
USE = re.compile(r'(?:\bEnabledMutant\s*\w*\s*[({]\s*|\bMistake\s*\{\s*|\bnoticed\(\s*)"(\w+)"')


def check(root):
    problems = Problems()
    switches, uses = {}, {}
    sources, tests = files(root, ['src'], ('.h', '.cc')), files(root, ['tests'], ('.h', '.cc'))
    for paths, pattern, found in ((sources, SWITCH, switches), (tests, USE, uses)):
        for path in paths:
            if str(path) == 'src/base/mutants.h':
                continue
            text = read(root, path)
            for match in pattern.finditer(text):
                found.setdefault(match.group(1), (path, line_of(text, match.start())))
    for name in sorted(switches.keys() - uses.keys()):
        problems.add(*switches[name], f'no test switches {name} on')
    for name in sorted(uses.keys() - switches.keys()):
        problems.add(*uses[name], f'there is no switch {name}')
    return problems.report('mutants', len(sources) + len(tests))
