# The names that this module hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.doors.api.application import Api as Api
from ikigai_actors.doors.api.application import api as api
from ikigai_actors.doors.api.requests import ApiRequest as ApiRequest
from ikigai_actors.system.attached import AttachedSystem as AttachedSystem
from ikigai_actors.verbs.principal import Principal as Principal
