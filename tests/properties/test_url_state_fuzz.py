"""Mangled links: every control falls back to its default with a note, and no page shows a traceback."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages._ui import state
from pages._ui.tradeoff.settings import ARMS
from tests.shown import new_page

pytestmark = pytest.mark.slow  # whole pages, as in tests/app, which `make check` leaves out

# One page a time with its quickest settings, so that what is fuzzed decides how long it takes.
PAGES = {
    "modes": {"n": "50", "curve": "off", "runs": "off", "landscape": "off"},
    "regression": {"reg_n": "50", "curve": "off"},
    "clusters": {"clu_n_blobs": "50", "curve": "off"},
    "guarantee": {"n": "50", "measure": "off", "accountants": "off"},
    "tradeoff": {arm.key: "off" for arm in ARMS["modes"]},  # nothing to run, so its answer waits for nothing
    "lessons": {},
    "attacker": {},
    "paper": {},
    "my_data": {},
}
LEAST_KEYS = {"lessons": 4, "attacker": 2, "paper": 3, "my_data": 4}
DUCK = "🦆=;<b>"
TEXTS = [
    "", " ", "0", "-1", "1", "1.5", "nan", "inf", "-inf", "1e400", "1e-400", "9" * 400, "9" * 5_000, "0x10",
    "1_0", "１２", "None", "True", "on", "off", "null", "[]", "{}", "__proto__", "../../etc/passwd",
    "'; DROP TABLE x; --", "<script>", "{0}", "%s", "%00", "\x00", "\ud800", "\u202e", "ε", "a" * 10_000,
    "functional", "experiments", "1,2", "1e-6", "0.5",
]  # fmt: skip


@pytest.fixture(autouse=True)
def own_main_module():
    """AppTest puts the page in the place of ``__main__``."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(autouse=True, scope="module")
def own_ledger(tmp_path_factory):
    """My data opens a ledger: one of these tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPGRAMS_LEDGER", str(tmp_path_factory.mktemp("ledger") / "ledger.sqlite3"))
        yield


def page_of(name: str, query: dict[str, str]) -> AppTest:
    return new_page(name, **query).run()


def answer(app: AppTest) -> str:
    return next(item.proto.body for item in app.get("html") if 'data-testid="answer"' in item.proto.body)


class Opened:
    """A page at its defaults: what it answers, and its controls as key -> (default, parse)."""

    def __init__(self, name: str) -> None:
        self.controls = {}
        start = state.start

        def listening(key, default, parse):
            self.controls[key] = (default, parse)
            start(key, default, parse)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(state, "start", listening)
            self.answer = answer(page_of(name, PAGES[name]))

    def free(self, name: str) -> list[str]:
        """The controls that the page's own settings leave alone."""
        return [key for key in self.controls if key not in PAGES[name]]

    def refuses(self, key: str, text: str) -> bool:
        """Whether a control cannot take a text; a line of numbers takes any, and says what is wrong where it stands."""
        try:
            self.controls[key][1](text)
        except ValueError:
            return True
        return False


@pytest.fixture(scope="module")
def pages():
    return {name: Opened(name) for name in PAGES}


def started(monkeypatch, key, default, parse, text):
    """The first value of a control when the link says ``text``, and the keys that were refused."""
    fake = SimpleNamespace(session_state={}, query_params={key: text})
    monkeypatch.setattr(state, "st", fake)
    state.start(key, default, parse)
    return fake.session_state[key], list(fake.session_state.pop("_url_refused", {}))


def test_thousands_of_mangled_values_give_the_default_and_a_note_or_a_value_that_writes_itself_back(
    pages, monkeypatch, rng
):
    cases = refusals = 0
    controls = {key: control for page in pages.values() for key, control in page.controls.items()}
    for key, (default, parse) in controls.items():
        good = state.text_of(default)
        mangled = [mangle(good, rng) for _ in range(60)]
        for text in [*TEXTS, *mangled]:
            value, refused = started(monkeypatch, key, default, parse, text)
            cases += 1
            refusals += bool(refused)
            if refused:
                assert (value, refused) == (default, [key])
            else:
                assert not isinstance(value, float) or math.isfinite(value)
                assert started(monkeypatch, key, default, parse, state.text_of(value)) == (value, [])
    assert cases > 3_000
    assert refusals > cases / 3


def mangle(text: str, rng: np.random.Generator) -> str:
    """A text with one to three signs changed, put in or left out, as copying and cutting do it."""
    signs = list(text)
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(0, len(signs) + 1))
        new = [] if rng.random() < 0.3 else [chr(rng.choice([*range(32, 127), 0, 0x3B5, 0x2212, 0xFF11]))]
        signs[place : place + int(rng.integers(0, 2))] = new
    return "".join(signs)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_link_holds_every_number_exactly(value):
    assert float(state.text_of(value)) == value


@pytest.mark.parametrize("name", PAGES)
def test_a_page_with_every_value_mangled_shows_its_defaults_and_says_so(name, pages):
    keys = [key for key in pages[name].free(name) if pages[name].refuses(key, DUCK)]
    assert len(keys) >= LEAST_KEYS.get(name, 5)
    app = page_of(name, {**PAGES[name], **dict.fromkeys(keys, DUCK)})
    assert not app.exception
    assert answer(app) == pages[name].answer
    note = next(item.value for item in app.info if "cannot be used" in item.value)
    assert [key for key in keys if key not in note] == []
    assert "🦆" not in note


@pytest.mark.parametrize("name", PAGES)
def test_random_links_never_end_in_a_traceback(name, pages, rng):
    slow = ("n", "reg_n", "clu_n_", "curve", "runs", "measure", "accountants", "landscape", "steps", "starts")
    keys = [key for key in pages[name].free(name) if not key.startswith(slow)]
    for _ in range(1 if name in LEAST_KEYS else 2):
        first, *others = rng.choice(keys, min(4, len(keys)), replace=False)
        query = {key: mangle(state.text_of(pages[name].controls[key][0]), rng) for key in others}
        query[first] = str(rng.choice([text for text in TEXTS if text.isprintable()]))
        app = page_of(name, {**PAGES[name], **query, "unknown": "1"})
        assert not app.exception, query
        assert answer(app)
