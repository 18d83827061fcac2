"""A research team with a common budget, in asyncio. Each researcher answers with a value of a type."""

import asyncio
import sys
from dataclasses import dataclass

from ikigai_actors import AsyncActorSystem, Budget, FunctionProvider, Reply, Request, Usage


@dataclass
class Finding:
    tea: str
    kilos: int


def researcher(request: Request) -> Reply:  # stands in for a model
    return Reply(output=Finding(str(request.name), 40), usage=Usage(90, 10))


async def main(database: str = "team.db") -> None:
    async with AsyncActorSystem.open(database, FunctionProvider(researcher)) as system:
        lead = await system.root.fork(name="lead", budget=Budget(tokens=5_000), exist_ok=True)
        team = [await lead.fork(name=tea, exist_ok=True) for tea in ("assam", "ceylon", "nilgiri")]
        for reply in await asyncio.gather(*(analyst.prompt("How much is sold?", output=Finding) for analyst in team)):
            print(reply.output.tea, reply.output.kilos)
        print(await lead.budget)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
