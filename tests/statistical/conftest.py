"""How noise is tested: whiten it by the covariance it should have, and ask whether what is left is standard."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpgrams_core.methods.dp_grams import tight
from dpgrams_core.methods.dp_pms import run as pms
from dpgrams_core.numerics.pooled import PooledRounds


def two_sided(law, value):
    return 2 * min(law.cdf(value), law.sf(value), 0.5)


@pytest.fixture(scope="session")
def pvalues():
    """``pvalues(noise, correlation, scale)`` for noise (runs, k, columns), each with covariance scale^2 correlation.

    Four tests of the whitened numbers: their size, their law, the correlations between starts, and those
    between columns.  ``correlation`` is one matrix, or one a run.
    """

    def check(noise, correlation, scale):
        runs, k, columns = noise.shape
        factors = np.linalg.cholesky(np.broadcast_to(correlation, (runs, k, k)))
        white = np.linalg.solve(factors, noise) / scale
        size = two_sided(stats.chi2(white.size), float((white**2).sum()))
        law = stats.kstest(white.ravel(), "norm").pvalue

        def cross(pairs):
            # Given a, the product a.b / |a| of independent columns is exactly standard normal; Bonferroni over pairs.
            z = [abs(float(a @ b)) / float(np.linalg.norm(a)) for a, b in pairs]
            return min(1.0, len(z) * 2 * float(stats.norm.sf(max(z))))

        starts = cross([(white[:, i, c], white[:, j, c]) for c in range(columns) for i in range(k) for j in range(i)])
        between = cross([(white[:, i, 0], white[:, j, 1]) for i in range(k) for j in range(k)])
        return {"size": size, "law": law, "starts": starts, "columns": between}

    return check


@pytest.fixture(scope="session")
def short_climbs():
    """``with short_climbs():`` the last climb of ``tight``, post-processing of its rounds, is one step of thirty."""

    @contextmanager
    def shortened():
        with pytest.MonkeyPatch.context() as patch:
            for module in (tight, pms):
                patch.setattr(module, "TIGHT", replace(tight.TIGHT, last_climb=1))
            yield

    return shortened


@pytest.fixture(scope="module")
def read_rounds():
    """(points, numbers) of every round of ``tight`` as its reading gets them: behind the noise."""
    seen, add = [], PooledRounds.add

    def watch(self, at, sums, covariance):
        seen.append((at, np.array(sums)))
        return add(self, at, sums, covariance)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PooledRounds, "add", watch)
        yield seen
