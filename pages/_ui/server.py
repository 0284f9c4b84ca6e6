"""The doors of the server: what every request passes before Streamlit sees it (ASGI middleware, outermost first)."""

from __future__ import annotations

from starlette.middleware import Middleware

from pages._ui.holdings import VisitDoor
from pages._ui.uploads import UploadDoor


def doors() -> list[Middleware]:
    """All doors in their order."""
    return [Middleware(VisitDoor), Middleware(UploadDoor)]
