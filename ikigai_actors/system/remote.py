"""Remote commands: what other processes have committed, and the actors of this host have to follow.

Another process on the database writes rows and nothing else; the host that runs the agents follows them:

    changes       statuses, ends, names and interrupted turns, which stand in the registry already
    prompts       mail of kind ``prompt`` that its agent has not taken up: its actor does, when the agent is idle
"""

from ikigai_actors.records.changes import changes_since
from ikigai_actors.records.mail import new_prompts
from ikigai_actors.store.retrying_reader import RetryingReader
from ikigai_actors.system.processes import ProcessTable


class RemoteCommands:
    """Has the actors of one host follow what other processes have committed. For one thread, which may wait."""

    def __init__(self, reader: RetryingReader, processes: ProcessTable) -> None:
        """Put the parts together.

        Args:
            reader: reads the rows of other processes.
            processes: the actors of this host.
        """
        self._reader, self._processes = reader, processes
        self.version = 0
        """The version of the tree up to which the actors have followed."""

    def follow_changes(self) -> bool:
        """Have the actors follow what has changed in the registry since this was last called; return whether there was.

        What this host has committed itself is among it, and changes nothing any more.
        """
        found = False
        # This host may commit the next change between the read and what follows from it: read until nothing is new.
        while (changes := self._reader.read(lambda tx: changes_since(tx, self.version))).agents:
            for change in changes.agents:
                self._processes.catch_up(change)
            self.version, found = changes.version, True
        return found

    def hand_over_prompts(self) -> None:
        """Give the actors the prompts that their agents have not taken up.

        A prompt that an actor has already changes nothing.
        """
        for agent, mail, text in self._reader.read(new_prompts):
            self._processes.prompt(agent, mail, text)
