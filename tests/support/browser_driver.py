"""A real browser for tests of pages; both test files skip where there is none."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]

NEEDS_BROWSER = [
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER),
        reason="no browser: install Debian's chromium and chromium-driver to run this",
    ),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def start(profile):
    """A driver of a browser without a window, with a profile of its own."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium drives the browser")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


def open_page(browser, path, width, height=900):
    """Open a page at the width of a window; a small one is a phone."""
    from selenium.webdriver.support.ui import WebDriverWait

    mobile = width < 500
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(f"file://{path}")
    drawn = "return document.documentElement.dataset.drawn === 'yes'"
    WebDriverWait(browser, 10).until(lambda page: page.execute_script(drawn))
    return browser


def overlapping(boxes):
    """Pairs of boxes (left, top, right, bottom) that overlap by more than a line's margin."""
    return [
        (a, b)
        for i, a in enumerate(boxes)
        for b in boxes[:i]
        if not (a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] - 2 or b[1] >= a[3] - 2)
    ]
