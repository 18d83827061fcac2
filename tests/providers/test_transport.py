"""What the clients get to read."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from ikigai_actors.providers.transport import shorten_page


class Endless(httpx2.AsyncByteStream):
    """A page without end."""

    closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100_000

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize("status", [400, 502])
def test_of_the_page_of_an_error_a_client_reads_a_megabyte(status: int) -> None:
    async def read() -> tuple[int, bool]:
        response = httpx2.Response(status, stream=(page := Endless()))
        await shorten_page(response)
        return len(await response.aread()), page.closed

    assert asyncio.run(read()) == (2**20, True)


def test_a_stream_is_left_alone() -> None:
    response = httpx2.Response(200, stream=(stream := Endless()))
    asyncio.run(shorten_page(response))
    assert response.stream is stream
