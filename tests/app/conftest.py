"""What the tests of pages share."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def own_main_module():
    """AppTest puts the page in the place of ``__main__``, which worker processes of later tests would import."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
