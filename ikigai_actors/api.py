"""The network API, to be mounted in a web application.

from fastapi import FastAPI
from ikigai_actors import AttachedSystem
from ikigai_actors.api import ApiRequest, Principal, api

def principal_of(request: ApiRequest) -> Principal | None:
    user = users.get(request.headers.get("authorization"))
    return None if user is None else Principal(user.id, user.name, frozenset({"prompt"}), under=user.agent)

app = FastAPI()
app.mount("/agents", api(AttachedSystem.open("team.db"), principal_of))
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
