"""What OTP's `supervisor` does, as its documentation says: the oracle for ours.

One process, which knows its children in start order and handles one message after another. Written for reading, in the
terms of OTP and with its interface; it shares nothing with `supervisors`. Left out is what we have no counterpart for:
``simple_one_for_one``, ``auto_shutdown``, shutdown timeouts.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Pid = Literal["pid", "restarting", "undefined"]


@dataclass
class Spec:
    """A child specification, and whether a process runs by it."""

    name: str
    restart: str
    pid: Pid = "undefined"


class OtpSupervisor:
    """A supervisor process. Times are whole seconds, as OTP counts them.

    Args:
        strategy, intensity, period: its flags.
        children: ids and restart types, in start order; all start well.
        starts: asked whether the next start of a child succeeds.
        log: told of each start, failed start and stop, and when the supervisor gives up.
    """

    def __init__(
        self,
        strategy: str,
        intensity: int,
        period: int,
        children: list[tuple[str, str]],
        starts: Callable[[], bool],
        log: Callable[[str], None],
    ) -> None:
        self.strategy = strategy
        self.intensity = intensity
        self.period = period
        self.starts = starts
        self.log = log
        self.alive = True
        self.children = [Spec(name, restart, "pid") for name, restart in children]
        self.restarts: list[int] = []
        self.casts: deque[str] = deque()  # "try again" messages to itself

    def start_child(self, name: str, restart: str) -> None:
        """A new child, behind the others; its first start succeeds."""
        self.log(f"start {name}")
        self.children.append(Spec(name, restart, "pid"))

    def terminate_child(self, name: str) -> None:
        """Stop a child on demand, which is no restart; a temporary's specification goes with it."""
        child = self._find(name)
        self._terminate([child])

    def delete_child(self, name: str) -> None:
        """Forget the specification of a child that does not run."""
        self.children = [child for child in self.children if child.name != name or child.pid != "undefined"]

    def exit(self, name: str, reason: str, now: int) -> None:
        """The exit signal of a child has arrived."""
        child = self._find(name)
        abnormal = reason not in ("normal", "shutdown")
        if child.restart == "permanent" or (child.restart == "transient" and abnormal):
            self._restart(child, now)
        else:
            self._ended(child)

    def try_again(self, now: int) -> None:
        """Handle the oldest message to itself: to start a child whose restart has failed."""
        name = self.casts.popleft()
        for child in self.children:
            if child.name == name and child.pid == "restarting":
                self._restart(child, now)
                return

    def _restart(self, child: Spec, now: int) -> None:
        # Too many restarts: the supervisor terminates its children and then itself.
        self.restarts = [then for then in self.restarts if now - then <= self.period] + [now]
        if len(self.restarts) > self.intensity:
            self._ended(child)
            self._terminate(list(self.children))
            self.alive = False
            self.log("gave up")
            return
        # A strategy names the specifications that are affected; terminated in reverse order, started in order.
        where = self.children.index(child)
        match self.strategy:
            case "one_for_one":
                affected = [child]
            case "rest_for_one":
                affected = self.children[where:]
            case _:
                affected = list(self.children)
        self._ended(child)
        self._terminate([other for other in affected if other is not child])
        for sibling in affected:
            if sibling in self.children and not self._start(sibling):
                sibling.pid = "restarting"
                self.casts.append(sibling.name)
                return

    def _start(self, child: Spec) -> bool:
        well = self.starts()
        self.log(f"{'start' if well else 'fail'} {child.name}")
        child.pid = "pid" if well else "undefined"
        return well

    def _terminate(self, children: list[Spec]) -> None:
        for child in reversed(children):
            if child.pid == "pid":
                self.log(f"stop {child.name}")
            self._ended(child)

    def _ended(self, child: Spec) -> None:
        """No process runs by it now; nobody will need the specification of a temporary again."""
        child.pid = "undefined"
        if child.restart == "temporary":
            self.children.remove(child)

    def _find(self, name: str) -> Spec:
        return next(child for child in self.children if child.name == name)
