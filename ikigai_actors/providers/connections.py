"""The HTTP client of every provider, whose errors distinguish refused connections from late and from broken ones.

The transport is the package ``httpx-aiohttp``. Version 0.2 raises a connect timeout of httpx2 for each connection that
fails, so a missing server would look like a slow one, and a request that a server had read before the connection broke
would look like one that was never sent. The latter may cost money, and must not count as free. The cause of that error,
an exception of aiohttp, decides here.

Imported at the first request alone, since aiohttp takes 0.2 s.
"""

from typing import Any

import aiohttp
import httpx2
from httpx_aiohttp.httpx2 import Httpx2AiohttpClient


class Connections(Httpx2AiohttpClient):
    """An HTTP client whose errors show whether a request has left, and whether the server may have read it."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request.

        Raises:
            httpx2.ConnectError: No connection was made, so the request was not sent.
            httpx2.ConnectTimeout: No connection was made in time, so the request was not sent.
            httpx2.ReadError: The connection broke before a reply began; the server may have read the request.
        """
        try:
            return await super().send(request, **options)
        except httpx2.ConnectTimeout as error:
            match error.__cause__:
                case aiohttp.ConnectionTimeoutError():
                    raise
                case aiohttp.ClientConnectorError():
                    raise httpx2.ConnectError(str(error), request=request) from error.__cause__
                case _:
                    raise httpx2.ReadError(str(error), request=request) from error.__cause__
