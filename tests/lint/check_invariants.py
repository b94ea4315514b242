"""src/INVARIANTS.md lists rules with stable ids. Code that keeps a rule and a test that tries to break it cite the id: no id is
invented, none is left without both."""
import re
from source import Problems, files, line_of, read

LISTED = re.compile(r'^\s*(?:[-*]|\|)?\s*\*\*([A-Z]{2,6}-\d+)\*\*', re.M)


def check(root):
    problems = Problems()
    home = 'src/INVARIANTS.md'
    text = read(root, home)
    listed = {}
    for match in LISTED.finditer(text):
        line = line_of(text, match.start(1))
        if match.group(1) in listed:
            problems.add(home, line, f'{match.group(1)} is listed twice (line {listed[match.group(1)]})')
        listed[match.group(1)] = line
    if not listed:
        problems.add(home, 1, 'lists no rule')
        return problems.report('invariants', 1)
    prefixes = sorted({name.split('-')[0] for name in listed})
    citation = re.compile(r'\b(?:' + '|'.join(prefixes) + r')-\d+\b')
    paths = files(root, ['src', 'include', 'tools', 'tests'], ('.h', '.cc', '.md', '.py', '.sh'))
    kept, tested = set(), set()
    for path in paths:
        if str(path) == home or path.parts[:2] == ('tests', 'lint'):
            continue
        body = read(root, path)
        for match in citation.finditer(body):
            if path.suffix != '.md':
                (tested if path.parts[0] == 'tests' else kept).add(match.group(0))
            if match.group(0) not in listed:
                problems.add(path, line_of(body, match.start()), f'{match.group(0)} is not in {home}')
    for name, line in sorted(listed.items()):
        if name not in kept:
            problems.add(home, line, f'{name} is cited by no code that keeps it')
        if name not in tested:
            problems.add(home, line, f'{name} is cited by no test')
    return problems.report('invariants', len(paths))
