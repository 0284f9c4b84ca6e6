"""Who may see records, by the settings of an installation; and a server that others reach only on purpose."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dpgrams_core import SpecError
from dpgrams_core.settings import read_settings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("wish", "uploads", "folder"),
    [(None, True, False), ("", True, False), ("on", True, True), (" ON ", True, True), ("off", False, False)],
)
def test_records_of_the_folder_are_shown_only_where_that_is_written(wish, uploads, folder):
    settings = read_settings({} if wish is None else {"DPGRAMS_CURATOR": wish})
    assert (settings.curator, settings.curator_of_folder) == (uploads, folder)


def test_a_wish_that_is_neither():
    with pytest.raises(SpecError) as caught:
        read_settings({"DPGRAMS_CURATOR": "maybe"})
    assert caught.value.field == "DPGRAMS_CURATOR"


def test_only_this_machine_reaches_the_dashboard_unless_its_owner_says_otherwise():
    server = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["server"]
    assert server["address"] == "localhost"
    assert "--server.address" in (ROOT / "README.md").read_text()
