"""Configuration of Sphinx. ``make docs`` builds with warnings as errors."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import _prose  # noqa: E402
from _reference import write_reference  # noqa: E402

import kernelmaps  # noqa: E402

project = "kernelmaps"
author = "kernelmaps developers"
project_copyright = "2026, kernelmaps developers"
version = release = kernelmaps.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "_execute",
    "_mathml",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "README.md"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"  # numpydoc's sections already say it

templates_path = ["_templates"]
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "kernelmaps"
html_theme_options = {
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,  # up to Performance; the rest is under "More"
    "navbar_persistent": ["search-button"],  # an icon: a field makes the bar wrap at 1280 pixels
    "navbar_end": ["version-and-source", "theme-switcher"],
}
# Pages without subpages need no list of them at the side.
html_sidebars = {
    page: []
    for page in ("installation", "performance", "reproduction", "contributing", "changelog")
}
html_static_path = ["_static"]
html_css_files = ["kernelmaps.css"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 5,
    "abort_on_example_error": True,
}

# The reference lists what the package exports, so that it cannot fall behind it.
write_reference(HERE / "generated")


def setup(app):
    app.connect("autodoc-process-docstring", _prose.process, priority=900)
