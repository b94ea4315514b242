"""Documents point to what exists: relative links in every .md file, source files named in src/README.md, and examples that are shown as
they stand in the tree."""
import re
from source import Problems, files, line_of, read

LINK = re.compile(r'\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)')
SOURCE = re.compile(r'(?<![\w/.])((?:[a-z_0-9]+/)+[a-z_0-9]+\.(?:h|cc|def|md))\b')
SHOWN = re.compile(r'<!-- (\S+) -->\n```\w*\n(.*?)```', re.S)
MAP = 'src/README.md'


def check(root):
    problems = Problems()
    paths = [p for p in files(root, ['.'], ('.md',))]
    for path in paths:
        text = read(root, path)
        for match in LINK.finditer(text):
            if not (root / path.parent / match.group(1)).exists():
                problems.add(path, line_of(text, match.start()), f'link to {match.group(1)}, which does not exist')
        for match in SHOWN.finditer(text):
            if read(root, match.group(1)) != match.group(2):
                problems.add(path, line_of(text, match.start()), f'does not show {match.group(1)} as it is')
        if str(path) != MAP:
            continue
        for match in SOURCE.finditer(text):
            name = match.group(1)
            if not any((root / base / name).exists() for base in ('src', '.', 'include')):
                problems.add(path, line_of(text, match.start()), f'names {name}, which does not exist')
    return problems.report('documents', len(paths))
