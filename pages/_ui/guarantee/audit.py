"""The audit on the Guarantee page: try to catch a method that promises too much.

Measured on two cores, worker processes save a fifth of the time of 2,000 runs and would be one pool for every pupil of
a class, so an audit runs in the thread of its job.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import streamlit as st

from dpgrams_core import DataError, Dataset, SpecError
from dpgrams_core.auditing import DOORS, PAIRS, neighbour_pair, pairs_for, stream_audit
from dpgrams_core.auditing.pairs import BOX
from dpgrams_core.figures.audits import audits_chart, worlds_chart
from dpgrams_core.figures.style import CAUGHT, PRIVATE
from dpgrams_core.methods.dp_grams.broken import BROKEN_METHODS
from dpgrams_core.methods.registry import METHODS, Method, private_methods
from dpgrams_core.model.format import short, time_words, written
from dpgrams_core.model.guarantee import status_words
from dpgrams_core.model.results import AuditResult
from dpgrams_core.studies.costs import audit_seconds
from pages._ui import charts, exports, jobs, layout, state

MOST_KEPT = 40
OWN = "own"
BOUNDS = ("lower bound", "upper end (these tests)", "lower bound, if normal")  # columns of the table
OPENDP_SECONDS = 0.006  # a run's noise at the release door: some 250 numbers, 25 microseconds each
Place = tuple[float, float]
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
TRIALS = (200, 400, 1_000, 2_000, 3_000, 5_000)
MOST_TRIALS = {"simulation": 5_000, "release": 1_000}  # the noise of private data takes its time
DOOR_WORDS = {
    "simulation": ("A simulation", "Seeded noise: the same seed, the same audit."),
    "release": (
        "Through the release door",
        "The noise that private data get, slower, and without a seed: no such audit can be repeated.",
    ),
}
LARGEST_SEED = 2**31 - 1
PLACES = {"audit_old_x": -1.0, "audit_old_y": 0.0, "audit_new_x": 1.0, "audit_new_y": 0.0}
KEYS = ["audit_method", "audit_pair", "audit_door", "audit_eps", "audit_trials", "audit_seed", *PLACES]
PAIR_WORDS = {name: (pair.title, pair.words) for name, pair in PAIRS.items()} | {
    OWN: ("A pair of your own", "A cluster of 199 records at (0, 0) in the box from −5 to 5; you place the last."),
}
SAME_DRAWS = ("dp_grams_c", "functional_c")  # they draw what their namesakes for modes draw: not attacked twice
SENTENCES = {
    "functional": "The whole surface is released at once. Its claim has a proof, so a catch would be a bug.",
    "functional_regression": "The whole surface over predictor and response is released at once, with a proof.",
    "broken_data_starts": "Starts at records of the data and pays nothing for it. The audit must catch it.",
    "broken_sum": "Adds contributions up under the noise of their mean. The audit must catch it.",
}
A_CATCH = {"proven": ", so a catch would be a bug.", "as published": ", which these pairs need not show."}


@dataclass(frozen=True)
class Choice:
    """A method as the panel offers it."""

    method: Method
    title: str
    calibration: str = ""

    @property
    def options(self) -> dict[str, Any]:
        return {"calibration": self.calibration} if self.calibration else {}

    @property
    def doors(self) -> tuple[str, ...]:
        """The doors that it can be audited through."""
        return DOORS if self.method.private else DOORS[:1]

    def pairs(self, door: str) -> list[str]:
        """The pairs of worlds that it can be audited on, the default first."""
        return [*pairs_for(self.method.kind, door), *([OWN] if self.method.kind == "modes" else [])]

    @property
    def words(self) -> str:
        """What is attacked, and what a catch would mean."""
        method, status = self.method, self.method.status_with(self.options)
        if method.name in SENTENCES:
            return SENTENCES[method.name]
        if self.calibration:
            words = method.calibrations[self.calibration].words
            words = words.replace(".", ", for a curve.", 1) if method.kind == "regression" else words
        else:
            proven = status == "proven"
            words = "Its claim has a proof." if proven else f"Its claim is “{status_words(status)}”: no proof."
        return words.removesuffix(".") + A_CATCH.get(status, ".")


def _choices() -> dict[str, Choice]:
    """Every private method by its name in a link, for modes first; then those that are broken on purpose.

    Each calibration stands by itself, the strongest claim first; those for a curve only where there is a proof.
    """
    found: dict[str, Choice] = {}
    taken: set[str] = set()
    for kind in ("modes", "regression", "clusters"):
        for name in sorted(private_methods(kind), key=lambda name: bool(METHODS[name].calibrations)):
            if name in SAME_DRAWS:
                continue
            method = METHODS[name]
            title = f"{method.title} for {kind}" if method.title in taken else method.title
            taken.add(title)
            if not method.calibrations:
                found[name] = Choice(method, f"{title}: {method.status_with({})}")
            for calibration in reversed(method.calibrations):
                status = method.status_with({"calibration": calibration})
                if kind == "modes" or status == "proven":
                    whose = "" if name == "dp_grams" else name.removeprefix("dp_") + "_"  # links have these names
                    found[whose + calibration] = Choice(method, f"{title}, {calibration}: {status}", calibration)
    return found | {name: Choice(method, method.title) for name, method in BROKEN_METHODS.items()}


CHOICES = _choices()


@dataclass(frozen=True, kw_only=True)
class Wish:
    """One audit that somebody asked for."""

    choice: str
    pair: str | None = None
    epsilon: float = 1.0
    trials: int = 2_000
    seed: int = 0
    door: str = "simulation"
    places: tuple[Place, Place] = ((0.0, 0.0), (0.0, 0.0))  # of the record in a pair of one's own
    n: int | None = None
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def seconds(self) -> float:
        """About what it costs; the broken methods are kinds of DP-GRAMS, and cost as much."""
        chosen = CHOICES[self.choice]
        method = chosen.method.name if chosen.method.name in METHODS else "dp_grams"
        named = chosen.pairs(self.door)[0] if self.pair in (None, OWN) else self.pair
        pair = neighbour_pair(named, self.n, door=self.door)
        drawing = 2 * self.trials * OPENDP_SECONDS if self.door == "release" else 0.0
        return drawing + audit_seconds(method, n=pair.first.n, box=pair.first.box, trials=self.trials)

    def stream(self) -> Iterator[AuditResult]:
        """The game; a wrong setting is refused here, before anything runs."""
        chosen = CHOICES[self.choice]
        options = chosen.options | dict(self.options)
        pair: Any = self.pair
        if self.pair == OWN:
            *worlds, settings = own_pair(*self.places, self.door)
            pair, known = tuple(worlds), {item.name for item in fields(chosen.method.spec)}
            options |= {name: value for name, value in settings.items() if name in known}
        return stream_audit(
            chosen.method.name,
            pair=pair,
            epsilon=self.epsilon,
            trials=self.trials,
            seed=self.seed if self.door == "simulation" else None,
            n=self.n,
            door=self.door,
            **options,
        )


# Few records and half of them as starts (a public setting): what a class can wait for.
LESSON = (
    Wish(choice="broken_data_starts", trials=400, n=50, options=(("n_starts", 25),)),
    Wish(choice="broken_sum", trials=400, n=50),
)


def own_pair(old: Place, new: Place, door: str = "simulation") -> tuple[Dataset, Dataset, dict[str, Any]]:
    """The cluster of ``moved_record`` with a record at ``old`` or at ``new``, and the settings of that pair."""
    like = neighbour_pair("moved_record", door=door)
    worlds = [np.concatenate([like.first.points[:-1], np.array([place], dtype=float)]) for place in (old, new)]
    first, second = (Dataset(name="own pair", kind="modes", points=points, box=np.array(BOX)) for points in worlds)
    return first, second, like.settings | {"candidates": (tuple(old), tuple(new))}


@dataclass
class Record:
    """An audit that was begun, with its latest result."""

    wish: Wish
    result: AuditResult | None = None


@dataclass
class Desk:
    """All audits of a session.  Mutable, so that a look is kept even if the screen is left at that moment."""

    records: list[Record] = field(default_factory=list)
    waiting: list[Wish] = field(default_factory=list)  # the one under way first
    controls: Any = None  # what the controls said when it was started
    problem: Exception | None = None  # why the last audit ended, if a setting could not be used
    number: int = 0  # of the last start

    @property
    def busy(self) -> bool:
        return bool(self.waiting)

    @property
    def current(self) -> Record | None:
        return self.records[-1] if self.waiting else None

    @property
    def found(self) -> list[Record]:
        """Every audit that has something to show."""
        return [record for record in self.records if record.result is not None]

    @property
    def work(self) -> jobs.Work:
        """What was asked for last, as the work of a job: this visitor's alone."""
        return jobs.Work(
            key=("audit", jobs.visitor(), self.number),
            steps=self.looks,
            found=lambda: self,
            count=lambda desk: (int(not desk.busy), 1),
        )

    def begin(self, wishes: tuple[Wish, ...], controls: Any = None) -> None:
        """Ask for these audits, one after the other; SpecError if any cannot be, and then nothing changes."""
        for wish in wishes:
            wish.stream()
        self.stop()
        self.waiting, self.controls = list(wishes), controls
        self.number += 1
        self._open()

    def looks(self) -> Iterator[None]:
        """Run them, a tenth of the runs at a step; what a method refuses only now ends them with its sentence."""
        waiting = self.waiting
        try:
            while waiting:
                record = self.records[-1]
                for result in waiting[0].stream():
                    if not waiting:  # stopped meanwhile
                        return
                    record.result = result
                    if result.complete:
                        waiting.pop(0)
                        self._open()
                    yield None
                    if not waiting:
                        return
        except (SpecError, DataError) as error:
            self.stop()
            self.problem = error
        finally:
            waiting.clear()  # a game that was left in the middle cannot go on

    def stop(self) -> None:
        """End what is under way and forget what was waiting; results stay."""
        self.waiting.clear()
        self.records, self.problem = self.found, None

    def _open(self) -> None:
        if self.waiting:
            self.records = [*self.records[-(MOST_KEPT - 1) :], Record(self.waiting[0])]


def start() -> None:
    """First values of the controls, from the URL; call it before a page writes its URL (with ``KEYS`` in it)."""
    state.start("audit_method", "functional", state.one_of_these(list(CHOICES)))
    state.start("audit_pair", "far_record", state.one_of_these([*PAIRS, OWN]))
    state.start("audit_door", "simulation", state.one_of_these(DOORS))
    state.start("audit_eps", 1.0, state.one_of_these(EPSILONS))
    state.start("audit_trials", 1_000, state.one_of_these(TRIALS))
    state.start("audit_seed", 0, state.number_within(int, 0, LARGEST_SEED, empty=False))
    for key, default in PLACES.items():
        state.start(key, default, state.number_within(float, -5, 5, empty=False))


def audit_panel() -> None:
    """Intro, controls, buttons, and the results with their pictures."""
    st.subheader("Can we catch it? The audit", anchor="audit")
    st.markdown(
        "Two worlds differ in one record. We run the mechanism thousands of times in each and try to tell from what "
        "it releases which world we are in. The better that works, the larger its ε must really be: if it works "
        "better than the claimed ε allows, the claim is false. A pass proves nothing: another pair or a better test "
        "may show more. Only a catch is a finding."
    )
    start()
    mine: Desk = st.session_state.setdefault("_audits", Desk())  # of this session; nobody else's
    wish = _controls()
    state.write_url(KEYS, leave_others=True)
    if mine.busy and mine.controls != wish:
        _stop(mine)
        st.info("A setting changed, so the audit was stopped. What it had found is kept below.")
    _buttons(mine, wish)
    jobs.live(mine.work, lambda desk, _: _results(desk))


def _stop(mine: Desk) -> None:
    jobs.stop(mine.work.key)
    mine.stop()


def _pick(
    place: Any, label: str, key: str, offered: Sequence[Any], help_text: str, words: Any, kind: str = "selectbox"
) -> Any:
    """One of what is offered; what another control has taken away gives way to the largest number or first name."""
    if st.session_state[key] not in offered:
        st.session_state[key] = offered[-1] if isinstance(offered[0], int) else offered[0]
    show = getattr(place, kind)
    return show(label, offered, format_func=words, key=key, help=help_text, persist_state="session")


def _controls() -> Wish:
    left, right = st.columns(2, gap="medium")
    titles = {name: choice.title for name, choice in CHOICES.items()}
    help_text = "Whose claim is tested; two are broken on purpose."
    choice = _pick(left, "Method to audit", "audit_method", list(CHOICES), help_text, titles.__getitem__)
    chosen = CHOICES[choice]
    left.caption(chosen.words)
    # The door comes further down; what it was left at decides which pairs there are.
    door = st.session_state["audit_door"]
    pairs = chosen.pairs(door if door in chosen.doors else chosen.doors[0])
    help_text = "Two data sets that differ in one record (neighbours). Extreme values need the release door."
    pair = _pick(right, "Two worlds", "audit_pair", pairs, help_text, lambda name: PAIR_WORDS[name][0])
    right.caption(PAIR_WORDS[pair][1])
    places: list[float] = [0.0] * 4
    number: dict[str, Any] = {"persist_state": "session"}
    if pair == OWN:
        words = ("Old place, x", "Old place, y", "New place, x", "New place, y")
        number["help"] = "A coordinate of the one record that differs."
        places = [
            column.number_input(label, -5.0, 5.0, step=0.5, key=key, **number)
            for column, label, key in zip(st.columns(4), words, PLACES, strict=True)
        ]
    columns = st.columns([2, 2, 2, 1], gap="medium")
    help_text = "The noise of a simulation, or the path that private data take."
    door = _pick(columns[0], "Noise", "audit_door", chosen.doors, help_text, lambda name: DOOR_WORDS[name][0])
    columns[0].caption(DOOR_WORDS[door][1])
    help_text = "The claim that is tested (ε), at δ = 1e-6."
    epsilon = _pick(columns[1], "Claimed ε", "audit_eps", EPSILONS, help_text, written, "select_slider")
    trials = [count for count in TRIALS if count <= MOST_TRIALS[door]]
    help_text = "More runs can show a larger ε: 200 cannot show more than about 3."
    runs = _pick(columns[2], "Runs in each world", "audit_trials", trials, help_text, "{:,}".format, "select_slider")
    seed = 0
    if door == "simulation":
        number["help"] = "Same seed, same runs: an audit is a simulation."
        seed = columns[3].number_input("Seed", 0, LARGEST_SEED, step=1, key="audit_seed", **number)
    old, new = (places[0], places[1]), (places[2], places[3])
    return Wish(choice=choice, pair=pair, epsilon=epsilon, trials=runs, seed=seed, places=(old, new), door=door)


def _buttons(mine: Desk, wish: Wish) -> None:
    run, teach, _ = st.columns([1, 2, 2], gap="small")
    wanted: tuple[Wish, ...] = ()
    look: dict[str, Any] = {"key": "audit_run", "icon": ":material/search:", "width": "stretch", "type": "primary"}
    words = f"About {time_words(wish.seconds)} of computing. Leaving the page ends it."
    if run.button("Run the audit", help=words, **look):
        wanted = (wish,)
    look = {"key": "audit_teach", "icon": ":material/school:", "width": "stretch"}
    words = "Audits both broken methods at ε = 1 with 400 runs each: some seconds."
    if teach.button("Show a class two false claims being caught", help=words, **look):
        wanted = LESSON
    if wanted:
        last = mine.work.key
        if layout.works(lambda: mine.begin(wanted, wish)):
            jobs.stop(last)


def _results(mine: Desk) -> None:
    """What was found so far."""
    if problem := mine.problem or mine.work.error:
        layout.problem(problem)
    current = mine.current
    if current is not None:
        done, total = current.result.trials_done if current.result else 0, current.wish.trials
        bar, button = st.columns([4, 1], vertical_alignment="center")
        title = CHOICES[current.wish.choice].title
        waiting = f"; {len(mine.waiting) - 1} more to come" if len(mine.waiting) > 1 else ""
        bar.progress(done / total, text=f"{title}: {done:,} of {total:,} runs in each world{waiting}")
        button.button("Stop", key="audit_stop", icon=":material/stop:", width="stretch", on_click=_stop, args=(mine,))
    if mine.found:
        _show([(CHOICES[record.wish.choice].title, record.result) for record in mine.found if record.result])
        if current is None and st.button("Clear the audits", key="audit_clear", icon=":material/delete:"):
            mine.stop()
            mine.records = []
            st.rerun()
    elif current is None:
        st.caption("No audit yet. A thousand runs in each world take some seconds.")


def _show(found: list[tuple[str, AuditResult]]) -> None:
    """The verdict of the last audit, and all of them as pictures and a table."""
    titles, results = zip(*found, strict=True)
    last = results[-1]
    colour = CAUGHT if last.caught else PRIVATE
    pair = PAIR_WORDS.get(last.pair, PAIR_WORDS[OWN])[0]
    verdict = last.verdict_on(f"“{titles[-1]}”", f"“{pair}”")
    st.html(
        f'<p class="answer" data-testid="audit-verdict" style="border-left:0.4rem solid {colour};padding-left:0.8rem">'
        f"{html.escape(verdict)}</p>"
    )
    if last.fit_words:
        st.caption(last.fit_words)
    if not last.complete:
        st.caption(
            f"This rests on {last.trials_done:,} of {last.trials:,} runs in each world. It may be stopped at any "
            "time: all interim results hold at once with 95% confidence."
        )
    st.markdown("**A pass proves nothing.** Only a catch is a finding.")
    picture = audits_chart(list(results), list(titles))
    claims, worlds = st.columns(2, gap="medium")
    with claims:
        st.markdown("**Claimed ε against what was shown**")
        charts.plot(picture.figure, "audits_chart", picture.sentence)
        st.caption(picture.sentence)
    with worlds:
        st.markdown("**How the two worlds were told apart**")
        charts.chart(worlds_chart(last), "audit_worlds")
    shown = picture.table.assign(
        **{name: picture.table[name].map(short) for name in BOUNDS},
        status=picture.table["status"].map(status_words),
    )
    st.dataframe(shown, hide_index=True, width="stretch")
    exports.chart_files(picture, "audits", "Claimed ε against what was shown")
