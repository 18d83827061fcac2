"""The first picture of the whole screen, drawn before Textual and the system are imported.

The picture has the box of the prompt and the last line where the application draws them, and the module imports nothing
that takes long. The colours are the terminal's own, which fit a dark and a light background. Pure: a size in,
characters for a terminal out.
"""

BOX_COLUMNS = 160
"""The most columns of the prompt's box."""

STARTING = "starting …"
"""The text at the edge of the box until the agents are known."""

SCREENS = (("F3", "tree"), ("F4", "agents"), ("^P", "find"), ("F1", "keys"))
"""The keys of the screens, at the right of the last line. In a narrow window the first ones are left out first."""

_LEAST = (20, 6)
"""The columns and lines of the smallest window that has room for the box."""

_QUIET, _KEY, _END = "\x1b[90m", "\x1b[36m", "\x1b[m"


def first_picture(columns: int, lines: int, coloured: bool = True) -> str:
    """Return the sequence that draws the box and the last line, and puts the cursor where the prompt will be."""
    if columns < _LEAST[0] or lines < _LEAST[1]:
        return ""
    width = min(columns, BOX_COLUMNS)
    drawn = [
        f"{_QUIET}╭─ {STARTING} {'─' * (width - len(STARTING) - 5)}╮{_END}",
        f"{_QUIET}│ › {' ' * (width - 6)} │{_END}",
        f"{_QUIET}╰{'─' * (width - 2)}╯{_END}",
        _foot(width),
    ]
    shown = "".join(f"\x1b[{lines - 3 + at};1H{line}" for at, line in enumerate(drawn)) + f"\x1b[{lines - 2};5H"
    return shown if coloured else shown.replace(_QUIET, "").replace(_KEY, "").replace(_END, "")


def working(lines: int, what: str) -> str:
    """Return the sequence that writes the name of the present work above the box, and leaves the cursor in place."""
    return f"\x1b7\x1b[{lines - 4};1H\x1b[K {what} …\x1b8"


def _foot(width: int) -> str:
    keys = [*SCREENS]
    while keys and sum(len(f"{key} {what}  ") for key, what in keys) + 1 > width:
        keys.pop(0)
    room = width - sum(len(f"{key} {what}  ") for key, what in keys)
    return " " * room + "".join(f"{_KEY}{key}{_END}{_QUIET} {what}  {_END}" for key, what in keys)
