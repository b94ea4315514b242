"""Two ways in which g++ 12.2 compiles a coroutine into something else, without a warning.

Condition: where no local variable is declared in the whole coroutine, a co_await in the condition of if, while, for or switch makes
its body never run or run into an illegal instruction (GCC bug 106188). A named local, as in `const bool more = co_await …`, avoids it.

Temporaries: a temporary closure with captures or a temporary aggregate inside a co_await expression is destroyed
twice. Such a value gets a name first and is moved in."""
import re
from source import Problems, bare, files, line_of, read

CO_AWAIT = re.compile(r'(?<!operator )\bco_await\b')
PAIRS = {')': '(', ']': '[', '}': '{'}
BLOCK_BEFORE = re.compile(r'(\)|\b(?:else|do|try|mutable|noexcept|const|override|final)|[;{}\]:])\s*$')
TRAILING_RETURN = re.compile(r'->\s*[\w:<>,\s*&()]+$')
# Trivial types, for which a second destruction does nothing; strong ids and enums of the project are added by trivial_types().
TRIVIAL = {'milliseconds', 'microseconds', 'nanoseconds', 'seconds', 'minutes', 'hours', 'Duration', 'TimePoint', 'Timestamp', 'byte',
           'int', 'bool', 'char', 'size_t', 'ptrdiff_t', 'int8_t', 'int16_t', 'int32_t', 'int64_t', 'uint8_t', 'uint16_t',
           'uint32_t', 'uint64_t'}


def trivial_types(root, paths):
    names = set(TRIVIAL)
    for path in paths:
        if path.suffix == '.h':
            text = read(root, path)
            names |= set(re.findall(r'\busing\s+(\w+)\s*=\s*(?:\w+::)*StrongInt<', text))
            names |= set(re.findall(r'\benum\s+class\s+(\w+)', text))
    return names


def match_back(code, at):
    """Position of the bracket that opens the one at `at`."""
    depth = 0
    while at >= 0:
        if code[at] in PAIRS:
            depth += 1
        elif code[at] in PAIRS.values():
            depth -= 1
            if depth == 0:
                return at
        at -= 1
    return -1


def match_forward(code, at):
    depth = 0
    while at < len(code):
        if code[at] in PAIRS.values():
            depth += 1
        elif code[at] in PAIRS:
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return len(code)


def is_block(code, brace):
    before = code[max(0, brace - 300):brace]
    return bool(BLOCK_BEFORE.search(before)) or bool(TRAILING_RETURN.search(before)) or not before.strip()


def expression_start(code, at):
    """Start of the full expression around a co_await at `at`, its limit if that is the end of a condition, and whether it stands
    inside a braced initialiser."""
    braced = False
    everything = len(code)
    at -= 1
    while at >= 0:
        c = code[at]
        if c == ';':
            return at + 1, everything, braced
        if c in ')]':
            at = match_back(code, at)
        elif c == '}':
            follower = code[at + 1:at + 40].lstrip()
            if follower[:1] not in (',', '.', '+', '|', '&', ')', '?', '='):
                return at + 1, everything, braced
            at = match_back(code, at)
        elif c == '(':
            if re.search(r'\b(?:if|while|for|switch)(?:\s+constexpr)?\s*$', code[max(0, at - 30):at]):
                return at + 1, match_forward(code, at), braced
        elif c == '{':
            if is_block(code, at):
                return at + 1, everything, braced
            braced = True
        at -= 1
    return 0, everything, braced


def expression_end(code, at):
    while at < len(code):
        c = code[at]
        if c == ';' or c in PAIRS:
            # An unmatched closing bracket ends it only where nothing follows on the same level: `f(co_await x)` goes on.
            if c == ';' or c == '}':
                return at
        elif c in PAIRS.values():
            at = match_forward(code, at)
        at += 1
    return len(code)


LAMBDA = re.compile(r'\[(?P<captures>[^\[\]]*)\]\s*(?:<[^<>]*>\s*)?(?P<next>[({]|mutable\b)')


def lambdas(code, start, end):
    """(position, has captures, start of body, end of body) of every lambda that begins in [start, end)."""
    for match in LAMBDA.finditer(code, start, end):
        before = code[max(0, match.start() - 40):match.start()].rstrip()
        if re.search(r'[\w)\]]$', before) and not re.search(r'\b(?:return|co_return|co_await|co_yield)$', before):
            continue  # subscript
        at = match.end() - 1
        if code[at] == '(':
            at = match_forward(code, at)
        body = code.find('{', at if code[at] != '{' else at)
        if body < 0:
            continue
        yield match.start(), bool(match.group('captures').strip()), body, match_forward(code, body)


def temporaries(code, start, end, trivial):
    """What the trap would catch in the full expression [start, end)."""
    inner = []
    for position, captures, body, body_end in lambdas(code, start, end):
        inner.append((body, body_end))
        if captures and not any(a < position < b for a, b in inner[:-1]):
            yield position, 'a temporary lambda with captures'
    at = start
    while at < end:
        skip = next((b for a, b in inner if a == at), None)
        if skip is not None:
            at = skip + 1
            continue
        if code[at] == '{':
            before = code[start:at]
            name = re.search(r'([\w:]+)(?:<[^{};]*>)?\s*$', before)
            named = name.group(1).split('::')[-1] if name else None
            if is_block(code, at) and not named:
                if not code[start:at].rstrip().endswith((']', ':')):
                    return  # the body that follows a condition
            if named not in trivial:
                what = f'a temporary {name.group(1)}{{…}}' if name else 'a braced argument {…}'
                yield at, what
                at = match_forward(code, at)
            else:
                at = match_forward(code, at)
        at += 1


CONDITION = re.compile(r'\b(?:if|while|for|switch)(?:\s+constexpr)?\s*$')
NO_FUNCTION = re.compile(r'\b(?:if|while|for|switch|catch)(?:\s+constexpr)?\s*$')
QUALIFIERS = re.compile(r'(?:\b(?:const|noexcept|override|final|mutable)\b|&&?|->\s*[\w:<>,\s*&]+?)?\s*$')
DECLARATION = re.compile(
    r'(?:^|[;{}(])\s*(?!(?:return|co_return|co_await|co_yield|throw|delete|new|else|case|goto|using|typedef|do)\b)'
    r'(?:(?:const|constexpr|static)\s+)*(?:\w+::)*\w+(?:<[^;{}]*>)?\s*[&*]*\s+[&*]*(?:\w+\s*(?:[={;(:]|\[)|\[)|\bMQ_(?:CO_)?TRY\s*\(')


def function_body(code, at):
    """The braces of the function or lambda around `at`."""
    while at > 0:
        at -= 1
        if code[at] in PAIRS:
            at = match_back(code, at)
        elif code[at] == '{':
            before = code[:at].rstrip()
            for _ in range(4):
                shorter = before[:QUALIFIERS.search(before).start()].rstrip()
                if shorter == before:
                    break
                before = shorter
            if before.endswith(')') and not NO_FUNCTION.search(code[max(0, match_back(code, len(before) - 1) - 30):match_back(code, len(before) - 1)]):
                return at, match_forward(code, at)
    return None


def awaits_in_condition(code, at):
    """Whether the co_await at `at` stands in the brackets of if, while, for or switch."""
    while at > 0:
        at -= 1
        if code[at] in '{};':
            return False
        if code[at] in ')]':
            at = match_back(code, at)
        elif code[at] == '(' and CONDITION.search(code[max(0, at - 30):at]):
            return True
    return False


def declares_a_local(code, start, end):
    body = list(code[start:end])
    for _, _, inner, inner_end in lambdas(code, start, end):
        for position in range(inner - start, min(inner_end + 1 - start, len(body))):
            body[position] = ' '
    return bool(DECLARATION.search(''.join(body)))


def check(root):
    problems = Problems()
    paths = files(root, ['src', 'include', 'tools/mqctl', 'tests'], ('.h', '.cc'))
    trivial = trivial_types(root, paths)
    for path in paths:
        code = bare(read(root, path))
        seen = set()
        for match in CO_AWAIT.finditer(code):
            start, limit, braced = expression_start(code, match.start())
            if braced:
                problems.add(path, line_of(code, match.start()), 'co_await inside braces (`T x{co_await …}`): write `T x = co_await …` or name it first')
                continue
            if awaits_in_condition(code, match.start()):
                body = function_body(code, match.start())
                if body and not declares_a_local(code, *body):
                    problems.add(path, line_of(code, match.start()), 'co_await in a condition of a coroutine without a local variable is miscompiled by g++ 12: write `const bool … = co_await …` first')
            end = min(limit, expression_end(code, match.end()))
            for position, what in temporaries(code, start, end, trivial):
                if position not in seen:
                    seen.add(position)
                    problems.add(path, line_of(code, position), f'{what} in an expression with co_await is destroyed twice by g++ 12: name it first')
        for position, captures, body, body_end in lambdas(code, 0, len(code)):
            if captures and re.match(r'\s*\(', code[body_end + 1:body_end + 20]) and re.search(r'\bco_(await|return|yield)\b', code[body:body_end]):
                problems.add(path, line_of(code, position), 'a coroutine lambda with captures is called at once: its captures die before it ends')
    return problems.report('coroutine trap', len(paths))
