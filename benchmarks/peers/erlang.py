"""Erlang's own processes, by ``actors.erl``: the limit we chase. With as many schedulers as there are cores."""

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from benchmarks.peers.actors import Figures, Work

_RELEASE = "io:format(erlang:system_info(otp_release)), halt()."


@cache
def otp_release() -> str | None:
    """The release of OTP; None when ``erl`` or ``erlc`` is not on the path."""
    if shutil.which("erl") is None or shutil.which("erlc") is None:
        return None
    return subprocess.run(
        ["erl", "-noshell", "-eval", _RELEASE], check=True, capture_output=True, text=True
    ).stdout.strip()


def measure(work: Work) -> Figures:
    """See `benchmarks.peers.actors.Peer`."""
    sizes = {name: sizes for name, sizes in work.sizes().items() if name != "ask of a thread"}  # it has no main thread
    return _figures([(name, size, work.messages) for name, of in sizes.items() for size in of])


def idle(number: int) -> float:
    """See `benchmarks.peers.actors.Peer`."""
    return _figures([("idle", number, 0)])["idle", number]


def kill(shape: str, size: int) -> float:
    """Seconds to kill a process and so many below it, linked as a ``tree`` or a ``chain``."""
    return _figures([(f"kill-{shape}", size, 0)])[f"kill-{shape}", size]


def _figures(wanted: list[tuple[str, int, int]]) -> Figures:
    source = Path(__file__).parent / "actors.erl"
    arguments = [str(part) for each in wanted for part in each]
    with tempfile.TemporaryDirectory(prefix="ikigai-benchmarks-") as directory:
        subprocess.run(["erlc", "-o", directory, str(source)], check=True)
        command = ["erl", "+P", "1000000", "-noshell", "-pa", directory, "-run", "actors", "main", *arguments]
        output = subprocess.run([*command, "-s", "init", "stop"], check=True, capture_output=True, text=True).stdout
    lines = (line.split() for line in output.splitlines())
    return {(name, int(size)): float(value) for name, size, value in lines}
