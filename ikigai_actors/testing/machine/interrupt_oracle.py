"""`InterruptOracle`: an INT ends the turn of the prompt directly before it, without a request, and no later turn."""

from ikigai_actors.actors.futures import Future
from ikigai_actors.errors import TurnInterrupted
from ikigai_actors.providers.base import Reply, Request
from ikigai_actors.testing.simulation.process import Broken, asks_for_summary
from ikigai_actors.testing.simulation.world import Simulation


class InterruptOracle:
    """Checks prompts to an idle agent around an INT, sent in this order: prompt, INT, prompt."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._before: dict[tuple[str, str], None] = {}

    def sent(self, agent: str, first: str) -> None:
        """Note the prompt before an INT to an agent of the same process: no model may be asked for it."""
        self._before[agent, first] = None

    def asked(self, request: Request) -> None:
        """Check that a request is not for a prompt that an INT has interrupted."""
        if asks_for_summary(request):
            return
        last = [block.get("text") for block in request.messages[-1]["content"]]
        if any((request.agent, text) in self._before for text in last[-1:]):
            self._world.process.broken(f"int: agent {request.agent} asks its model for {last[-1]!r}, after an INT")

    @staticmethod
    def check(agent: str, first: Future[Reply], later: Future[Reply]) -> None:
        """Check the outcomes of both prompts. No other command was sent to the agent meanwhile."""
        if first.done() and first.exception() is None:
            raise Broken(f"int: agent {agent} has answered the prompt before an INT")
        error = later.exception() if later.done() else None
        if isinstance(error, TurnInterrupted) and "was interrupted" in str(error):
            raise Broken(f"int: agent {agent} was interrupted in the turn of a prompt after the INT")
