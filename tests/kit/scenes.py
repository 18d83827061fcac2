"""The main screens of the application, played with a team that always says the same, as text and as SVG.

The first agent has a name, since its two words follow from its uuid. What else differs from run to run is made the
same: uuids, times, the sign of the spinner.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors import ActorSystem, Reply, Request, ScriptedProvider, ToolCall, Usage, tool
from ikigai_actors.providers.scripted import Script, ScriptedReply
from ikigai_actors.shell.app.widgets.approval_box import QUIET
from ikigai_actors.shell.app.widgets.talk_lines import SPINNER
from ikigai_actors.system.handles.ref import System
from tests.kit.app_pilot import Stage, on_stage
from tests.kit.blocking_provider import DEADLINE

SIZES = ((80, 24), (100, 30), (200, 60))
"""Columns and lines: the pictures have the first."""

ANSWER = """Saturday suits: it stays dry. The order, by price:

| tea | farms | a kilo |
|-----|------:|-------:|
| Assam | 3 | 14 |
| Sencha, 煎茶 | 1 | 31 |

1. *buyer* asks the farms;
2. *seller* writes the offer.

```python
def margin(cost: float, price: float) -> float:
    return (price - cost) / price
```"""

PRICES = """[tea]
input = 3.0
output = 15.0
"""


ORDER = """Assam, 12 kilos, from the three farms;
Sencha, 4 kilos, from Uji.
Deliver on Friday, and pay by the end of the month."""


@tool(policy="ask")
def order(text: str) -> str:
    """Order something from the farms."""
    return "ordered"


@tool(policy="allow")
def forecast(day: str) -> str:
    """The weather of a day."""
    return f"{day}: dry, 18 degrees\nwind from the west\nno frost at night"


def _reply(text: str, sent: int, *calls: ToolCall, thinking: str = "") -> Reply:
    thought = ({"type": "thinking", "thinking": thinking},) if thinking else ()
    used = tuple(
        {"type": "tool_use", "id": f"call-{number}", "name": call.name, "input": dict(call.input)}
        for number, call in enumerate(calls)
    )
    blocks = (*thought, *([{"type": "text", "text": text}] if text else []), *used)
    stop_reason = "tool_use" if calls else "end_turn"
    return Reply(text, calls, stop_reason, Usage(sent, 8 + len(text) // 4), blocks, "tea-1")


async def _for_ever(_: Request) -> ScriptedReply:
    await asyncio.Event().wait()
    raise AssertionError("Nobody ends this turn.")


def _team() -> ScriptedProvider:
    call = ToolCall("forecast", {"day": "Saturday"})
    scripts: dict[str | None, Script] = {
        "planner": [
            _reply("", 410, call, thinking="Is it dry on Saturday? I look."),
            _reply(ANSWER, 520),
            _reply("", 560, ToolCall("order", {"text": ORDER})),
        ],
        "buyer": [_reply("Three farms answered.", 640)],
        "seller": _for_ever,
        "clerk": [_reply("Filed.", 95)],
    }
    return ScriptedProvider(scripts)


def _prepare(system: ActorSystem) -> None:
    root = system.root
    root.rename("planner")
    root.prompt("Plan the tea fair. Which day, and what do we order?").get(timeout=DEADLINE)
    buyer, seller = root.fork("Ask the farms.", name="buyer"), root.fork(name="seller")
    clerk = seller.fork("File the offer.", name="clerk")
    for agent in (buyer, clerk):
        agent.reply(timeout=DEADLINE)
    seller.aio.prompt("Write the offer.")
    buyer.send(root, "Assam is dear this year: 14 a kilo.\nI ask for a sample.")
    clerk.send(root, "The offer is filed.")
    clerk.send(seller, "Which fair is it?")
    system.documents.write("plan/fair.md", "# The fair\n\nOn Friday.", author=root)
    system.documents.write("plan/fair.md", "# The fair\n\nOn **Saturday**.\n\n- tea\n- cups", author=buyer)
    system.documents.write("stall.md", "Two tables.", author=root)
    system._touch(root)


class Scene(NamedTuple):
    """One screen."""

    keys: tuple[str, ...]
    """What is pressed to come here from the talk."""
    pattern: str
    """Told by the screen when it is there."""
    loaded: str = ""
    """Told by the screen when it can take what is pressed after the first key."""
    back: tuple[str, ...] = ("escape",)
    """What is pressed to go back to the talk."""
    prompt: str = ""
    """What is said before that."""


SCENES: Mapping[str, Scene] = {
    "find": Scene(("ctrl+p", "s", "e"), r"seller[\s\S]*/supervise"),
    "talk": Scene((), r"└ Saturday[\s\S]*2 new mail", back=()),
    "tree": Scene(("f3",), r"seller  1 mail[\s\S]*clerk", back=("f3",)),
    "agents": Scene(("f4", "less_than_sign"), r"agent ▾[\s\S]*seller +thinking", "seller"),
    "mail": Scene(("f5", "down", "enter"), r"mail 1 from buyer[\s\S]*I ask for a sample", "The offer is filed"),
    "documents": Scene(("f6", "enter"), r"On Saturday[\s\S]*written by buyer", r"\.md"),
    "keys": Scene(("f1",), r"Enter, Ctrl\+J"),
    "menu": Scene(("/", "f", "o"), "Fork an agent", back=("escape", "ctrl+u")),
    "question": Scene((), "Esc later", back=(), prompt="Order it."),
}
"""By name. Nothing comes after the question, which stays."""


class Shown(NamedTuple):
    """One screen, as it was shown."""

    text: str
    svg: str
    """Empty for a large window."""


def play(
    directory: Path, wanted: Mapping[str, str], sizes: Sequence[tuple[int, int]] = SIZES, theme: str = "dark"
) -> dict[str, Shown]:
    """Play all scenes one after another, and resize the window in each.

    Args:
        directory: an empty one.
        wanted: the texts that are known to be right: a scene that looks so is waited for no longer. Others are taken
            when the screen has come to rest.
        sizes: columns and lines.
        theme: a word of ``/settings theme``.

    Returns:
        The screens, by names like ``talk-80``.
    """
    shown: dict[str, Shown] = {}

    async def show(stage: Stage) -> None:
        for name, scene in SCENES.items():
            if scene.prompt:
                await stage.say(scene.prompt)
                await stage.expect("asks you")
                stage.watch.seconds += QUIET
            await stage.press(*scene.keys[:1])
            await stage.expect(scene.loaded)
            await stage.press(*scene.keys[1:])
            for columns, lines in sizes:
                await stage.resize(columns, lines)
                await stage.expect(scene.pattern)
                await _rest(stage, wanted.get(f"{name}-{columns}"))
                picture = stage.application.export_screenshot(title=f"ikigai: {name}") if columns == 80 else ""
                svg = same(stage.system, self_contained(picture))
                shown[f"{name}-{columns}"] = Shown(same(stage.system, stage.text) + "\n", svg)
            await stage.press(*scene.back)
            await stage.resize(*sizes[0])

    (directory / "theme").write_text(theme, encoding="utf-8")
    prices = directory / "prices.toml"
    prices.write_text(PRICES, encoding="utf-8")
    budget = {"usd": 0.05}
    options: dict[str, Any] = {"tools": [forecast, order], "prices": prices, "budget": budget, "approvals": "ask"}
    with ActorSystem.open("sqlite:///:memory:", _team(), **options) as system:
        _prepare(system)
        on_stage(system, show, sizes[0], history=directory / "history", provider="tea")
    return shown


async def _rest(stage: Stage, wanted: str | None) -> None:
    """Wait until the screen looks as it is wanted, or three moments have left it as it is."""
    text, moments = "", list[int]()

    def rests() -> bool:
        nonlocal text, moments
        now = same(stage.system, stage.text)
        if now != text:
            text, moments = now, []
        if (moment := id(stage.application.main.snapshot)) not in moments[-1:]:
            moments.append(moment)
        return f"{now}\n" == wanted or len(moments) > 3

    await stage.until(rests, "rest")


def self_contained(svg: str) -> str:
    """The picture without the fonts that it would load from elsewhere, and the number that follows the text."""
    svg = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    return re.sub(r"terminal-\d+", "terminal", svg)


def same(system: System, shown: str) -> str:
    """What is shown, without what differs from run to run; as wide as before."""
    for number, record in enumerate(system.agents()):
        for length in (len(record.uuid), 6):
            shown = shown.replace(record.uuid[:length], str(number) * length)
    shown = re.sub(f"[{SPINNER}]", SPINNER[0], shown.replace("&#160;", "\xa0"))
    shown = re.sub(r"[ \xa0\d]\d([ \xa0])s\b", r"\g<1>0\g<1>s", shown)
    shown = re.sub(r"[ \xa0]{2}0[ \xa0]s(?=[ \xa0]*│)", lambda age: age[0][0] * 5, shown)  # since a heartbeat
    return re.sub(r"\d{4}-\d\d-\d\d([ \xa0])\d\d:\d\d:\d\d", r"2026-01-01\g<1>12:00:00", shown)
