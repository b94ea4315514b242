"""What may happen to a cluster of three brokers: each is a context, and over at its end. They nest. `cluster` is a FaultCase, or has the
same members: nodes (broker number: Broker), restart, ready; network, disks, zookeeper where a fault needs them."""

import contextlib
import pathlib
import signal
import subprocess
import time
import uuid


def back(cluster, numbers):
    """Starts them all, then waits: alone none of them need ever get ready."""
    waits = [(cluster.nodes[number], cluster.restart(number)) for number in numbers]
    for node, times in waits:
        cluster.ready(node, times)


@contextlib.contextmanager
def killed(cluster, *numbers):
    """kill -9; in that order they come back."""
    for number in numbers:
        cluster.nodes[number].kill9()
    yield
    back(cluster, numbers)


@contextlib.contextmanager
def stopped(cluster, *numbers):
    for number in numbers:
        code = cluster.nodes[number].stop()
        assert code == 0, f"broker {number} ended with {code}"
    yield
    back(cluster, numbers)


@contextlib.contextmanager
def paused(cluster, *numbers):
    processes = [cluster.nodes[number].process for number in numbers]
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def without_zookeeper(cluster):
    cluster.zookeeper.kill()
    try:
        yield
    finally:
        cluster.zookeeper.start()


@contextlib.contextmanager
def cut(cluster, some, others):
    """Nothing passes between these hosts and those, in either direction."""
    cluster.network.cut(some, others)
    try:
        yield
    finally:
        cluster.network.mend()


@contextlib.contextmanager
def one_way_cut(cluster, *pairs):
    """(host, whom it does not hear)"""
    cluster.network.cut_one_way(pairs)
    try:
        yield
    finally:
        cluster.network.mend()


@contextlib.contextmanager
def lossy(cluster, percent, *hosts):
    cluster.network.lose(percent, hosts)
    try:
        yield
    finally:
        cluster.network.mend()


def cut_power(cluster, *numbers):
    """What was not synced is lost on these brokers' disks, and their processes are gone; the next start is another boot."""
    for number in numbers:
        cluster.nodes[number].process.send_signal(signal.SIGSTOP)
    for number in numbers:
        cluster.disks[number].shut_down()
    for number in numbers:
        cluster.nodes[number].kill9()
        cluster.disks[number].power_on()
        cluster.nodes[number].environment["MQ_BOOT_ID"] = uuid.uuid4().hex


@contextlib.contextmanager
def without_power(cluster, *numbers):
    cut_power(cluster, *numbers)
    yield
    back(cluster, numbers)


@contextlib.contextmanager
def full_disks(cluster, *numbers):
    """Somebody else takes all space there is."""
    for number in numbers:
        cluster.disks[number].fill()
    try:
        yield
    finally:
        for number in numbers:
            cluster.disks[number].give_back()


@contextlib.contextmanager
def injected(cluster, number, calls, what, path=None):
    """System calls of a running broker fail or are slow, as strace's inject= says."""
    process = cluster.nodes[number].process
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(process.pid), "-e", f"trace={calls}", "-e", f"inject={calls}:{what}"]
    tracer = subprocess.Popen([*command, *(["-P", path] if path else [])], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_for_tracer(process.pid, tracer)
    try:
        yield
    finally:
        # A call that strace has exchanged and does not see the end of would fail as one that the system does not have (ENOSYS): nobody is to
        # be in the middle of one.
        with at_rest(process):
            tracer.terminate()
            tracer.wait(timeout=30)
        tracer.stderr.close()


@contextlib.contextmanager
def at_rest(process):
    """All its threads have stopped, between calls."""
    def states():
        stats = [pathlib.Path(task, "stat") for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir()]
        return {stat.read_text().rsplit(")", 1)[1].split()[0] for stat in stats}

    if process.poll() is None:
        process.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + 10
    quiet = 0
    # Long calls, such as a delayed one, are not waited for.
    while quiet < 5 and time.monotonic() < deadline and process.poll() is None:
        quiet = quiet + 1 if states() <= {"t", "T"} else 0
        time.sleep(0.02)
    try:
        yield
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)


def wait_for_tracer(pid, tracer):
    deadline = time.monotonic() + 10
    while "TracerPid:\t0" in pathlib.Path(f"/proc/{pid}/status").read_text():
        if tracer.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"strace does not trace: {tracer.stderr.read()}")
        time.sleep(0.02)
