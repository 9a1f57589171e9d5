"""The table of rules for γ says what its record says."""

import json

import pytest

from benchmarks.exponential_gamma import BEGIN, DATASETS, END, PAGE, RECORD, closed_shares, table


@pytest.fixture(scope="module")
def record():
    return json.loads(RECORD.read_text("utf-8"))


def test_the_page_shows_the_record(record):
    page = PAGE.read_text("utf-8")
    assert page[page.index(BEGIN) + len(BEGIN) : page.index(END)].strip() == table(record)
    assert list(record) == list(DATASETS)


def test_the_share_of_a_gap_that_is_closed():
    figures = {"scale": 90.0, "local": 91.5, "chosen": 92.0}
    no_gap = {"scale": 90.0, "local": 91.0, "chosen": 90.0}
    record = {"letter": {"C = 1": figures}, "usps": {"C = 1": no_gap}}
    assert closed_shares(record, 1.0) == {"letter": 0.75}


def test_the_default_rule_closes_half_of_the_gap_on_six_datasets(record):
    assert sum(share >= 0.5 for share in closed_shares(record, 1.0).values()) >= 6
