"""clang-format decides the form of C++, shellcheck looks over the shell scripts."""
import shutil
import subprocess
from source import Problems, files

SHELL = ['tools/dev', '.ci/run']


def run(command, root):
    return subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def check(root):
    problems = Problems()
    program = shutil.which('clang-format-14')
    if not program:
        problems.add('.clang-format', 1, 'clang-format-14 is not installed')
        return problems.report('format', 0)
    paths = files(root, ['src', 'include', 'tools', 'tests'], ('.h', '.cc'))
    for at in range(0, len(paths), 50):
        some = [str(p) for p in paths[at:at + 50]]
        done = run([program, '--dry-run', '-Werror', *some], root)
        if done.returncode:
            wrong = sorted({line.split(':')[0] for line in done.stderr.splitlines() if 'error:' in line})
            for name in wrong or some:
                problems.add(name, 1, 'not in form: tools/dev format')
    return problems.report('format', len(paths))


def check_shell(root):
    problems = Problems()
    program = shutil.which('shellcheck')
    paths = [p for p in SHELL if (root / p).exists()]
    # What tools/dev sources is checked as part of it (-a), where its variables are known.
    paths += [str(p) for p in files(root, ['tools', 'tests', '.ci', 'deploy'], ('.sh',)) if p.parts[:2] != ('tools', 'dev.d')]
    if not program:
        problems.add('tools/dev', 1, 'shellcheck is not installed')
    elif paths:
        done = run([program, '-a', '-x', '-P', 'SCRIPTDIR', '-f', 'gcc', *paths], root)
        problems.lines += done.stdout.splitlines() + ([done.stderr.strip()] if done.stderr.strip() else [])
    return problems.report('shell', len(paths))
