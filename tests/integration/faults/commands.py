"""Commands that tests need to succeed."""

import subprocess


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout
