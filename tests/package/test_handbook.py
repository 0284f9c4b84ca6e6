"""The handbook is built strictly, without a network, and holds the proof and the public names."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from textwrap import dedent

import pytest

import dpgrams_core
from dpgrams_core.cli.main import COMMANDS
from tests.places import ROOT

PROOF = sorted((ROOT / "assets" / "proof").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built handbook; a broken link or a missing page ends the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def page(site, name):
    return (site / name / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PROOF, ids=lambda path: path.stem)
def test_a_chapter_of_the_proof_has_all_its_formulas(site, path):
    source, built = path.read_text(encoding="utf-8"), page(site, f"proof/{path.stem}")
    assert html.unescape(re.search(r"<h1[^>]*>(.*?)<", built)[1]) == source.partition("\n")[0].removeprefix("# ")
    formulas = re.findall(r"\$\$.+?\$\$|\$[^$]+\$", source, re.DOTALL)
    drawn = re.findall(r"<math .*?</math>", built, re.DOTALL)
    assert len(drawn) == len(formulas)
    assert [one for one in drawn if re.search(r"\\[a-zA-Z]", html.unescape(re.sub(r'alttext="[^"]*"', "", one)))] == []


def test_every_public_name_and_every_command_is_there(site):
    python, commands = page(site, "reference/python"), page(site, "reference/command-line")
    assert [name for name in dpgrams_core.__all__ if name not in python] == []
    assert [name for name in COMMANDS if f">dpgrams {name}<" not in commands] == []
    assert "DPGRAMS_CAP_EPSILON" in page(site, "reference/environment")


def test_a_message_names_a_page_by_its_title_since_an_installed_package_has_no_docs_folder():
    files = [*(ROOT / "dpgrams_core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
    sources = [path.read_text(encoding="utf-8") for path in files]
    titles = [path.read_text(encoding="utf-8").partition("\n")[0] for path in (ROOT / "docs" / "how-to").glob("*.md")]
    named = [name for source in sources for name in re.findall("the handbook, under “(.+?)”", source)]
    assert len(named) >= 2
    assert [name for name in named if f"# {name}" not in titles] == []
    assert not any("docs/how-to" in source for source in sources)


def test_nothing_is_loaded_from_elsewhere(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]+src="([^"]+)|<link(?![^>]+canonical)[^>]+href="([^"]+)', text)
        assert [name for pair in loaded for name in pair if name.startswith(("http", "//"))] == [], path


@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md", "docs/how-to/sweep.md"])
def test_the_python_that_a_newcomer_reads_runs(name, capsys):
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", (ROOT / name).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    exec("\n".join(dedent(text) for _, text in blocks).replace("runs=20", "runs=1"), {})
    assert name.endswith("sweep.md") or "proven" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_to_files(name):
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / name).read_text(encoding="utf-8"))
    assert [link for link in links if not link.startswith("https://") and not (ROOT / link).exists()] == []
