"""Results show themselves as tables in notebooks; nothing in them is taken for markup."""

import pytest

from kernelmaps._util.display import html_of, text_of, two_columns


@pytest.mark.parametrize("hostile", ["<script>", "[bold]x[/]", "[/b]", "\x1b[31m"])
def test_text_is_shown_as_it_is(hostile):
    table = two_columns({"name": hostile}, hostile)
    page, text = html_of(table), text_of(table)
    assert "<script>" not in page
    assert "\x1b" not in page + text
    shown = hostile.replace("\x1b", "\\x1b")
    assert shown in text
    assert page.count(shown.replace("<", "&lt;").replace(">", "&gt;")) == 2
