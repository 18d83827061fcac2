"""Removal of keys from texts for people, since some errors quote the headers of a request. Pure."""

import re
from collections.abc import Iterable
from itertools import takewhile

_TELLING = 8
"""The fewest characters of a key that is looked for in texts. A shorter one, a stray letter or two, would turn half of
their words into brackets.
"""
_KEY = re.compile(r"sk-[a-z]+-[\w-]{8,}|sk-ant-[\w-]+|sk-[A-Za-z0-9]{20,}")
"""Text that looks like a key of Anthropic's or of OpenAI's."""


def without_keys(text: str, keys: Iterable[str | None]) -> str:
    """Return the text without these keys, and without anything that looks like a key."""
    for key in keys:
        for form in (key, key.strip(), repr(key)[1:-1]) if key else ():
            text = _without(form, text) if len(form) >= _TELLING else text
    return _KEY.sub("[key]", text)


def as_cause(error: BaseException, keys: Iterable[str | None]) -> BaseException | None:
    """Return the error, if it may be shown as the cause of another error.

    None if its text, or that of one of its causes, quotes a key, since causes are printed.
    """
    known = list(keys)
    link: BaseException | None = error
    while link is not None:
        if without_keys(str(link), known) != str(link):
            return None
        link = link.__cause__ or link.__context__
    return error


def _without(secret: str, text: str) -> str:
    """Return the text without the secret, also if the text ends in the middle of the secret."""
    begins, at = secret[:_TELLING], 0
    while (at := text.find(begins, at)) >= 0:
        quoted = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text[at:], secret, strict=False)))
        text = f"{text[:at]}[key]{text[at + quoted :]}"
        at += len("[key]")
    return text
