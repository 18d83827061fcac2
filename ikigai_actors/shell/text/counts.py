"""Numbers of things, in words."""


def counted(number: int, what: str) -> str:
    """``1 mail``, ``1,200 mails``; for words whose plural ends in s."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
