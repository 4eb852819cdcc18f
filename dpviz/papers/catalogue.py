"""All papers whose figures run here, and how a figure is found by its name."""

from __future__ import annotations

from dpviz.errors import SettingError, did_you_mean
from dpviz.papers.e2epriv_figures import E2EPRIV
from dpviz.papers.figures import Figure, Paper
from dpviz.papers.htf_figures import HTF
from dpviz.papers.inftda_figures import INFTDA
from dpviz.papers.psd_figures import PSD

PAPERS = {paper.key: paper for paper in (PSD, HTF, E2EPRIV, INFTDA)}


def find_figure(paper: str, figure: str) -> tuple[Paper, Figure]:
    """Find a figure by the names of its paper and its number.

    Args:
        paper: key of the paper, such as "psd".
        figure: its number, such as "4a".

    Raises:
        SettingError: there is no such paper or figure; the text names those that there are.

    >>> find_figure("psd", "3")[1].title
    'Accuracy of quadtrees with a geometric budget and least squares'
    """
    if paper not in PAPERS:
        raise SettingError(f"There is no paper {paper!r}; there are {', '.join(PAPERS)}.{did_you_mean(paper, PAPERS)}")
    figures = PAPERS[paper].figures
    if figure not in figures:
        raise SettingError(f"The paper {paper} has no figure {figure!r}; it has {', '.join(figures)}.{did_you_mean(figure, figures)}")
    return PAPERS[paper], figures[figure]
