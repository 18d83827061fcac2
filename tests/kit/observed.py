"""Take the picture of the observer's page that the README shows: ``python -m tests.kit.observed [FILE]``.

A team works for some seconds, as it says in `PROMPTS`; so two pictures differ in their times. Needs Chromium.
"""

import asyncio
import base64
import sys
import time
from pathlib import Path

from ikigai_actors import ActorSystem, OfflineProvider, tool
from ikigai_actors.sight import Observer, observe
from tests.kit.chromium import CHROMIUM, chromium_page

PICTURE = Path(__file__).parents[2] / "docs" / "screens" / "observer.png"
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


async def photograph(observer: Observer, file: Path) -> None:
    """Write what the page shows."""
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
        rows = "[...document.querySelectorAll('[role=row]')]"
        await page.shows(f"{rows}.find(row => row.getAttribute('aria-label').startsWith('{CHOSEN},')).click()")
        await page.until("document.querySelector('.m.live') !== null")
        await asyncio.sleep(2)
        shot = await page.call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(shot["data"]))


def main(file: Path) -> None:
    """Play, and take the picture."""
    with (
        ActorSystem.open(":memory:", OfflineProvider(pace=0.35), tools=[forecast]) as system,
        observe(system) as observer,
    ):
        play(system)
        asyncio.run(photograph(observer, file))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
