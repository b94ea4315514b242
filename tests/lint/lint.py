#!/usr/bin/env python3
"""lint.py CHECK|all [--root FOLDER]: the rules that no compiler knows. Each has a self-test beside it (selftest.py)."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_coroutines  # noqa: E402
import check_docs  # noqa: E402
import check_errors  # noqa: E402
import check_format  # noqa: E402
import check_includes  # noqa: E402
import check_invariants  # noqa: E402
import check_mutants  # noqa: E402
import check_seams  # noqa: E402

CHECKS = {
    'includes': check_includes.check,
    'seams': check_seams.check,
    'coroutines': check_coroutines.check,
    'invariants': check_invariants.check,
    'mutants': check_mutants.check,
    'errors': check_errors.check,
    'docs': check_docs.check,
    'format': check_format.check,
    'shell': check_format.check_shell,
}


def main(arguments):
    root = Path(__file__).resolve().parents[2]
    if '--root' in arguments:
        at = arguments.index('--root')
        root = Path(arguments[at + 1]).resolve()
        del arguments[at:at + 2]
    wanted = list(CHECKS) if arguments in ([], ['all']) else arguments
    unknown = [name for name in wanted if name not in CHECKS]
    if unknown:
        print(f'no check named {", ".join(unknown)}; there are: {", ".join(CHECKS)}', file=sys.stderr)
        return 2
    return max([CHECKS[name](root) for name in wanted])


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
