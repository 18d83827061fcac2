"""Take the pictures of the observer's page, at work and with its inbox: ``python -m tests.kit.observed [DIRECTORY]``.

A team works for some seconds, as it says in `PROMPTS`; so two pictures differ in their times. Needs Chromium.
"""

import asyncio
import base64
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from ikigai_actors import ActorSystem, OfflineProvider, tool
from ikigai_actors.sight import Observer, observe
from tests.kit.chromium import CHROMIUM, ChromiumPage, chromium_page

PICTURES = Path(__file__).parents[2] / "docs" / "screens"
SIZE = (1280, 640)
CHOSEN = "seller"

TEAM = {"shop": ("buyer", "seller", "press-office"), "buyer": ("assam", "sencha"), "press-office": ("posters",)}

PROMPTS = (
    ("seller", "What do we ask for a kilo of Assam?"),
    ("assam", '@forecast {"day": "Saturday"} @then The farm has forty kilos, and wants fourteen a kilo.'),
    ("sencha", "Ask whether the harvest is in, and what it costs."),
    ("buyer", '@wait {"agents": ["assam", "sencha"], "timeout": 30}'),
    ("posters", '@forecast {"day": "Sunday"} @then @forecast {"day": "Monday"}'),
    ("seller", "Write the offer, and tell the press office when it is done. It goes to all who asked."),
    ("press-office", "Which day suits the opening?"),
)


@tool(policy="allow", timeout=60)
def forecast(day: str) -> str:
    """The weather of a day."""
    time.sleep(3)
    return f"{day}: dry, 18 degrees"


def play(system: ActorSystem) -> None:
    """Let the team begin to work."""
    agents = {"shop": system.root.fork(name="shop")}
    for above, names in TEAM.items():
        for name in names:
            agents[name] = agents[above].fork(name=name)
    for name, text in PROMPTS:
        agents[name].prompt(text)
        time.sleep(0.7)
    system.send("press-office", "The offer leaves today.")
    time.sleep(9)
    agents["posters"].fork("Try it in blue.", name="posters-blue")


@tool(policy="ask")
def order(what: str, kilos: int, price: float) -> str:
    """Order from a farm."""
    return f"{kilos} kg of {what} are on their way"


STAND = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "enum": ["at the river", "in the old hall"], "title": "Where we stand"},
        "tables": {"type": "integer", "minimum": 1, "title": "Tables"},
        "music": {"type": "boolean", "title": "Music in the evening"},
    },
    "required": ["place"],
}

ASKED: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "press-office": ("ask_person", {"question": "The fair asks how we come. What do I say?", "form": STAND}),
    "assam": ("order", {"what": "Assam", "kilos": 40, "price": 14.0}),
}
"""The call by which each of these agents asks a person."""


def ask(system: ActorSystem) -> None:
    """Let the team ask a person."""
    for count, (name, (called, arguments)) in enumerate(ASKED.items(), 1):
        system.agent(name).prompt(f"@{called} {json.dumps(arguments)}")
        while len(system.questions.pending()) < count:
            time.sleep(0.1)


@asynccontextmanager
async def opened(observer: Observer) -> AsyncIterator[ChromiumPage]:
    """The page in the colours of the pictures."""
    assert CHROMIUM is not None, "there is no Chromium"
    async with chromium_page(CHROMIUM) as page:
        width, height = SIZE
        await page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        await page.open(observer.link)
        await page.until("document.documentElement.dataset.ready === '1'")
        await page.shows(
            "document.documentElement.dataset.theme === 'dark' || document.getElementById('theme').click()"
        )
        for _ in range(2):
            await page.shows("document.getElementById('in').click()")
        yield page


async def photograph(page: ChromiumPage, file: Path) -> None:
    """Write what the page shows."""
    await asyncio.sleep(2)
    shot = await page.call("Page.captureScreenshot", format="png")
    file.write_bytes(base64.b64decode(shot["data"]))


async def photograph_work(observer: Observer, file: Path) -> None:
    """Take the team at its work."""
    async with opened(observer) as page:
        rows = "[...document.querySelectorAll('[role=row]')]"
        await page.shows(f"{rows}.find(row => row.getAttribute('aria-label').startsWith('{CHOSEN},')).click()")
        await page.until("document.querySelector('.m.live') !== null")
        await photograph(page, file)


async def photograph_inbox(observer: Observer, file: Path) -> None:
    """Take the inbox, with what a person has filled in."""
    async with opened(observer) as page:
        await page.until(f"document.getElementById('asked').textContent === '? {len(ASKED)} in the inbox'")
        await page.shows("document.getElementById('asked').click()")
        await page.until(f"document.querySelectorAll('#panel .asks').length === {len(ASKED)}")
        for name, value in (("place", "in the old hall"), ("tables", "2")):
            await page.shows(f"document.querySelector('#panel [name={name}]').value = '{value}'")
        await photograph(page, file)


def main(directory: Path) -> None:
    """Play, and take the pictures."""
    with (
        ActorSystem.open(":memory:", OfflineProvider(pace=0.35), tools=[forecast, order], approvals="ask") as system,
        observe(system) as observer,
    ):
        play(system)
        asyncio.run(photograph_work(observer, directory / "observer.png"))
        ask(system)
        asyncio.run(photograph_inbox(observer, directory / "inbox.png"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
