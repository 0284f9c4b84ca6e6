"""What tests of the command line share."""

from __future__ import annotations

import pytest

from dpgrams_core.cli.main import main


@pytest.fixture
def refused_in_a_sentence(capsys):
    """``refused_in_a_sentence(words, sentence)``: exit code two, one line that begins so, and no output."""

    def check(words, sentence):
        assert main(words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(sentence)
        assert len(err.strip().splitlines()) == 1

    return check
