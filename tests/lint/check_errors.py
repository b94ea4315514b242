"""include/mq/errors.def: every error has a number and a name of its own. Numbers left the process, so none is ever used again."""
import re
from source import Problems, bare, line_of, read

HOME = 'include/mq/errors.def'
ENTRY = re.compile(r'^[ \t]*MQ_[A-Z_]*ERROR[A-Z_]*\s*\(([^;]*?)\)[ \t]*$', re.M | re.S)


def check(root):
    problems = Problems()
    text = read(root, HOME)
    code = bare(text)
    numbers, names = {}, {}
    for match in ENTRY.finditer(code):
        if re.search(r'#\s*\w+[^\n]*$', code[:match.start()].rsplit('\n', 1)[-1]):
            continue
        line = line_of(code, match.start(1))
        fields = [f.strip() for f in match.group(1).split(',')]
        number = next((f for f in fields if re.fullmatch(r'-?\d+', f)), None)
        name = next((f for f in fields if re.fullmatch(r'[A-Za-z_]\w*', f)), None)
        if number is None or name is None:
            problems.add(HOME, line, 'an entry needs a number and a name')
            continue
        if number in numbers:
            problems.add(HOME, line, f'number {number} is taken by {numbers[number]}')
        if name in names:
            problems.add(HOME, line, f'{name} is listed twice')
        numbers.setdefault(number, name)
        names[name] = line
    if not numbers:
        problems.add(HOME, 1, 'no entry found')
    return problems.report('error numbers', 1)
