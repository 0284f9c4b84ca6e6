"""Who may see records, by the settings of an installation; and a server that others reach only on purpose."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dpgrams_core import SpecError
from dpgrams_core.model.environment import read_settings
from tests.places import ROOT


@pytest.mark.parametrize(
    ("wish", "uploads", "folder"),
    [(None, True, False), ("", True, False), ("on", True, True), (" ON ", True, True), ("off", False, False)],
)
def test_records_of_the_folder_are_shown_only_where_that_is_written(wish, uploads, folder):
    settings = read_settings({} if wish is None else {"DPGRAMS_CURATOR": wish})
    assert (settings.curator, settings.curator_of_folder) == (uploads, folder)


def test_every_variable_that_is_read_is_in_the_handbook_and_no_other():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "dpgrams_core").rglob("*.py")]
    read = {name for source in sources for name in re.findall(r'"(DPGRAMS_[A-Z_]+)"', source)}
    told = set(re.findall(r"DPGRAMS_[A-Z_]+", (ROOT / "docs" / "reference" / "environment.md").read_text("utf-8")))
    assert read == told
    assert len(read) > 15


def test_a_wish_that_is_neither():
    with pytest.raises(SpecError) as caught:
        read_settings({"DPGRAMS_CURATOR": "maybe"})
    assert caught.value.field == "DPGRAMS_CURATOR"


def test_only_this_machine_reaches_the_dashboard_unless_its_owner_says_otherwise():
    server = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["server"]
    assert server["address"] == "localhost"
    assert "--server.address" in (ROOT / "docs" / "how-to" / "host.md").read_text()


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


def test_only_the_names_of_this_machine_are_answered_unless_its_owner_says_otherwise():
    server = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["server"]
    assert set(server["allowedHosts"]) == {"localhost", "127.0.0.1", "::1"}


TLS = ("DPGRAMS_DASK_TLS_CA", "DPGRAMS_DASK_TLS_CERT", "DPGRAMS_DASK_TLS_KEY")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "tcp://localhost:8786", "tcp://[::1]:8786"])
def test_a_cluster_on_this_machine_needs_no_certificate(address):
    assert read_settings({"DPGRAMS_DASK": address}).dask.address == address


def test_a_cluster_elsewhere_needs_certificates_or_the_owners_word(tmp_path):
    with pytest.raises(SpecError, match="could run code here") as caught:
        read_settings({"DPGRAMS_DASK": "tcp://10.0.0.1:8786"})
    assert caught.value.field == "DPGRAMS_DASK"
    plain = {"DPGRAMS_DASK": "tcp://10.0.0.1:8786", "DPGRAMS_DASK_PLAIN": "on"}
    assert read_settings(plain).dask.address == "tcp://10.0.0.1:8786"
    files = {name: str(tmp_path / name) for name in TLS}
    for file in files.values():
        Path(file).touch()
    assert read_settings({"DPGRAMS_DASK": "tls://host:8786", **files}).dask.tls_ca == tmp_path / TLS[0]


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"DPGRAMS_DASK": "127.0.0.1:8786"}, "DPGRAMS_DASK", "give an address such as"),
        ({"DPGRAMS_DASK": "ws://127.0.0.1:8786"}, "DPGRAMS_DASK", "give an address such as"),
        ({"DPGRAMS_DASK": "tcp://127.0.0.1.evil.example:8786"}, "DPGRAMS_DASK", "could run code here"),
        ({"DPGRAMS_DASK": "tls://host:8786"}, "DPGRAMS_DASK", "for TLS set"),
        ({TLS[0]: "/no/such/file"}, TLS[0], "there is no such file"),
        ({TLS[0]: __file__}, TLS[1], "set all three or none"),
        (dict.fromkeys(TLS, __file__) | {"DPGRAMS_DASK": "tcp://127.0.0.1:1"}, "DPGRAMS_DASK", "begin with tls://"),
        ({"DPGRAMS_DASK_PLAIN": "yes"}, "DPGRAMS_DASK_PLAIN", "on or off"),
        ({"DPGRAMS_FRAME_ANCESTORS": "*"}, "DPGRAMS_FRAME_ANCESTORS", "https://school.example"),
        ({"DPGRAMS_FRAME_ANCESTORS": "https://a.example; script-src *"}, "DPGRAMS_FRAME_ANCESTORS", "give 'self'"),
        ({"DPGRAMS_FRAME_ANCESTORS": "http://school.example"}, "DPGRAMS_FRAME_ANCESTORS", "give 'self'"),
        ({"DPGRAMS_FRAME_ANCESTORS": "'none' 'self'"}, "DPGRAMS_FRAME_ANCESTORS", "stands alone"),
    ],
)
def test_what_an_owner_may_not_set(given, field, words):
    with pytest.raises(SpecError, match=words) as caught:
        read_settings(given)
    assert caught.value.field == field


def test_who_may_show_the_pages():
    assert read_settings({}).frame_ancestors == "'self'"
    several = "'self' https://*.school.example:8443 http://localhost:3000"
    assert read_settings({"DPGRAMS_FRAME_ANCESTORS": f" {several} "}).frame_ancestors == several
