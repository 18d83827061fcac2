"""Tools of one's own: agents look at the stock of a tea shop, and sell from it.

    python examples/stock.py DATABASE PROMPT...
    python examples/stock.py stock.db "Sell two kilos of Assam, and say what is left."

With ``ANTHROPIC_API_KEY`` a model calls the tools. The offline provider makes the calls of its prompt:

    python examples/stock.py stock.db '@sell {"tea": "Assam", "kilos": 2} @then @stock'

The stock is a document, so it is durable, every sale is a version with its author, and of two sales at once none is
lost. What a tool returns, or raises, is what the model reads.
"""

import json
import sys

from ikigai_actors import ActorSystem, DocumentChanged, DocumentNotFound, current_agent, tool
from ikigai_actors.types import Documents

STOCK = "stock.json"
AT_FIRST = {"Assam": 10, "Nilgiri": 5}


def read(documents: Documents) -> tuple[dict[str, int], int]:
    """Kilos of each tea, and the version of the document."""
    try:
        document = documents.read(STOCK)
    except DocumentNotFound:
        return dict(AT_FIRST), 0
    return json.loads(document.body), document.version


@tool(idempotent=True)
def stock() -> dict[str, int]:
    """Tell how many kilos of each tea there are."""
    return read(current_agent().system.documents)[0]


@tool
def sell(tea: str, kilos: int) -> str:
    """Take tea out of the stock.

    Args:
        tea: its name, as the stock has it.
        kilos: how much, from 1.
    """
    me = current_agent()
    documents = me.system.documents
    while True:
        kept, version = read(documents)
        if not 1 <= kilos <= kept.get(tea, 0):
            return f"There are {kept.get(tea, 0)} kilos of {tea}, not {kilos}."
        kept[tea] -= kilos
        try:
            documents.write(STOCK, json.dumps(kept), author=me, expect=version)
        except DocumentChanged:
            continue  # somebody else sold meanwhile
        return f"Sold: {kilos} kilos of {tea}; {kept[tea]} are left."


def main(database: str, prompt: str) -> None:
    """Have an agent do what is asked, and print its answer."""
    with ActorSystem.open(database, tools=[stock, sell]) as system:
        print(system.root.prompt(prompt).get(timeout=600).text)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("Usage: python examples/stock.py DATABASE PROMPT...")
    main(sys.argv[1], " ".join(sys.argv[2:]))
