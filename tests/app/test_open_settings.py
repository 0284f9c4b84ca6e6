"""A settings file that a page saved is opened again: its page takes the settings, and a bad file gets a sentence."""

from __future__ import annotations

import json

import pytest

from dpgrams_core.model.errors import DataError
from pages._ui import exports
from pages._ui.server import uploads
from tests.shown import Dropped, all_text, answer, new_page, opened, widget


@pytest.fixture
def drop(monkeypatch):
    """Drop a file at the next run of a page."""
    waiting = []
    monkeypatch.setattr(uploads, "upload_box", lambda *_, **__: waiting.pop() if waiting else None)
    return lambda content: waiting.append(Dropped(content))


@pytest.fixture
def saved(monkeypatch):
    """The files that pages offer, by the key of their button."""
    found, button = {}, exports.download
    monkeypatch.setattr(exports, "download", lambda file, key, *more: (found.update({key: file}), button(file, key)))
    return found


PAGES = {
    "modes": {"n": "200", "epsilon": "0.5", "method": "functional", "h_scale": "1.2", "curve": "off", "runs": "off"},
    "regression": {"reg_n": "200", "epsilon": "2", "reg_method": "dp_pms", "curve": "off", "reg_share": "45"},
    "clusters": {"clu_n_blobs": "200", "epsilon": "2", "curve": "off", "clu_count": "3"},
}


@pytest.mark.parametrize("name", PAGES)
def test_a_saved_file_brings_its_settings_back(name, drop, saved):
    first = opened(new_page(name, **PAGES[name]))
    content = saved["export_settings_json"].build()
    other = opened(new_page(name, **{key: value for key, value in PAGES[name].items() if key in ("curve", "runs")}))
    assert answer(other) != answer(first)
    drop(content.encode())
    other.run()
    assert not other.exception
    assert answer(other) == answer(first)
    assert dict(other.query_params) == dict(first.query_params)


def test_a_bad_file_gets_a_sentence_and_changes_nothing(drop):
    page = opened(new_page("modes", n="200", curve="off", runs="off"))
    before = answer(page)
    for content in (b"", b"\xff", b"[]", b'{"format": "dpgrams-settings/1", "kind": "release"}', b"[" * 100_000):
        drop(content)
        page.run()
        assert not page.exception
        assert len(page.error) == 1
        assert answer(page) == before
    page.run()
    assert not page.error


def test_a_file_of_many_megabytes_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(exports, "open_settings", lambda *_: pytest.fail("parsed"))
    with pytest.raises(DataError, match="too large"):
        exports.read_link(b"[" * (exports.LARGEST_FILE + 1))


def test_markdown_in_a_file_is_shown_as_it_is(drop):
    page = opened(new_page("modes", n="200", curve="off", runs="off"))
    run = {"method": "![x](https://example.com/x.png)", "dataset": "four_corners", "n": 200, "options": {}}
    drop(json.dumps({"format": 1, "kind": "simulation", "runs": [run]}).encode())
    page.run()
    assert not page.exception
    assert r"!\[x\](https" in page.error[0].value


def test_a_value_of_a_changed_file_that_no_control_takes_is_named(drop, saved):
    page = opened(new_page("modes", n="200", curve="off", runs="off"))
    drop(saved["export_settings_json"].build().replace("n=200", "n=201").encode())
    page.run()
    assert not page.exception
    assert "values for n cannot be used" in all_text(page)
    assert widget(page, "select_slider", "n").value == 5_000
