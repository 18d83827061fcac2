"""Files that a prompt mentions, to be attached: ``@plan.png``, or a path that was pasted or dropped.

    files_in("What is wrong in @plan.png?")        # [Path("plan.png")]
    files_in("'/home/me/my plan.png'")             # as terminals paste a file that was dropped on them

A word that begins with ``@``, ``/``, ``~/`` or ``file://`` is a mention when it names a file that a model can look at.
All other words are text, and the text stays as it is.
"""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ikigai_actors.attachments import Attachment, attachment, check_sum, media_of
from ikigai_actors.errors import BadInput

_WORD = re.compile(r"""(?:^|(?<=[\s(]))(@?)(?:"([^"\n]+)"|'([^'\n]+)'|((?:\\.|[^\s"'\\(])(?:\\.|[^\s"'\\])*))""")
_TRAILING = ".,;:!?)"
_SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".wav", ".mp3", ".ogg", ".flac", ".m4a"}


def files_in(text: str) -> list[Path]:
    """Return the files that a text mentions, each once, in order.

    Raises:
        BadInput: ``@`` names an attachment by its ending, and there is no such file.
    """
    paths: dict[Path, None] = {}
    for at, double, single, bare in _WORD.findall(text):
        word = double or single or re.sub(r"\\(.)", r"\1", bare)
        if not at and not word.startswith(("/", "~/", "file://")):
            continue
        path = _known(word) or _known(word.rstrip(_TRAILING))
        if path is not None:
            paths[path] = None
        elif at and Path(word.rstrip(_TRAILING)).suffix.lower() in _SUFFIXES:
            raise BadInput(f"There is no file {word!r} to attach.")
    return list(paths)


def is_command(line: str) -> bool:
    """Return whether a line is a slash command, rather than a prompt that begins with a pasted path."""
    return line.startswith("/") and not ("/" in line.split()[0][1:] and _begins_with_file(line))


def attachments_in(text: str) -> tuple[Attachment, ...]:
    """Return the files that a text mentions, read and checked. Raises `BadInput`."""
    attachments = tuple(attachment(path) for path in files_in(text))
    check_sum(attachments)
    return attachments


def _begins_with_file(line: str) -> bool:
    match = _WORD.match(line)
    return match is not None and _known(re.sub(r"\\(.)", r"\1", match[0])) is not None


def _known(word: str) -> Path | None:
    """Return the path of a file with this name, if a model can look at the file; else None."""
    try:
        path = Path(unquote(urlsplit(word).path) if word.startswith("file://") else word).expanduser()
        if not path.is_file():
            return None
        with path.open("rb") as file:
            head = file.read(16)
        return path if media_of(head) is not None else None
    except (OSError, ValueError, RuntimeError):
        return None
