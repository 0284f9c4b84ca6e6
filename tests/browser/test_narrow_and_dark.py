"""Every page of results on a narrow screen in dark mode."""

from __future__ import annotations

import pytest

PAGES = {
    "modes": "modes?n=1000&calibration=theorem",
    "regression": "regression?reg_n=500&reg_method=dp_pms&curve=off",
    "guarantee": "guarantee?n=1000&measure=off&accountants=off",
}


@pytest.mark.parametrize("name", PAGES)
def test_it_fits(make_dashboard, name):
    dashboard = make_dashboard(390, "dark").open(PAGES[name])
    dashboard.assert_fits(390)
    dashboard.shoot(f"{name}_390_dark")
