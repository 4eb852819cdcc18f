"""The command line within a test."""

import pytest

from dpviz.__main__ import main


@pytest.fixture
def run(capsys):
    """Exit code, stdout and stderr of some words."""

    def ran(*words):
        code = main([str(word) for word in words])
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        return code, told.out, told.err

    return ran
