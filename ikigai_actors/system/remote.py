"""Remote commands: what other processes have committed, and the actors of this host have to follow.

Another process on the database writes rows and nothing else; the host that runs the agents follows them:

    signals       rows that no host has handled: the statuses stand in the registry already, the actors follow here
    prompts       mail of kind ``prompt`` that its agent has not taken up: its actor does, when the agent is idle
    names         a new name of an agent
"""

from ikigai_actors.records import registry
from ikigai_actors.records.deaths import lifecycle_since
from ikigai_actors.records.mail import new_prompts
from ikigai_actors.records.signals import SignalsHandled, new_signals
from ikigai_actors.store.retrying_reader import RetryingReader
from ikigai_actors.store.writer import Writer
from ikigai_actors.system.processes import ProcessTable
from supervisors.signals import Signal


class RemoteCommands:
    """Has the actors of one host follow what other processes have committed. For one thread, which may wait."""

    def __init__(self, reader: RetryingReader, writer: Writer, processes: ProcessTable) -> None:
        """Put the parts together.

        Args:
            reader: reads the rows of other processes.
            writer: commits that signals were handled.
            processes: the actors of this host.
        """
        self._reader, self._writer, self._processes = reader, writer, processes
        self._tree = -1  # the version of the tree whose names the actors have

    def carry_out_signals(self) -> bool:
        """Have the actors follow the signals that no host has handled; return whether there were any."""
        signals = self._reader.read(new_signals)
        if not signals:
            return False
        self._follow_lifecycle(min(signal.created_at for signal in signals))
        for signal in signals:
            if signal.signal == Signal.INT:
                self._processes.interrupt(signal.agent, signal.turn)
                if signal.spread:
                    self._interrupt_below(signal.agent)
        self._writer.perform(SignalsHandled(tuple((signal.agent, signal.id) for signal in signals)))
        return True

    def hand_over_prompts(self) -> None:
        """Give the actors the prompts that their agents have not taken up.

        A prompt that an actor has already changes nothing.
        """
        for agent, mail, text in self._reader.read(new_prompts):
            self._processes.prompt(agent, mail, text)

    def follow_names(self) -> None:
        """Have the actors go by the names of the registry."""
        version = self._reader.read(registry.tree_version)
        if version != self._tree:
            self._tree = version
            # This host may rename an agent between the read and the change: read until all names are right.
            while self._processes.follow_names(self._reader.read(registry.names)):
                pass

    def _follow_lifecycle(self, since: int) -> None:
        followed = None
        # This host may send a signal between the read and what follows from it: read until nothing is new.
        while (found := self._reader.read(lambda tx: lifecycle_since(tx, since))) != followed:
            self._processes.catch_up(*found)
            followed = found

    def _interrupt_below(self, agent: str) -> None:
        for record in self._reader.read(lambda tx: registry.descendants(tx, agent)):
            self._processes.interrupt(record.uuid, record.turn)
