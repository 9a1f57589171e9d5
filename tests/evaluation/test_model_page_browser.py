"""The page of a model in a real browser: drawn, readable on a phone, nothing cut or overlapping."""

import numpy as np
import pytest
from browser_driver import NEEDS_BROWSER, open_page, overlapping

import kernelmaps as km

pytestmark = NEEDS_BROWSER
WIDTHS = [390, 800, 1400]
LONG = "a level whose name is too long for the space that it has"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A regression with a pair and gaps, and three classes, with awkward names."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 500
    X = pandas.DataFrame(
        {
            "income of the household, a year": np.where(
                rng.random(n) < 0.1, np.nan, rng.gamma(2, 21000, n)
            ),
            "<b>city</b> & </script>": rng.choice(["Bern", "<i>Ulm</i>", LONG], n),
            "day": rng.integers(1, 366, n),
            "tiny": 1e-7 * rng.random(n),
            "turnover": rng.gamma(2, 1e6, n),
            "stamp": 1_600_000_000 + rng.integers(0, 5000, n),
            "shop": [f"shop {k}" for k in rng.integers(0, 40, n)],
        }
    )
    y = np.log1p(X.iloc[:, 0].fillna(0)) + (X.iloc[:, 1] == "Bern") * np.sin(X["day"] / 60)
    y += 0.2 * rng.normal(size=n)
    folder = tmp_path_factory.mktemp("pages")
    pairs = [("day", "<b>city</b> & </script>"), ("day", "shop")]
    model = km.AdditiveRegressor(interactions=pairs).fit(X, y)
    found = {"numbers": km.model_report(model, folder / "a.html", X=X, y=y, target="<b>y</b>")}
    labels = np.array(["low", "middle", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    model = km.AdditiveClassifier(loss="log_loss", interactions=1).fit(X, labels)
    found["classes"] = km.model_report(model, folder / "b.html", X=X, y=labels)
    return found


@pytest.fixture(params=["numbers", "classes"])
def page(request, browser, pages):
    return lambda width: open_page(browser, pages[request.param], width)


def boxes(driver, selector):
    """Boxes of the visible elements that a selector finds, in groups by their picture."""
    return driver.execute_script(
        """const groups = new Map();
        for (const e of document.querySelectorAll(arguments[0])) {
          const b = e.getBoundingClientRect(), key = e.closest('svg') || document.body;
          if (!b.width) continue;
          if (!groups.has(key)) groups.set(key, []);
          groups.get(key).push([b.left, b.top, b.right, b.bottom]);
        }
        return [...groups.values()]""",
        selector,
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_and_nothing_complains(page, width):
    driver = page(width)
    wide, inside = driver.execute_script(
        "return [document.documentElement.scrollWidth,"
        "[...document.querySelectorAll('.scroll')].filter(e => e.offsetParent !== null)"
        ".map(e => e.scrollWidth - e.clientWidth)]"
    )
    assert wide <= width
    assert max(inside) <= 1  # no table has to be scrolled
    assert driver.get_log("browser") == []


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_do_not_overlap_and_stay_on_their_tile(page, width):
    driver = page(width)
    for selector in ("svg text", ".bars .label, .bars .number"):
        groups = boxes(driver, selector)
        assert groups
        for group in groups:
            assert overlapping(group) == []
            assert min(box[0] for box in group) >= 0
            assert max(box[2] for box in group) <= width
    tiles = boxes(driver, ".tile")[0]
    assert overlapping(tiles) == []


def test_text_can_be_read_on_a_phone(page):
    driver = page(390)
    heights = [b[3] - b[1] for group in boxes(driver, "svg text, p, .label, .title") for b in group]
    assert min(heights) >= 9


def test_every_function_has_a_curve_or_its_levels(browser, pages):
    driver = open_page(browser, pages["numbers"], 1400)
    count = "return document.querySelectorAll(arguments[0]).length"
    assert driver.execute_script(count, "#shapes .tile") == 7
    assert driver.execute_script(count, "#shapes .curve") == 5
    assert driver.execute_script(count, "#shapes .band") == 5
    assert driver.execute_script(count, "#pairs .tile") >= 1
    assert driver.execute_script(count, "#pairs .heat") > 20
    assert "26 more levels" in driver.find_element("css selector", "#shapes").text
    assert driver.execute_script(count, "#scores circle") == 300
    assert driver.execute_script(count, "#legend span") == 0


def test_axes_far_from_zero_have_their_extent(browser, pages):
    """Seconds since 1970 within an hour and a half: neither the curve nor its ticks collapse."""
    driver = open_page(browser, pages["numbers"], 1400)
    script = """const tile = [...document.querySelectorAll('#shapes .tile')]
    .find(e => e.querySelector('.title').textContent === 'stamp');
    return [tile.querySelector('.curve').getBBox().width,
            [...tile.querySelectorAll('.tick')].map(e => e.textContent)]"""
    width, ticks = driver.execute_script(script)
    assert width > 150
    assert len(ticks) == len(set(ticks)) >= 2
    assert all(1_600_000_000 <= int(tick) <= 1_600_005_000 for tick in ticks)


def test_a_row_is_chosen_and_its_bars_follow(page):
    driver = page(1400)
    words = driver.find_element("css selector", "#row-words").text
    assert words.startswith("Predicted ")
    driver.execute_script(
        "const s = document.querySelector('#row-choice'); s.value = '4';"
        "s.dispatchEvent(new Event('change'));"
    )
    changed = driver.find_element("css selector", "#row-words").text
    assert changed != words
    assert "Intercept: " in changed  # a part of the score, but no bar
    labels = driver.execute_script(
        "return [...document.querySelectorAll('#row .label')].map(e => e.textContent)"
    )
    assert "intercept" not in labels
    assert any(label.startswith("<b>city</b> & </script> = ") for label in labels)


def test_classes_have_colours_a_choice_for_pairs_and_a_table(browser, pages):
    driver = open_page(browser, pages["classes"], 1400)
    legend = driver.find_elements("css selector", "#legend span")
    assert [item.text for item in legend] == ["high", "low", "middle"]
    assert len(driver.find_elements("css selector", "#confusion td.cell")) == 9
    options = driver.find_elements("css selector", "#pair-output option")
    assert len(options) == 3


def test_names_are_shown_as_they_are(browser, pages):
    driver = open_page(browser, pages["numbers"], 1200)
    assert driver.find_element("css selector", "h1").text == "AdditiveRegressor: <b>y</b>"
    titles = [e.text for e in driver.find_elements("css selector", "#shapes .title")]
    assert "<b>city</b> & </script>" in titles
