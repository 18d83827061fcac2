"""``ikigai serve`` in a real browser: type, fork, navigate, interrupt, and no request to anywhere else.

    pip install playwright
    python -m tests.kit.browser             # chromium of the PATH, or the one that $CHROMIUM names

Not among the tests that ``python -m tests`` runs, since it needs a browser. Fails when there is none.
"""

import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.kit.program import PATIENCE, Program


class Drawn:
    """What the server has sent to the page, and what the page has asked for."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self.text = ""
        self.asked: list[str] = []
        self.problems: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda told: self.problems.append(told.text) if told.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("websocket", lambda socket: socket.on("framereceived", self._take))

    def expect(self, pattern: str) -> None:
        """Wait until this is sent, after what was expected before."""
        until = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self.text)) is None:
            assert time.monotonic() < until, f"Not shown: {pattern!r}: {self.text[-3000:]!r} {self.problems}"
            self._page.wait_for_timeout(20)  # its events come meanwhile
        self.text = self.text[found.end() :]

    def say(self, line: str) -> None:
        """Type a line and press Enter."""
        self._page.keyboard.type(line)
        self._page.keyboard.press("Enter")

    def _take(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes):
            self.text += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", frame.decode())


def main(picture: Path | None = None) -> None:
    """Run it; save a picture of the page there, if anywhere."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no chromium on the PATH: install one, or name it by $CHROMIUM.")
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        database = ("--database", str(Path(directory) / "tea.db"), "--model", "offline:slow")
        with Program.by_pipe(*database, "serve", notices=True) as program:
            link = program.expect(r"http://127\.0\.0\.1:\d+/\?token=\S+").group()
            page = browser.new_page(viewport={"width": 900, "height": 600})
            drawn = Drawn(page)
            page.goto(link)
            drawn.expect(rf"attached to pid {program.process.pid}")
            page.wait_for_selector("body.-first-byte")
            page.focus("textarea.xterm-helper-textarea")
            drawn.say("Our shop sells tea.")
            drawn.expect("You said")
            drawn.say("/fork --name young")
            drawn.expect("inherits")
            page.keyboard.press("F3")
            drawn.expect("─ ")
            page.keyboard.press("Escape")
            page.wait_for_timeout(500)  # else the next key is one with Alt
            drawn.say("Speak slowly about many things. " * 10)
            drawn.expect("in a turn")
            page.keyboard.press("Escape")
            drawn.expect("interrupted")
            if picture is not None:
                page.screenshot(path=picture)
            assert page.url == link.partition("?")[0], page.url
            base = link.partition("?")[0]
            elsewhere = [url for url in drawn.asked if not url.startswith((base, "data:"))]
            assert not elsewhere, elsewhere
            assert not drawn.problems, drawn.problems
            page.keyboard.press("Control+d")
            page.wait_for_selector("body.-closed")
        browser.close()
    print("The browser showed the shell; nothing was asked of anywhere else.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
