"""The report in a real browser: drawn, sortable, filterable, readable on a phone, no errors."""

import pytest
from browser_driver import NEEDS_BROWSER, open_page, overlapping

import kernelmaps as km

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def report(tmp_path_factory, quick_baselines):
    X, y = km.datasets.make_histograms(150, 6, 2, n_counts=20, random_state=0)
    result = km.compare(
        X,
        y,
        maps=["HomogeneousMap", "RandomFourierMap"],
        kernels=["chi2", "gaussian"],
        sizes=[3, 5],
        joint_sizes=[32],
        name="<b>histograms</b> & </script>",
        progress=False,
    )
    path = result.report(tmp_path_factory.mktemp("report") / "out.html")
    return result, path


@pytest.fixture
def page(browser, report):
    def open_at(width, height=900):
        return open_page(browser, report[1], width, height)

    return open_at


def count(browser, selector):
    return browser.execute_script(f"return document.querySelectorAll({selector!r}).length")


def first_column(browser):
    cells = "[...document.querySelectorAll('#table tbody td:first-child')]"
    return browser.execute_script(f"return {cells}.map(e => e.textContent)")


def test_everything_is_drawn_and_nothing_complains(page, report):
    result, _ = report
    browser = page(1200)
    assert count(browser, "#error-plot circle") == result.frame["error_max"].notna().sum()
    assert count(browser, "#score-plot circle") == len(result.finished)
    assert count(browser, "#table tbody tr") == len(result)
    assert browser.get_log("browser") == []


def test_a_click_on_a_heading_sorts_up_and_down(page, report):
    result, _ = report
    browser = page(1200)
    heading = browser.find_elements("css selector", "#table th")[0]
    heading.click()
    labels = sorted(result.frame.index, key=str.lower)
    assert [text.lower() for text in first_column(browser)] == [text.lower() for text in labels]
    heading.click()
    assert first_column(browser)[0].lower() == labels[-1].lower()
    assert heading.get_attribute("aria-sort") == "descending"


def test_a_phone_shows_it_without_sideways_scrolling(page):
    browser = page(390, 844)
    wide, fonts = browser.execute_script(
        "return [document.documentElement.scrollWidth,"
        "[...document.querySelectorAll('p, li, svg text, .title')]"
        ".map(e => e.getBoundingClientRect().height)]"
    )
    assert wide <= 390
    assert min(height for height in fonts if height > 0) >= 9  # pixels: a line that can be read


@pytest.mark.parametrize("width", [390, 1400])
def test_labels_do_not_overlap(page, width):
    browser = page(width)
    script = """return ['#error-plot', '#score-plot'].map(id =>
    [...document.querySelectorAll(id + ' svg .name')].map(e => {
      const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; }))"""
    plots = browser.execute_script(script)
    assert all(plots)
    for boxes in plots:
        assert overlapping(boxes) == []


def test_the_report_begins_with_what_to_use_and_how_to_run_it(page, report):
    result, _ = report
    browser = page(1400)
    assert browser.find_element("css selector", "#summary .use").text == result.use_this()[0]
    code = browser.find_element("css selector", "#code pre").text
    assert code == result.code()
    order = browser.execute_script(
        "return [...document.querySelectorAll('section')].map(e => e.id).slice(0, 2)"
    )
    assert order == ["summary", "code"]


def test_names_cannot_break_the_page(page, report):
    browser = page(1200)
    assert "<b>histograms</b> & </script>" in browser.find_element("css selector", "h1").text
