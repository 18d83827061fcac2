"""Recorded turns against a changed system prompt: is the new one worse? Neither tool runs while that is found out.

    python examples/changed_prompt.py

A function stands in for the model, so that it runs without a key. Leave provider= out for a real one.
"""

from ikigai_actors import ActorSystem, Reply, Request, ScriptedProvider, ToolCall, tool
from ikigai_actors.behaviour import calls, recorded, regress, replay, same_calls

OLD = "You sell tea. Look up the price, and sell what is asked for."
NEW = f"{OLD} Be generous with black teas."
BLACK, GREEN = ("Assam", "Ceylon", "Darjeeling", "Keemun"), ("Gyokuro", "Longjing", "Matcha", "Sencha")


@tool(read_only=True)
def price(tea: str) -> str:
    """Tell the price of a kilo of a tea."""
    print(f"  (looked up the price of {tea})")
    return f"{tea} costs 12 euros"


@tool
def sell(tea: str, kilos: int) -> str:
    """Sell some of a tea."""
    print(f"  (sold {kilos} kg of {tea})")
    return f"sold {kilos} kg of {tea}"


def model(request: Request) -> Reply | str:
    """Stands in for a model: looks up, sells, answers. It takes its system prompt seriously."""
    said = request.messages[-1]["content"][-1]
    if said["type"] == "text":
        return Reply("", (ToolCall("price", {"tea": said["text"]}),))
    if "costs" in said["content"]:
        tea = said["content"].split()[0]
        kilos = 3 if "generous" in (request.system or "") and tea in BLACK else 2
        return Reply("", (ToolCall("sell", {"tea": tea, "kilos": kilos}),))
    return f"Here you are: {said['content']}."


def main(database: str = ":memory:") -> None:
    """Take sixteen orders, then try the new prompt on them."""
    with ActorSystem.open(database, ScriptedProvider(model), tools=[price, sell]) as system:
        clerks = [system.root.fork(name=name, system=OLD) for name in ("ann", "bob")]
        for clerk in clerks:
            for tea in (*BLACK, *GREEN):
                clerk.prompt(tea).get()
        turns = recorded(*clerks)  # of dead agents, and of an imported log, as well
        print(f"{len(turns)} turns were recorded. From here on nothing is looked up, and nothing sold.")
        print(replay(turns, change={"system": NEW}).text())
        print(regress(turns, change={"system": NEW}, check=same_calls, samples=3).text())
        loose = regress(turns, change={"system": NEW}, check=calls(ignore={"sell": ["kilos"]}), margin=0.2)
        print(f"Whatever the kilos: {loose.verdict}")


if __name__ == "__main__":
    main()
