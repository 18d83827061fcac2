"""Settings of a server with which a crash or a power cut can lose committed data. Pure."""

from collections.abc import Sequence

MUST_BE_ON = ("fsync", "full_page_writes", "synchronous_commit")
"""The settings that must not be off. The last one may be that of a user or a database."""


def losing(values: Sequence[str | None]) -> str:
    """Return warnings about the values of the settings in `MUST_BE_ON`; empty if committed data survives a crash."""
    off = [name for name, value in zip(MUST_BE_ON, values, strict=True) if value == "off"]
    if not off:
        return ""
    settings = " and ".join(f"{name} = off" for name in off)
    return (
        f"its server has {settings}: what was acknowledged may be gone after a power cut or a crash of the server. "
        "Turn it on there, or for the role or the database that has turned it off (ALTER … RESET)."
    )
