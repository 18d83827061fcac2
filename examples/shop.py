"""An app of hosts: what each of them needs beside the database.

    ikigai --database postgresql:///team host --name a --app shop:app

The function returns arguments of `ActorSystem.open`. Every host of a team is given the same one, by its import path.
"""

from typing import Any

from ikigai_actors import tool


@tool(idempotent=True)
def price(tea: str) -> str:
    """Say what a kilo of a tea costs, in euros."""
    return {"Assam": "24", "Nilgiri": "19"}.get(tea, "We do not sell it.")


def app() -> dict[str, Any]:
    """The arguments: without a provider, Anthropic where there is a key, else the offline provider."""
    return {"tools": [price], "approvals": "deny"}
