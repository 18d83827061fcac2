"""Mutants of requests that wait for a batch, and of replies that a service keeps.

nice python -m tests.mutants --batches
"""

from tests.mutants import Mutant

_BATCHES, _HOSTS = "tests/system/test_batches.py", "tests/system/test_batches_on_hosts.py"
_KEPT, _OPENAI = "tests/system/test_background.py", "tests/providers/test_openai_provider.py"

BATCH_MUTANTS = (
    Mutant(
        "a batch whose sending was not answered is sent again at once",
        "system/host/batches.py",
        "            elif answer is False and self._clock.now_ms() - since >= LOST_SECONDS * 1000:",
        "            elif since:",
        test=_BATCHES,
    ),
    Mutant(
        "a turn that goes on waits for another batch",
        "records/batches.py",
        '            if state != "failed" or read_at is None:',
        "            if batch is None:",
        test=_BATCHES,
    ),
    Mutant(
        "the seat of a host that has ended stays taken",
        "store/queries.sql",
        "WHERE h.id = seats.host AND h.ended_at IS NOT NULL)\nRETURNING host",
        "WHERE h.id = seats.host AND h.ended_at < 0)\nRETURNING host",
        test=_HOSTS,
        tier="thorough",
    ),
    Mutant(
        "a batch costs what a direct request does",
        "agent/costs.py",
        "price.of(usage, batched)",
        "price.of(usage)",
        test=_BATCHES,
    ),
    Mutant(
        "a request that was not answered is asked directly at once",
        "records/batches.py",
        "attempt < BATCH_ATTEMPTS",
        "attempt < 1",
        test=_BATCHES,
    ),
    Mutant(
        "an interrupted request is sent",
        "records/batches.py",
        '        tx.run("leave_batch", agent=self.agent, position=self.position)',
        "        return",
        test=_BATCHES,
    ),
    Mutant(
        "a request is sent again whose reply its service keeps",
        "agent/effects.py",
        "kept=state.kept.reply if",
        "kept=None if",
        test=_KEPT,
    ),
    Mutant(
        "a request is sent again whose connection broke",
        "agent/turn/machine.py",
        "(Kind.RETRY, failure, {**data, **kept}))",
        "(Kind.RETRY, failure, data))",
        test=_KEPT,
    ),
    Mutant(
        "a service does not hear that nobody reads a reply any more",
        "agent/turn/kept.py",
        "(*step.effects, GiveUpReply(kept))",
        "step.effects",
        test=_KEPT,
    ),
    Mutant(
        "a reply of Responses is read on from its beginning in the middle",
        "providers/openai_background.py",
        "            self.kept = KeptReply(self.kept.id, number)",
        "            pass",
        test=_OPENAI,
    ),
    Mutant(
        "a request that goes on in its batch is charged at each takeover",
        "records/log/append.py",
        "unit.need is not None and row.held_host != self._fence.host",
        "False",
        test="tests/system/test_batches.py",
    ),
    Mutant(
        "a request is paid again whose agent was forked while it waits",
        "agent/effects.py",
        "        at = answered_position(log, head)\n",
        "        at = head\n",
        test=_BATCHES,
    ),
    Mutant(
        "a request in a batch is charged when its host ends after a fork",
        "agent/costs.py",
        "at = answered_position(self._log.current, state.head, unit.messages)",
        "at = state.head",
        test=_BATCHES,
    ),
    Mutant(
        "a reply that its service keeps is asked for again after a fork",
        "records/messages/kept.py",
        "(message for message in newest_first if not message.announces_birth)",
        "iter(newest_first)",
        test="tests/system/test_background.py",
    ),
)
