"""Which mechanism of points has the least error where: prints the table of the documents, see docs/mechanisms.md."""

import numpy as np
import pytest

from dpviz.evaluation.situations import compare_in_situations
from dpviz.mechanisms import MECHANISMS

pytestmark = pytest.mark.benchmark


def test_errors_as_multiples_of_the_least_in_each_situation():
    table = compare_in_situations({key: mechanism() for key, mechanism in MECHANISMS.of("points").items()}, order=8, repeats=10)
    print("\n" + table.T.round(1).to_string())
    print("geometric means over both ε and both sizes of boxes")
    print(np.exp(np.log(table).T.groupby(level="situation", sort=False).mean().T).round(1).to_string())
    assert (table.min() == 1).all()
