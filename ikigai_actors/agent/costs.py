"""Estimates what one agent's requests may cost, and counts what they have cost. Its actor writes both into the units.

Nobody knows beforehand how long a reply will be, and no tokeniser is at hand. So there are two numbers for a request:
the *expected* need, estimated from the agent's past, and the highest possible need, which a *strict* budget reserves.

    input     the tokens that the last reply reported, and those of everything added since, also to the system prompt
              and the tools. 3 bytes count as a token, at worst 1 byte. If no reply has reported tokens, the whole
              request is estimated in this way.
    output    expected: twice what 19 of 20 of the latest replies stayed below; at most: the setting ``max_tokens``

Providers say by their attribute ``counts`` whether they bill by such tokens. If it is False (code, scripts), the size
of a request is ignored, and a reply without usage costs nothing. If it is missing, a request may be sent while the
budget has anything left.
"""

import logging
from collections import deque
from collections.abc import Mapping
from functools import cache
from itertools import islice
from math import ceil
from typing import Any, NamedTuple

from ikigai_actors.agent.agent_log import AgentLog
from ikigai_actors.agent.batched import answered_position
from ikigai_actors.agent.runtime import Runtime
from ikigai_actors.agent.toolbox import finds, size_as_json
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.compaction import answer_tokens
from ikigai_actors.agent.turn.elision import text_to_model
from ikigai_actors.agent.turn.found_tools import NOTHING_FOUND, FoundTools, found_in
from ikigai_actors.agent.turn.merging import asked_agent, talk_behind
from ikigai_actors.agent.turn.skills import system_of
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.frozen import replace
from ikigai_actors.providers.base import Reply, Spent, Usage, reply_tokens
from ikigai_actors.providers.prices import Price
from ikigai_actors.records.agents.labels import set_id
from ikigai_actors.records.budgets.amounts import NO_CHARGE, Amount, Charge, Held, Need, SpendingRow
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import SPENDING, Kind, Message
from ikigai_actors.records.messages.outputs import expected_in

USUAL_MAX_TOKENS = 16_000
"""The most tokens of a reply, if neither a setting nor the provider has a limit."""

FIRST_OUTPUT = 512
"""The tokens that are expected of an agent's first reply."""

REPLIES = 64
"""The number of the latest replies from which the next one's length is expected."""

_BYTES = 3
"""Bytes that are expected to be a token."""

_OF_A_BLOCK, _OF_TOOLS = 16, 1_024
"""Tokens that a service may add for a block, and for tools, at worst."""

_OF_AN_OPENING = 300
"""Bytes around the text of a summary, and around the prompt that was open."""


logger = logging.getLogger(__name__)


class Model(NamedTuple):
    """The facts on which the cost of the next model request depends."""

    name: str
    """The name, ``provider:model``."""
    counts: bool | None
    """Whether the model bills by tokens; None if its provider does not say."""
    own_code: bool
    max_tokens: int
    price: Price | None
    thinking: int = 0
    overhead: int = 0
    """The bytes of the system prompt and of the tools."""
    by_reference: bool = False
    """Whether the model's service loads a tool's description when a result refers to the tool."""


class Costs:
    """Estimates and counts the costs of one agent's requests. Only the agent's actor calls these methods."""

    def __init__(self, runtime: Runtime, log: AgentLog) -> None:
        self._runtime, self._log = runtime, log
        self._outputs: deque[int] | None = None  # of the latest replies; None until they are looked for

    def filled(self, before: State, step: Step, event: object, asked: bool) -> Step:
        """Complete a step: its unit records the cost of the request that ends, and the estimated cost of the next one.

        Args:
            before: the state before the step.
            event: the event that led to the step.
            asked: whether the request that ends was sent.
        """
        unit = step.unit
        if not isinstance(unit, LogUnit):
            return step
        charge = unit.charge
        if isinstance(before.hold, Held) and step.state.hold is None:
            refused = event.charge if isinstance(event, on.SummaryFailed) else None
            charge = refused or self._charge(before, event, asked)
        # of the one message with a usage
        own_charge = charge if asked and isinstance(event, on.ReplyReceived) else None
        used = [
            message for message in unit.messages if message.kind in SPENDING and message.data.get("usage") is not None
        ]
        spent = tuple([self._row(before, message, own_charge) for message in used])
        if unit.asks:
            unit = replace(unit, charge=charge, spent=spent or unit.spent, need=self._need(step.state, unit))
        elif charge is not unit.charge or spent:
            unit = replace(unit, charge=charge, spent=spent)
        return step if unit is step.unit else replace(step, unit=unit)

    def forget(self) -> None:
        """Drop the counts of past replies together with the log. They are read again when needed."""
        self._outputs = None

    def _need(self, state: State, unit: LogUnit) -> Need:
        turn, asked = unit.turn or state.turn, self._asked(state)
        at = answered_position(self._log.current, state.head, unit.messages)
        known_tools = self._found(asked, unit.messages)
        model, is_beside = self._model(asked, known_tools), _is_beside(state)
        if is_beside and model is not None and model.own_code:
            model = None
        if model is None:  # the request will fail before it leaves
            return Need(at, turn, Amount(0, 0), Amount(0, 0))
        further = talk_behind(asked) if is_beside else ()
        known, added, blocks = self._input(asked, unit.messages, further, model, known_tools)
        tools = _OF_TOOLS if model.overhead else 0
        base = 0 if known is None else known.all_tokens
        if known is None:
            added += model.overhead
        expected, most = base + ceil(added / _BYTES), base + added + _OF_A_BLOCK * blocks + tools
        if model.counts is False:
            expected = most = base - (0 if known is None else known.output_tokens)
        output = 0 if model.own_code else min(FIRST_OUTPUT, model.max_tokens)
        if outputs := self._latest_outputs():
            output = min(model.max_tokens, 2 * sorted(outputs)[ceil(0.95 * len(outputs)) - 1])
        price = (model.price or Price(0, 0, 0, 0)).at(expected)
        rate = price.input
        if known is not None and (read := known.all_tokens - known.output_tokens):
            rate = ceil(price.of(Usage(known.input_tokens, 0, *_cached(known))) * 1_000_000 / read)
        worst = (model.price or price).dearest(most)
        dearest = max(worst.input, worst.cache_write, worst.cache_read)
        return Need(
            at,
            turn,
            Amount(expected, output, _cost(expected, rate), price.output, expected if model.counts else 1),
            Amount(most, model.max_tokens, _cost(most, dearest), worst.output),
            model.price is not None or model.counts is False,
            model.thinking,
            model.name,
        )

    def _asked(self, state: State) -> State:
        """Return the state of the agent whose model is asked: during a merge, that of the merged agent."""
        if state.merging is None or state.merging.source is None or (child := self._log.child) is None:
            return state
        return asked_agent(state, child.view(state.merging.source.head))

    def _found(self, state: State, new: tuple[Message, ...]) -> FoundTools:
        """Return the tools that the model has found. ``new`` are the messages of the unit, which no log has yet."""
        log = self._log.current if state.merging is None else self._log.child
        head = state.head - len(new)
        return NOTHING_FOUND if log is None or not head else found_in(log, head, new)

    def _model(self, state: State, known_tools: FoundTools = NOTHING_FOUND) -> Model | None:
        """The model that will be asked, with the tools that it has found; None when none can be asked."""
        runtime = self._runtime
        settings, is_beside = {**runtime.providers.settings, **state.view.settings}, _is_beside(state)
        try:
            models = runtime.providers.asked(settings, summary=is_beside)
            chosen = models[min(state.passed, len(models) - 1)]
            counts, own_code, name = chosen.counts, chosen.own_code, str(chosen)
            by_reference = chosen.refers_to_tools
            overhead = 0 if counts is False else self._overhead(settings, state.output, known_tools, by_reference)
            most = answer_tokens(settings) if is_beside else usual_output(settings, chosen.provider)
        except BaseException:  # other people's code; the request reports it
            return None
        price = runtime.prices.of_model(name)
        if price is None and counts is True:
            _tell_of_no_price(name)
        thinking = settings.get("thinking")
        reserved = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
        return Model(
            name,
            counts,
            own_code,
            most,
            price,
            reserved if isinstance(reserved, int) else 0,
            overhead,
            by_reference,
        )

    def _counting(self, state: State) -> tuple[bool | None, str]:
        """Return whether the model that was asked bills by tokens, and its name.

        None and ``""`` if it is not available any more.
        """
        providers = self._runtime.providers
        try:
            models = providers.asked({**providers.settings, **state.view.settings}, summary=_is_beside(state))
            chosen = models[min(state.passed, len(models) - 1)]
            return chosen.counts, str(chosen)
        except BaseException:  # other people's code
            return None, ""

    def _overhead(
        self, settings: Mapping[str, Any], output: Mapping[str, Any] | None, known_tools: FoundTools, by_reference: bool
    ) -> int:
        """Return the bytes of the system prompt and the tools that a model reads.

        In a typed turn, with those for ``output``.
        """
        wanted = None if output is None else expected_in({"output": output})
        system = len(system_of(settings).encode(errors="replace"))
        return system + self._runtime.toolbox.size(
            settings, wanted, known_tools if finds(settings, by_reference) else None
        )

    def _grown(self, log: Log, spoken: Message, state: State, model: Model, known_tools: FoundTools) -> int:
        """Return by how many bytes the system prompt and the tools have grown since a reply of the same model."""
        settings, output = log.view(spoken.id).settings, state.output if spoken.id > state.turn else None
        before = found_in(log, spoken.id)
        if settings == state.view.settings and output == state.output and before == known_tools:
            return 0
        try:
            settings = {**self._runtime.providers.settings, **settings}
            return max(0, model.overhead - self._overhead(settings, output, before, model.by_reference))
        except BaseException:  # other people's code, whose tools are gone
            return model.overhead

    def _input(
        self,
        state: State,
        new: tuple[Message, ...],
        further: tuple[Message, ...],
        model: Model,
        known_tools: FoundTools,
    ) -> tuple[Usage | None, int, int]:
        """Return the latest reply's usage, the bytes added since (or all bytes), and the number of their blocks.

        ``new`` are the messages of the unit, ``further`` those that are sent after the history and are in no log. For a
        model that does not bill by tokens, bytes do not matter, so only its latest reply is looked up.
        """
        part = state.merging.part.messages if state.merging is not None and state.merging.part is not None else ()
        size, blocks = sum(map(_bytes, (*new, *part, *further))), len(new) + len(part) + len(further)
        log = self._log.current if state.merging is None else self._log.child
        head = state.head - len(new)
        if log is None or not head or part:
            return None, size, blocks
        end = state.compaction.plan.upto if state.compaction is not None else head
        for spoken in log.conversation(head, min(end, head)):
            message = spoken.message
            own = message.kind == Kind.ASSISTANT and message.data.get("model") == model.name
            own = own and log.is_shown_as(head, message.id)
            spent = message.spent if own else None
            if spent is not None:
                grown = 0 if model.counts is False else self._grown(log, message, state, model, known_tools)
                return spent.usage, size + grown, blocks
            if own and model.counts is False:
                break
            size, blocks = size + _bytes(message, log.elided(head)), blocks + 1
        opening = [entry for entry in log.opening(head) if entry is not None]
        return None, size + sum(map(_opening_bytes, opening)), blocks + len(opening)

    def _latest_outputs(self) -> deque[int]:
        if self._outputs is None:
            self._outputs = deque(maxlen=REPLIES)
            log = self._log.current
            spoken = (entry.message for entry in log.conversation(log.head)) if log is not None else iter(())
            for reply in islice((message for message in spoken if message.kind == Kind.ASSISTANT), REPLIES):
                if (spent := reply.spent) is not None:
                    self._outputs.appendleft(spent.usage.output_tokens)
        return self._outputs

    def _charge(self, state: State, event: object, asked: bool) -> Charge:
        held = state.hold
        assert isinstance(held, Held)
        if not asked:
            return NO_CHARGE
        spent: Spent | None = None
        received = 0
        free = False
        match event:
            case on.ReplyReceived(reply=Reply(usage=Usage() as usage, model=made_by, batched=batched)):
                if self._outputs is not None:
                    self._outputs.append(usage.output_tokens)
                name = event.model.partition(":")[2]
                return self._told(usage, made_by or name, event.model, batched)
            case on.SummaryReplied(reply=Reply(usage=Usage() as usage, model=made_by)):
                return self._told(usage, made_by or event.model.partition(":")[2], event.model)
            case on.ReplyFailed() | on.SummaryFailed():
                spent, received, free = event.spent, len(event.error.partial.encode(errors="replace")), event.error.free
            case on.Interrupt() | on.TakeWords():
                spent, received = event.spent, len(event.partial.encode(errors="replace"))
        counts, name = self._counting(self._asked(state))
        if free or (spent is None and counts is False):
            return NO_CHARGE
        if spent is None:
            return Charge(held.tokens, held.usd, held.risk_tokens, held.risk_usd)
        if held.strict:  # a service reports the tokens at the end: it may have counted more than it has reported
            counted = self._told(spent.usage, spent.model, name)
            return Charge(max(held.tokens, counted.tokens), max(held.usd, counted.usd))
        output = spent.usage.output_tokens
        if counts is not False:
            output = max(output, min(held.output, held.tokens), received // 2)
        usage = Usage(spent.usage.input_tokens, output, *_cached(spent.usage))
        counted = self._told(usage, spent.model, name)
        worst = held.tokens + held.risk_tokens, held.usd + held.risk_usd
        return Charge(counted.tokens, counted.usd, max(0, worst[0] - counted.tokens), max(0, worst[1] - counted.usd))

    def _row(self, state: State, message: Message, charge: Charge | None) -> SpendingRow:
        """Return the row of ``spending`` for a message with the usage that a service reported.

        ``charge`` is the cost; None computes it from that usage.
        """
        if charge is None:
            spent, model = message.spent, str(message.data.get("model", ""))
            assert spent is not None  # as it has a usage
            if not model and (asked := self._model(self._asked(state))) is not None:
                model = asked.name
            batched = bool(message.data.get("batched"))
            charge = self._told(spent.usage, spent.model or model.partition(":")[2], model, batched)
        labels = set_id(state.labels)
        return SpendingRow(message.agent_uuid, message.id, labels, message.created_at, charge.tokens, charge.usd)

    def _told(self, usage: Usage, made_by: str, model: str, batched: bool = False) -> Charge:
        """Return the charge for tokens that a service has reported."""
        price = self._runtime.prices.of_model(model, made_by)
        return Charge(usage.all_tokens, 0 if price is None else price.of(usage, batched))


def usual_output(settings: Mapping[str, Any], provider: object) -> int:
    """Return the most tokens of a reply, by these settings and the provider; `USUAL_MAX_TOKENS` if neither has a limit.

    Errors in the provider's attribute, which is other people's code, are ignored.
    """
    usual = getattr(provider, "max_tokens", None)
    most = reply_tokens(settings, usual if isinstance(usual, int) and usual > 0 else USUAL_MAX_TOKENS)
    return most if isinstance(most, int) and most > 0 else USUAL_MAX_TOKENS


@cache
def _tell_of_no_price(model: str) -> None:
    """Log, once in a process, that a model has no price, so budgets in dollars do not count it."""
    logger.warning("Model %s has no price: its tokens count, and no dollars. See ikigai prices %s.", model, model)


def _cached(usage: Usage) -> tuple[int, int, int]:
    return (
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
        usage.cache_creation_1h_input_tokens,
    )


def _cost(tokens: int, price: int) -> int:
    return -(-tokens * price // 1_000_000)


def _is_beside(state: State) -> bool:
    return state.compaction is not None or state.merging is not None


def _bytes(message: Message, elide: int = 0) -> int:
    verbatim = message.kind == Kind.USER or message.kind == Kind.ASSISTANT
    size = len((message.content if verbatim else text_to_model(message, elide)).encode(errors="replace"))
    if message.kind == Kind.ASSISTANT and (blocks := message.data.get("blocks") or message.data.get("tool_calls")):
        size += size_as_json(blocks)
    return size


def _opening_bytes(message: Message) -> int:
    return _bytes(message) + _OF_AN_OPENING
