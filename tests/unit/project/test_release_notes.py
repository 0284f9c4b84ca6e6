"""The files about the project agree with each other."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from tests.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    versions = re.findall(r"^## \[(\S+)\] - (\S+)$", read("CHANGELOG.md"), re.MULTILINE)
    citation = yaml.safe_load(read("CITATION.cff"))
    assert versions[0] == (PROJECT["version"], str(citation["date-released"]))
    assert citation["version"] == PROJECT["version"]


def test_the_licence_is_the_one_that_is_named():
    holder = PROJECT["authors"][0]["name"]
    assert read("LICENSE").startswith(f"{PROJECT['license']} License\n\nCopyright (c) 2026 {holder}\n")
    assert yaml.safe_load(read("CITATION.cff"))["license"] == PROJECT["license"]


def test_the_paper_is_cited_as_the_proof_cites_it():
    paper = yaml.safe_load(read("CITATION.cff"))["preferred-citation"]
    names = " and ".join(f"{who['given-names'][0]}. {who['family-names']}" for who in paper["authors"])
    assert f"{names}. *{paper['title']}.*".lower() in read("assets/proof/7_references.md").lower()


def test_hooks_run_what_the_tests_run():
    hooks = [hook["entry"] for hook in yaml.safe_load(read(".pre-commit-config.yaml"))["repos"][0]["hooks"]]
    makefile = read("Makefile").replace("$(BIN)", ".venv/bin")
    assert len(hooks) == 3
    assert [hook for hook in hooks if hook not in makefile] == []


def test_the_container_gets_every_folder_that_the_wheel_takes():
    copied = read("Dockerfile")
    wheel = tomllib.loads(read("pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source in [*wheel["packages"], *wheel["force-include"]]:
        assert re.search(rf"^COPY .*\b{re.escape(source.strip('.').split('/')[0])}\b", copied, re.MULTILINE), source


def test_every_file_that_is_named_is_there():
    folders = ("dpgrams_core", "pages", "benchmarks", "docs", "assets", "tests")
    there = [str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.py")]
    told = [path for folder in (*folders[:4], "assets/proof") for path in (ROOT / folder).rglob("*.*")]
    told = [path for path in told if path.suffix in (".py", ".md")] + [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    gone = {
        (path.name, name)
        for path in told
        for name in re.findall(r"(?<![\w/.\"])[a-z_][\w/]*\.py\b", path.read_text(encoding="utf-8"))
        if not any(f"/{file}".endswith(f"/{name}") for file in (*there, "app.py"))
    }
    assert gone == set()


@pytest.mark.slow
def test_every_benchmark_starts_as_its_head_says():
    # Not in this process: pytest finds our folder of tests where Python finds one that a package left behind.
    names = [f"benchmarks.{path.stem}" for path in sorted((ROOT / "benchmarks").glob("*.py"))]
    subprocess.run([sys.executable, "-c", f"import {', '.join(names)}"], cwd=ROOT, check=True, timeout=200)
