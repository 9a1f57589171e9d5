"""Results show themselves as tables in notebooks; nothing in them is taken for markup."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps._util.display import html_of, text_of, two_columns
from kernelmaps.certificate import Certificate


def test_designs_and_certificates_are_tables_in_notebooks():
    design = km.design_map("chi2", n_components=3)
    page = design._repr_html_()
    assert "3-column map of chi2" in page
    assert "proved" in page
    assert f"{design.max_error:.4g}" in page
    fitted = km.HomogeneousMap().fit(np.ones((2, 3)))
    certificate = fitted.certificate_ or Certificate(0.01, "absolute", "x in [0, 1]", "a grid", 0.9)
    assert "error at most" in certificate._repr_html_()


def test_a_probability_is_shown_unless_it_is_a_proof():
    proof, likely = (Certificate(0.01, "absolute", "[0, 1]", "a grid", p) for p in (1.0, 0.9))
    assert "probability" not in proof._repr_html_()
    assert "with probability" in likely._repr_html_()


@pytest.mark.parametrize("hostile", ["<script>", "[bold]x[/]", "[/b]", "\x1b[31m"])
def test_text_is_shown_as_it_is(hostile):
    table = two_columns({"name": hostile}, hostile)
    page, text = html_of(table), text_of(table)
    assert "<script>" not in page
    assert "\x1b" not in page + text
    shown = hostile.replace("\x1b", "\\x1b")
    assert shown in text
    assert page.count(shown.replace("<", "&lt;").replace(">", "&gt;")) == 2
