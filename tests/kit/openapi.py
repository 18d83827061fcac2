"""The page of OpenAPI that is checked in: `python -m tests.kit.openapi` writes it, after something was added."""

import json
from pathlib import Path

from ikigai_actors.doors.api.openapi import openapi_page

PAGE = Path(__file__).parents[2] / "docs" / "integrate" / "openapi.json"

if __name__ == "__main__":
    PAGE.write_text(json.dumps(openapi_page("/"), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(PAGE)
