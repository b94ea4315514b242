"""File systems in files, for tests that fill them, break them or cut their power. Needs root and a mount namespace of one's own."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from commands import run


class SmallDisk:
    """A file system in a file. The mounts are this process's own and end with it."""

    def __init__(self, kind, mebibytes, *options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mq-small-"))
        self.kind = kind
        self.image = self.folder / "image"
        self.path = self.folder / "mount"
        self.path.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(mebibytes << 20)
        if kind == "ext4":
            run("mkfs.ext4", "-q", "-F", "-m", "0", *options, str(self.image))
        else:
            run("mkfs.xfs", "-q", "-f", *options, str(self.image))
        self.mount()

    def mount(self):
        run("mount", "-o", "loop", str(self.image), str(self.path))

    def end(self):
        subprocess.run(["umount", str(self.path)], capture_output=True, timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def free(self):
        stats = os.statvfs(self.path)
        return stats.f_bavail * stats.f_frsize

    def fill(self, leave=0):
        """Somebody else's file takes what is free."""
        with open(self.path / f"ballast-{time.monotonic_ns()}", "wb") as file:
            piece = b"b" * 65536
            try:
                while self.free() > leave:
                    file.write(piece[:max(1, min(len(piece), self.free() - leave))])
                    file.flush()
            except OSError:
                pass
            try:
                os.fsync(file.fileno())
            except OSError:
                pass

    def fill_inodes(self):
        folder = self.path / "inodes"
        folder.mkdir(exist_ok=True)
        number = len(list(folder.iterdir()))
        try:
            while True:
                (folder / str(number)).touch()
                number += 1
        except OSError:
            return number

    def give_back(self):
        for file in self.path.glob("ballast-*"):
            file.unlink()
        shutil.rmtree(self.path / "inodes", ignore_errors=True)

    def shut_down(self):
        """From now on every call on it fails; what was not synced is gone."""
        run("xfs_io", "-x", "-c", "shutdown", str(self.path))

    def power_on(self):
        """Nobody has a file in it open any more: mounts it again, with what the cut left."""
        run("umount", str(self.path))
        self.mount()
