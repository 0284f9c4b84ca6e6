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


def test_the_quotas_of_uploads_grow_with_the_largest_one():
    first = read_settings({})
    assert (first.upload_bytes_per_visitor, first.upload_bytes_in_all) == (400_000_000, 2_000_000_000)
    larger = read_settings({"DPGRAMS_MAX_UPLOAD_MB": "500"})
    assert (larger.upload_bytes_per_visitor, larger.upload_bytes_in_all) == (1_000_000_000, 5_000_000_000)
    given = read_settings({"DPGRAMS_UPLOADS_MB_PER_VISITOR": "250", "DPGRAMS_UPLOADS_MB_IN_ALL": "300.5"})
    assert (given.upload_bytes_per_visitor, given.upload_bytes_in_all) == (250_000_000, 300_500_000)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("DPGRAMS_UPLOADS_MB_PER_VISITOR", "199", "at least DPGRAMS_MAX_UPLOAD_MB, which is 200"),
        ("DPGRAMS_UPLOADS_MB_IN_ALL", "399", "at least DPGRAMS_UPLOADS_MB_PER_VISITOR, which is 400"),
        ("DPGRAMS_UPLOADS_MB_IN_ALL", "-1", "above 0"),
        ("DPGRAMS_UPLOADS_MB_PER_VISITOR", "nan", "finite"),
        ("DPGRAMS_UPLOADS_MB_PER_VISITOR", "much", "number"),
    ],
)
def test_quotas_of_uploads_that_cannot_be(name, value, words):
    with pytest.raises(SpecError) as caught:
        read_settings({name: value})
    assert caught.value.field == name
    assert words in str(caught.value)
