"""Mutants of words into turns.

nice python -m tests.mutants --steering --examples 200 --seconds 60
"""

from tests.mutants import Edit, Mutant

_MACHINE, _WORDS = "tests/agent/turn/test_words.py", "records/mail/words.py"

_MAY_GO_ON = "    return state.status is Status.RUNNING and may_ask(state)"

_ASKS_AGAIN = """    request = state.request + 1
    after = advance(state, messages, request=request, retries=0, service_waits=0, hold=None)
    return Step(after, LogUnit(state.uuid, messages, asks=True), (RequestModel(request),))


def _cut_off("""

_GOES_ON = """    return Step(advance(state, messages), LogUnit(state.uuid, messages, asks=True))


def _cut_off("""

STEERING_MUTANTS = (
    Mutant(
        "the mail of a word is not marked as read",
        "records/log/append.py",
        "            take_words(tx, unit.agent, unit.words, unit.messages[-1].created_at)\n",
        "            pass\n",
    ),
    Mutant(
        "a word is marked as read, and its message is not written",
        "agent/turn/machine.py",
        "messages=(*unit.messages, *messages), words=",
        "messages=unit.messages, words=",
        (Edit("agent/turn/machine.py", "state=advance(state, messages), unit=unit", "unit=unit"),),
    ),
    Mutant(
        "a word enters when it arrives",
        "agent/backlog.py",
        "            case Phase.WAITING_FOR_MODEL if at_once:\n                return on.TakeWords(at_once)\n",
        "            case Phase.WAITING_FOR_MODEL:\n                return on.TakeWords()\n",
        (
            Edit(
                "agent/turn/machine.py",
                _ASKS_AGAIN,
                _GOES_ON,
            ),
        ),
    ),
    Mutant(
        "a word enters before the results of a reply",
        "agent/turn/machine.py",
        "    if not (isinstance(unit, LogUnit) and unit.asks and unit.may_wait):",
        "    if not (isinstance(unit, LogUnit) and state.turn):",
    ),
    Mutant(
        "a word is kept in memory only",
        _WORDS,
        "        return KeptWord(super().write(tx, locked), self._data, self._receipt)",
        "        mail = super().write(tx, locked)\n"
        '        tx.run("withdraw_prompt", recipient=self._recipient, id=mail.id)\n'
        "        return KeptWord(mail, self._data, self._receipt)",
    ),
    Mutant(
        "a word enters the unit that asks for a summary",
        "agent/turn/machine.py",
        "unit.asks and unit.may_wait):",
        "unit.asks):",
        test=_MACHINE,
    ),
    Mutant(
        "a word goes to the supervisor",
        "system/directory.py",
        "        word = KeepWord(uuid, text,",
        "        above = self.store.read(lambda tx: registry.get(tx, uuid)).supervisor_uuid or uuid\n"
        "        word = KeepWord(above, text,",
    ),
    Mutant(
        "a word enters behind the reply that ends its turn",
        "agent/turn/machine.py",
        "unit.asks and unit.may_wait):",
        "(unit.asks or unit.turn == 0) and unit.may_wait):",
        (
            Edit(
                "agent/turn/machine.py",
                _MAY_GO_ON,
                "    return False",
            ),
        ),
    ),
    Mutant(
        "the newest word comes first",
        "agent/backlog.py",
        "        return tuple(self._words)",
        "        return tuple(reversed(self._words))",
    ),
    Mutant(
        "a withdrawn word enters",
        _WORDS,
        "    if gone := asked - {row[0] for row in rows}:",
        "    if gone := asked - asked - {row[0] for row in rows}:",
    ),
    Mutant(
        "an event is not decided again where a word was withdrawn",
        "agent/actor.py",
        "        self._decide_on(self._deciding, asked, again)\n",
        "        pass\n",
    ),
    Mutant(
        "a receipt comes before the commit",
        "system/system.py",
        "            word.receipt.kept.settle(word.mail.id)\n",
        "            word.receipt.kept.settle(word.mail.id)\n            word.receipt.settle(Steered(1, 1))\n",
        (
            Edit(
                "system/system.py",
                "from ikigai_actors.records.mail.words import KeptWord\n",
                "from ikigai_actors.records.mail.words import KeptWord\n"
                "from ikigai_actors.records.messages.steered import Steered\n",
            ),
        ),
    ),
    Mutant(
        "who waits for a word is not told that it has entered",
        "agent/actor.py",
        "                    self.runtime.processes.entered(message)",
        "                    pass",
    ),
    Mutant(
        "an agent that is stopped goes on with a word",
        "agent/turn/machine.py",
        _MAY_GO_ON,
        "    return may_ask(state)",
    ),
    Mutant(
        "a word goes on beyond max_steps",
        "agent/turn/machine.py",
        _MAY_GO_ON,
        "    return state.status is Status.RUNNING",
        test=_MACHINE,
    ),
    Mutant(
        "a sibling may steer",
        _WORDS,
        "    if sender not in {row[0]",
        "    if sender in {row[0]",
    ),
    Mutant(
        "the reply to a request that was cut off is taken",
        "agent/turn/machine.py",
        _ASKS_AGAIN,
        _GOES_ON,
        (
            Edit(
                "agent/actor.py",
                "        asked = self._effects.is_asking\n        partial, spent = self._effects.cancel()\n"
                "        return replace(event, partial=partial, spent=spent, asked=asked)",
                "        return replace(event, asked=True)",
            ),
        ),
    ),
    Mutant(
        "what a request has cost that was cut off is forgotten",
        "agent/turn/machine.py",
        "        return kind, reason, spent_data(spent)",
        "        return kind, reason, NO_DATA",
        test=_MACHINE,
    ),
    Mutant(
        "a value is taken though words wait",
        "agent/turn/tool_steps.py",
        "call.name == GIVE_RESULT and has_words and",
        "call.name == GIVE_RESULT and False and",
        test=_MACHINE,
    ),
    Mutant(
        "a word waits for the grant of a budget",
        "agent/backlog.py",
        "            case Phase.WAITING_FOR_BUDGET:\n                return on.TakeWords()\n",
        "            case Phase.WAITING_FOR_BUDGET:\n                return None\n",
        test="tests/agent/test_backlog.py",
    ),
)
"""All of them."""

STEERING_MUTANTS_OF_HOSTS = (
    Mutant(
        "who waits for a word is forgotten as its agent moves",
        "system/host/processes.py",
        "receipts=tuple((mail, caller) for mail, some in receipts.items() for caller in some)",
        "receipts=()",
    ),
)
"""Those that take several hosts."""
