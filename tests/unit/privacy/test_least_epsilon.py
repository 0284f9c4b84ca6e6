"""The least ε that can be asked for: refused below it at every door, and right at it."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from dpgrams_core import METHODS, load_dataset, run, sweep
from dpgrams_core.auditing import audit
from dpgrams_core.cli.main import main
from dpgrams_core.model.checks import SMALLEST_EPSILON
from dpgrams_core.own_data.bounds import plan_range
from dpgrams_core.own_data.pricing import quote
from dpgrams_core.privacy.accountants import rounds_multiplier
from dpgrams_core.privacy.calibration import exact_epsilon, gaussian_delta, gaussian_multiplier
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.studies.needed_budget import needed_epsilon, needed_n

TOO_SMALL = 9e-7
PRIVATE = {name for name, method in METHODS.items() if method.private}
LEAST = dict.fromkeys(PRIVATE, "between 1e-06 and") | {"dp_kmeans": "between 0.001 and"}  # its library asks for more
DATA = {"modes": "four_corners", "regression": "sinusoid", "clusters": "blobs"}


def data_of(method, n=300):
    return load_dataset(DATA[METHODS[method].kind], n=n, seed=0)


@pytest.mark.usefixtures("nothing_drawn")
class TestRefused:
    @pytest.mark.parametrize("method", sorted(PRIVATE))
    def test_by_every_private_method(self, method, refused):
        for call in (run, quote):
            refused(
                lambda call=call: call(method, data_of(method), epsilon=TOO_SMALL), "epsilon", TOO_SMALL, LEAST[method]
            )

    def test_by_bounds_sweeps_searches_and_audits(self, refused):
        fixed = {"method": "functional", "dataset": "four_corners", "target": 0.1}
        for field, call in (
            ("epsilon", lambda: plan_range(10**9, TOO_SMALL, 1e-6)),
            ("epsilon", lambda: sweep("functional", "four_corners", n=[300], epsilon=[TOO_SMALL], runs=1)),
            ("epsilon", lambda: needed_n(**fixed, epsilon=TOO_SMALL)),
            ("low", lambda: needed_epsilon(**fixed, n=300, low=TOO_SMALL, high=1.0)),
            ("epsilon", lambda: audit("functional", epsilon=TOO_SMALL, trials=40)),
        ):
            refused(call, field, TOO_SMALL, "between 1e-06 and 1e+12")

    def test_by_the_ledger(self, tmp_path, refused):
        ledger = Ledger(tmp_path / "ledger.db")
        account = ledger.account_of(b"data")
        ledger.open_account(account, cap_epsilon=1.0, cap_delta=1e-5)
        refused(
            lambda: ledger.charge(account, (), epsilon=TOO_SMALL, delta=0.0, status="nominal", description="x"),
            "epsilon",
            TOO_SMALL,
            "between 1e-06",
        )
        assert len(ledger.charges(account)) == 0

    @pytest.mark.parametrize("command", ["run four_corners dp_grams", "audit functional --trials 40"])
    def test_by_the_command_line_in_one_sentence(self, command, capsys):
        assert main([*command.split(), "--epsilon", str(TOO_SMALL)]) == 2
        assert "epsilon = 9e-07" in capsys.readouterr().err


def delta_in_fifty_digits(epsilon, multiplier):
    with mpmath.workdps(50):
        half, tail = mpmath.mpf(1) / (2 * mpmath.mpf(multiplier)), mpmath.mpf(epsilon) * mpmath.mpf(multiplier)
        return mpmath.ncdf(half - tail) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(-half - tail)


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-6, 1e-12, 1e-40, 1e-100])
@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, 3e-6, 1e-4, 1e-2, 0.07, 1.0])
def test_the_noise_keeps_its_promise_in_exact_arithmetic(epsilon, delta):
    multiplier = gaussian_multiplier(epsilon, delta)
    true = delta_in_fifty_digits(epsilon, multiplier)
    assert gaussian_delta(epsilon, multiplier) == pytest.approx(float(true), rel=1e-10, abs=0)
    assert delta * (1 - 1e-7) <= true <= delta
    again = rounds_multiplier(epsilon, delta, 500, 500, 7) / math.sqrt(7)
    assert again == pytest.approx(multiplier, rel=1e-12)
    assert exact_epsilon(multiplier, delta) == pytest.approx(epsilon, rel=1e-7)


@pytest.mark.parametrize("method", sorted(PRIVATE - {"dp_kmeans"}))
def test_every_method_runs_at_the_least_epsilon_and_says_what_it_costs(method):
    options = {"calibration": "theorem"} if method == "dp_pms" else {"calibration": "tight"}
    if not method.startswith("dp_grams") and method != "dp_pms":
        options = {}
    release = run(method, data_of(method), seed=1, epsilon=SMALLEST_EPSILON, **options)
    assert release.guarantee.epsilon <= SMALLEST_EPSILON
    if release.noise_scale is not None:
        assert 1e3 < release.noise_scale < math.inf
    if release.surface is not None:
        assert np.isfinite(release.surface.coefficients).all()
