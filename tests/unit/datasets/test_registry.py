"""The facts of the data sets: the same as the records and the paper's tables say, and all that a new one needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core import DATASETS, load_dataset, sweep
from dpgrams_core.datasets.registry import dataset_info, datasets_of, register, same_records
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset
from dpgrams_core.model.run import DatasetInfo
from dpgrams_core.studies.paper.experiments import EXPERIMENTS
from dpgrams_core.studies.paper.tables import paper_table

HERE = [name for name in DATASETS if name != "rnaseq"]  # its records are the user's own copy


@pytest.mark.parametrize("name", HERE)
def test_the_facts_are_those_of_the_records(name):
    info, data = DATASETS[name], load_dataset(name)
    assert (data.name, data.kind, data.n, data.picked) == (name, info.kind, info.default_n, info.picked)
    np.testing.assert_array_equal(data.box, np.array(info.box))
    if info.kind == "modes":
        assert len(data.true_modes) == info.count
    elif info.kind == "clusters":
        assert data.n_clusters == info.count
        assert data.representation.fitted == info.fitted
    else:
        table = data.truth.mode_table(np.linspace(*info.box[0], 101))
        assert bool(np.isnan(table).any()) == info.branches_end
    n = info.default_n if info.synthetic else info.offered[0]
    first, second = (load_dataset(name, n=n, seed=seed).points for seed in (1, 2))
    assert not np.array_equal(first, second)
    other = load_dataset(name, seed=1).points
    assert np.array_equal(data.points, other) != info.synthetic


def test_the_facts_are_those_of_the_paper_tables():
    for name in ("modes", "regression", "clustering"):
        for table in EXPERIMENTS[name].tables:
            info, printed = DATASETS[table.dataset], paper_table(table.name)
            assert {row.get("n", info.default_n) for row in printed["rows"]} == set(info.sizes)
            assert {row["epsilon"] for row in printed["rows"]} == set(info.epsilons)
            assert printed["delta"] == info.delta


def test_only_all_records_of_a_real_data_set_are_the_same():
    assert {name for name, info in DATASETS.items() if same_records(name, info.default_n)} == {
        "iris",
        "digits",
        "mnist",
        "tumours",
        "rnaseq",
    }
    assert not same_records("digits", 1000)


@pytest.fixture
def toy(monkeypatch):
    """A synthetic clustering data set that is registered for a while."""

    def draw(info, n, seed):
        size = info.default_n if n is None else n
        labels = np.arange(size) % 2
        points = np.where(labels, 1.0, -1.0)[:, None] + 0.1 * np.random.default_rng(seed).normal(size=(size, 2))
        return Dataset(name=info.name, kind="clusters", points=points, box=np.array(info.box), labels=labels)

    monkeypatch.setitem(DATASETS, "toy", DATASETS["blobs"])  # so that it is taken out at the end
    return register(
        DatasetInfo(
            name="toy",
            kind="clusters",
            title="Toy",
            description="Two small clouds.",
            box=((-2.0, 2.0), (-2.0, 2.0)),
            default_n=200,
            source=draw,
            synthetic=True,
            count=2,
            sizes=(100, 200),
            epsilons=(1.0,),
            delta=1e-6,
            offered=(100, 200),
        )
    )


def test_a_new_synthetic_data_set_is_not_taken_for_a_real_one(toy):
    assert "toy" in datasets_of("clusters")
    assert not same_records("toy", toy.default_n)
    assert same_records(replace(toy, synthetic=False), toy.default_n)
    table = sweep(["kmeans", "functional_c"], "toy", n=[200], epsilon=[1.0], runs=2, n_clusters=2)
    assert table["failures"].tolist() == [0, 0]
    assert table["ari"][0] == 1.0


def test_a_data_set_that_is_not_listed_is_refused_with_the_list():
    with pytest.raises(SpecError, match="choose one of blobs, "):
        dataset_info("secret")
