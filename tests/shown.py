"""What a page shows when it runs as a script, without a browser: the reading that all tests of pages share."""

from __future__ import annotations

import functools
import re
import time
from typing import Any

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from tests.places import ROOT

# A new page looks through all installed packages for components, two thirds of the time of a quick page: once will do.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def new_page(script: str, **query: str) -> AppTest:
    """A page that has not run yet, at this address."""
    app = AppTest.from_file(str(ROOT / "pages" / f"{script}.py"), default_timeout=120)
    app.query_params.update(query)
    return app


def checked(app: AppTest) -> AppTest:
    app.run()
    assert not app.exception
    return app


def opened(app: AppTest, **query: str) -> AppTest:
    """The page after it ran, with these additions to its address."""
    app.query_params.update(query)
    return checked(app)


def widget(app: AppTest, kind: str, key: str) -> Any:
    return next(item for item in app.get(kind) if item.key == key)


def button(app: AppTest, key: str) -> Any:
    return next((item for item in app.button if item.key == key), None)


def all_text(app: AppTest) -> str:
    """All sentences: also those of progress bars."""
    parts = [*app.markdown, *app.caption, *app.error, *app.warning, *app.info, *app.subheader]
    return "\n".join([*(item.value for item in parts), *(item.proto.text for item in app.get("progress"))])


def html(app: AppTest) -> list[str]:
    return [item.proto.body for item in app.get("html")]


def answer_html(app: AppTest) -> str:
    """The last answer, without the heading that is only heard."""
    return [body for body in html(app) if 'data-testid="answer"' in body][-1].split("</h2>")[-1]


def answer(app: AppTest) -> str:
    return re.sub("<[^>]*>", "", answer_html(app))


def metrics(app: AppTest) -> dict[str, str]:
    return {item.label: item.value for item in app.metric}


def subheaders(app: AppTest) -> list[str]:
    return [item.value for item in app.subheader]


def until(app: AppTest, words: str, seconds: float = 60.0) -> AppTest:
    """Look again, as the page does by itself, until it says this."""
    end = time.monotonic() + seconds
    while words not in all_text(app):
        assert time.monotonic() < end, all_text(app)
        time.sleep(0.05)
        checked(app)
    return app


def assert_controls_explain_themselves(app: AppTest, at_least: int) -> None:
    controls = [*app.sidebar.select_slider, *app.sidebar.number_input, *app.sidebar.selectbox]
    assert len(controls) >= at_least
    for control in controls:
        assert control.help, f"{control.key} has no help"
        assert "\n" not in control.help


def assert_a_bad_batch_size_keeps_the_last_numbers(app: AppTest, n: int) -> str:
    """A sentence, and the numbers from before, which are given back."""
    good = metrics(app), answer(app)
    widget(app, "select_slider", "m").set_value(5_000)
    checked(app)
    assert f"batch_size = 5000 is not allowed: it must be between 1 and n = {n}." in app.error[0].value
    assert "Below is the last picture that worked." in all_text(app)
    assert (metrics(app), answer(app)) == good
    widget(app, "select_slider", "m").set_value("auto").run()
    assert not app.error
    return good[1]


def assert_shared_keys_agree(app: AppTest, other: AppTest, *least: str) -> None:
    """app.py hands values over between pages: a shared key with other values or another default would break there."""
    here, there = (
        {item.key: item for item in [*page.sidebar.select_slider, *page.sidebar.selectbox]} for page in (app, other)
    )
    shared = there.keys() & here.keys()
    assert set(least) <= shared
    for key in shared:
        # On the Clusters page a status has its condition, and its value in the session is the same.
        options = [[text.partition(" (")[0] for text in page[key].options] for page in (here, there)]
        assert options[0] == options[1], key
        assert there[key].value == here[key].value, key


class Dropped:
    """A file as the uploader hands it over, once."""

    file_id = "1"

    def __init__(self, content):
        self.content, self.name = content, "settings.json"

    def getvalue(self):
        return self.content

    def close(self):
        pass
