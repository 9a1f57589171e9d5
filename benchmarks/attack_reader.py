"""Attack the reader of text: are known numbers and dates ever read wrongly without a word?

One attack draws a column of numbers or dates, few or many rows of it, writes it in one of the
styles that people and programs use, and has it read: as a feature of a table, again in parts (what
a cell means must not depend on the rows that come with it), as a target, and, for dates, by a model
that learned dates with a type. A column may be read right, be refused, stay text, or be warned of
by name. Columns that are read wrongly without a warning are printed, and the exit status is 1.

Conventions that are no misreadings: dates with dots have the day first unless a cell shows that it
cannot be; a time is that of its own clock, whatever its zone.

    python -m benchmarks.attack_reader [--styles ...] [--attacks 100] [--seed 0]
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from kernelmaps.data.table_reader import TableReader
from kernelmaps.data.targets import target_values
from kernelmaps.data.text_cells import Text

Rng = np.random.Generator
Column = tuple[list[str], Any]
"""Cells, and their values: numbers, dates, or None where the column is no number at all."""
ROWS = (5, 200, 2, 20, 1, 3)


# ---- numbers ------------------------------------------------------------------------------------


def draw_numbers(rng: Rng, n: int, decimals: int | None = None) -> np.ndarray:
    """Numbers of one size, of either sign in half of the columns."""
    size = 10.0 ** rng.integers(0, 8)
    places = int(rng.integers(0, 5)) if decimals is None else decimals
    signs = rng.choice([-1, 1], n) if rng.random() < 0.5 else 1
    return np.round(rng.uniform(0, 1, n) ** 2 * size * signs, places) + 0.0


def _write(value: float, thousands: str, decimal: str, places: int | None = None) -> str:
    text = f"{value:,}" if places is None else f"{value:,.{places}f}"
    text = text.removesuffix(".0") if places is None else text
    return text.translate(str.maketrans({",": thousands, ".": decimal}))


def number_style(
    thousands: str, decimal: str, form: str = "{}", decimals: int | None = None, fixed: bool = False
) -> Callable[[Rng, int], Column]:
    """A style with marks between thousands and before decimals, and text around the number."""

    def style(rng: Rng, n: int) -> Column:
        values = draw_numbers(rng, n, decimals)
        places = decimals if fixed else None
        return [form.format(_write(v, thousands, decimal, places)) for v in values.tolist()], values

    return style


def exponents(decimal: str, share: float) -> Callable[[Rng, int], Column]:
    def style(rng: Rng, n: int) -> Column:
        values = draw_numbers(rng, n, 2)
        cells = []
        for value in values.tolist():
            text = f"{value:.6e}" if rng.random() < share else f"{value:.2f}"
            cells.append(text.replace(".", decimal))
        return cells, np.array([float(cell.replace(",", ".")) for cell in cells])

    return style


def exponents_among_thousands(rng: Rng, n: int) -> Column:
    values = np.round(rng.uniform(1000, 1e6, n))
    cells = [f"{v / 1000:.6g}e3" if rng.random() < 0.3 else f"{v:,.1f}" for v in values.tolist()]
    return cells, np.array([float(cell.replace(",", "")) for cell in cells])


def some_with(form: str, factor: float = 1.0) -> Callable[[Rng, int], Column]:
    """Some cells with a unit; those without it may be multiplied by a factor, or not."""

    def style(rng: Rng, n: int) -> Column:
        values, bare = draw_numbers(rng, n, 1) + 0.5, rng.random(n) < 0.3
        same, bare[0] = rng.random() < 0.5, False  # else nothing says that there is a unit
        truth = values if same else np.where(bare, values * factor, values)
        return [repr(v) if b else form.format(v) for v, b in zip(values.tolist(), bare)], truth

    return style


def multipliers(
    words: dict[str, int], decimal: str = ".", form: str = "{}{}"
) -> Callable[[Rng, int], Column]:
    def style(rng: Rng, n: int) -> Column:
        names = list(words) if rng.random() < 0.7 else [str(rng.choice(list(words)))]
        cells, values = [], []
        for _ in range(n):
            word, digits = str(rng.choice(names)), f"{rng.uniform(1, 900):.{rng.integers(0, 3)}f}"
            cells.append(form.format(digits.replace(".", decimal), word).strip())
            values.append(float(f"{digits}e{words[word]}"))
        return cells, np.array(values)

    return style


def plus_signs(rng: Rng, n: int) -> Column:
    values = draw_numbers(rng, n)
    return [f"{v:+}" for v in values.tolist()], values


def two_kinds(first: str, second: str, factor: float) -> Callable[[Rng, int], Column]:
    """Cells in two units or with two decimal marks, of which either may be rare."""

    def style(rng: Rng, n: int) -> Column:
        values = draw_numbers(rng, n, 1) + 0.5
        other = rng.random(n) < rng.choice([0.02, 0.5, 0.98])
        other[0] = False  # the values are in its unit
        cells = [(second if o else first).format(v) for v, o in zip(values.tolist(), other)]
        if "," in second:
            cells = [c.rstrip(",").replace(".", ",") if "," in c else c for c in cells]
        return cells, np.where(other, factor * values, values)

    return style


def brackets(rng: Rng, n: int) -> Column:
    values = draw_numbers(rng, n, 2)
    return [f"({-v:,.2f})" if v < 0 else f"{v:,.2f}" for v in values.tolist()], values


def indian(rng: Rng, n: int) -> Column:
    def grouped(value: int) -> str:
        head, tail = divmod(value, 1000)
        if not head:
            return str(tail)
        pairs = []
        while head:
            head, pair = divmod(head, 100)
            pairs.append(f"{pair:02}")
        return ",".join([*pairs[::-1], f"{tail:03}"]).lstrip("0")

    values = rng.integers(0, 10 ** int(rng.integers(2, 9)), n)
    return [grouped(v) for v in values.tolist()], values.astype(float)


def codes(form: str) -> Callable[[Rng, int], Column]:
    def style(rng: Rng, n: int) -> Column:
        digits = [f"{v:09}" for v in rng.integers(0, 10**9, n)]
        digits[0] = "0" + digits[0][1:]
        return [form.format(d[:3], d[3:6], d[6:]) for d in digits], None

    return style


def no_numbers(*cells: str) -> Callable[[Rng, int], Column]:
    return lambda rng, n: ([cells[0], *rng.choice(cells, n - 1).tolist()], None)


def gaps_in(style: Callable[..., Column], *words: str) -> Callable[[Rng, int], Column]:
    """A style of numbers or dates, some of whose cells are missing."""

    def with_words(rng: Rng, n: int) -> Column:
        cells, values = style(rng, n)
        gaps, missing = rng.random(n) < 0.2, np.array("NaT" if values.dtype.kind == "M" else np.nan)
        gaps[0] = False
        cells = [str(rng.choice(words)) if gap else cell for cell, gap in zip(cells, gaps)]
        return cells, np.where(gaps, missing.astype(values.dtype), values)

    return with_words


def clock(rng: Rng, n: int) -> Column:
    minutes = rng.integers(0, 24 * 60, n)
    return [f"{m // 60}:{m % 60:02}" for m in minutes.tolist()], minutes / 60


# ---- dates --------------------------------------------------------------------------------------


def date_style(form: str, unit: str = "D", padded: bool | None = None) -> Callable[..., Column]:
    """Dates in a format of strftime, in a part of the columns with days up to 12 alone."""

    def style(rng: Rng, n: int) -> Column:
        first, last = rng.choice(["1930-01-01", "1990-01-01", "2019-01-01"]), "2026-01-01"
        low, high = (int(np.datetime64(day, "s").astype(np.int64)) for day in (first, last))
        moments = rng.integers(low, high, n).astype("datetime64[s]")
        if rng.random() < 0.4:
            days = rng.integers(0, 12, n).astype("timedelta64[D]")
            moments = moments.astype("datetime64[M]").astype("datetime64[D]") + days
            moments = moments.astype("datetime64[s]")
        if form.startswith("%m.%d"):  # a convention: one cell shows that the month comes first
            moments[0] = np.datetime64("2024-04-13", "s")
        bare = rng.random() < 0.4 if padded is None else not padded
        cells = []
        for moment in moments:
            text = moment.astype(datetime).strftime(form)
            if bare and form[2] in "/.-" and len(form) >= 8:  # 3/4/2025
                text = form[2].join(part.lstrip("0") or "0" for part in text.split(form[2]))
            cells.append(text)
        return cells, moments.astype(f"datetime64[{unit}]").astype("datetime64[s]")

    return style


def two_orders(rng: Rng, n: int) -> Column:
    first, moments = date_style("%m/%d/%Y", padded=True)(rng, n)
    second = [moment.astype(datetime).strftime("%d/%m/%Y") for moment in moments]
    other = rng.random(n) < rng.choice([0.02, 0.5])
    cells = [b if o else a for a, b, o in zip(first, second, other)]
    moments[0] = moments[-1] = np.datetime64("2024-01-31", "s")  # shows that there are two orders
    cells[0], cells[-1] = "01/31/2024", "31/01/2024"
    return cells, moments


def zoned(rng: Rng, n: int) -> Column:
    cells, moments = date_style("%Y-%m-%dT%H:%M:%S", "s")(rng, n)
    zones = ("Z", "+01:00", "+0530", "-08", "")
    return [cell + str(rng.choice(zones)) for cell in cells], moments


STYLES: dict[str, Callable[[Rng, int], Column]] = {
    "1234.5": number_style("", "."),
    "1234.500": number_style("", ".", decimals=3, fixed=True),
    "+1234.5": plus_signs,
    "1.5e3": exponents(".", 0.5),
    "1,234": number_style(",", ".", decimals=0),
    "1,234.5": number_style(",", "."),
    "1,234.500": number_style(",", ".", decimals=3, fixed=True),
    "1.234": number_style(".", ",", decimals=0),
    "1.234,5": number_style(".", ","),
    "1.234,500": number_style(".", ",", decimals=3, fixed=True),
    "1234,5": number_style("", ","),
    "1234,500": number_style("", ",", decimals=3, fixed=True),
    "1,5e3": exponents(",", 0.5),
    "1,234.5 and 2e3": exponents_among_thousands,
    "1 234": number_style(" ", ".", decimals=0),
    "1 234.5": number_style("\u202f", "."),
    "1 234,500": number_style("\u00a0", ",", decimals=3, fixed=True),
    "1'234.5": number_style("'", "."),
    "1’234,5": number_style("’", ","),
    "12,34,567": indian,
    "$1,234.5": number_style(",", ".", "${}"),
    "1.234,5 €": number_style(".", ",", "{} €"),
    "CHF 1'234.5": number_style("'", ".", "CHF {}"),
    "1234.500 EUR": number_style("", ".", "{} EUR", decimals=3, fixed=True),
    "1.234 EUR": number_style(".", ",", "{} EUR", decimals=0),
    "5 %": number_style("", ".", "{} %"),
    "5,5%": number_style("", ",", "{}%"),
    "5% and 0.05": some_with("{}%", 100),
    "5 kg": number_style(",", ".", "{} kg"),
    "5 m²": number_style("", ",", "{} m²"),
    "5 kg and 5000": some_with("{} kg", 0.001),
    "5 mg and 5 g": two_kinds("{} mg", "{} g", 1000),
    "$5 and €5": two_kinds("${}", "€{}", 1.1),
    "1.5 and 1,5": two_kinds("{}", "{},", 1),
    "950 and 1.2K": multipliers({"": 0, "K": 3, "M": 6}),
    "1.2k": multipliers({"k": 3}),
    "1.2B and 3M": multipliers({"M": 6, "B": 9, "K": 3}),
    "1,2 Mio and 800": multipliers({"": 0, "Tsd.": 3, "Mio": 6, "Mrd.": 9}, ",", "{} {}"),
    "1.2 million": multipliers({"million": 6, "billion": 9}, ".", "{} {}"),
    "$1.2m and $3bn": multipliers({"": 0, "m": 6, "bn": 9, "k": 3}, ".", "${}{}"),
    "1,2 Mio €": multipliers({"Mio": 6, "Mrd": 9}, ",", "{} {} €"),
    "3 lakh": multipliers({"lakh": 5, "crore": 7}, ".", "{} {}"),
    "(12.50)": brackets,
    "−5": lambda rng, n: (
        lambda column: ([cell.replace("-", "−") for cell in column[0]], column[1])
    )(number_style("", ".")(rng, n)),
    "5-": lambda rng, n: (
        lambda column: ([f"{c[1:]}-" if c.startswith("-") else c for c in column[0]], column[1])
    )(number_style(",", ".")(rng, n)),
    "1,234.5 and gaps": gaps_in(number_style(",", "."), "", "NA", "-", "n/a", "null"),
    "8:30": clock,
    "005 880 596": codes("{} {} {}"),
    "005880596": codes("{}{}{}"),
    "005.880.596": codes("{}.{}.{}"),
    "005,880,596": codes("{},{},{}"),
    "--5": no_numbers("--5", "3", "7"),
    "5²": no_numbers("5²", "6²", "7²"),
    "5½": no_numbers("5½", "6½", "7½"),
    "12am": no_numbers("12am", "1am", "2am"),
    "3万": no_numbers("3万", "4万"),
    "10–20": no_numbers("10–20", "20–30", "30+"),
    "<5": no_numbers("<5", "7", "8"),
    "0x1F": no_numbers("0x1F", "0x20"),
    "2024-01-31": date_style("%Y-%m-%d"),
    "2024/01/31": date_style("%Y/%m/%d"),
    "2024.01.31": date_style("%Y.%m.%d"),
    "31.01.2024": date_style("%d.%m.%Y"),
    "01/31/2024": date_style("%m/%d/%Y"),
    "31/01/2024": date_style("%d/%m/%Y"),
    "31-01-2024": date_style("%d-%m-%Y"),
    "01-31-2024": date_style("%m-%d-%Y"),
    "01.31.2024": date_style("%m.%d.%Y"),
    "31.01.24": date_style("%d.%m.%y"),
    "01/31/24": date_style("%m/%d/%y"),
    "31/01/24": date_style("%d/%m/%y"),
    "24/01/31": date_style("%y/%m/%d", padded=True),
    "24-01-31": date_style("%y-%m-%d"),
    "24.01.31": date_style("%y.%m.%d"),
    "31-01-24": date_style("%d-%m-%y"),
    "01-31-24": date_style("%m-%d-%y"),
    "31-Jan-24": date_style("%d-%b-%y"),
    "31 Jan 2024": date_style("%d %b %Y"),
    "January 31, 2024": date_style("%B %d, %Y"),
    "01.2024": date_style("%m.%Y", "M"),
    "01/2024": date_style("%m/%Y", "M"),
    "01-2024": date_style("%m-%Y", "M"),
    "2024-01": date_style("%Y-%m", "M"),
    "202401": date_style("%Y%m", "M"),
    "20240131": date_style("%Y%m%d"),
    "20240131 and gaps": gaps_in(date_style("%Y%m%d"), "", "-", "?", "n/a"),
    "20240131.0": date_style("%Y%m%d.0"),
    "2024.01": date_style("%Y.%m", "M"),
    "31012024": date_style("%d%m%Y"),
    "01312024": date_style("%m%d%Y"),
    "240131": date_style("%y%m%d"),
    "20240131T1200": date_style("%Y%m%dT%H%M", "m"),
    "202401311200": date_style("%Y%m%d%H%M", "m"),
    "31.01": date_style("%d.%m"),
    "31.01.": date_style("%d.%m."),
    "01/31": date_style("%m/%d"),
    "2024-01-31 12:30": date_style("%Y-%m-%d %H:%M", "m"),
    "2024-01-31T12:30:15Z": zoned,
    "01/31/2024 12:30 PM": date_style("%m/%d/%Y %I:%M %p", "m", padded=True),
    "31.01.2024 12:30": date_style("%d.%m.%Y %H:%M", "m"),
    "1/31/2024 and 31/1/2024": two_orders,
    "31/01/2024 12:30": date_style("%d/%m/%Y %H:%M", "m", padded=True),
}


# ---- attacks ------------------------------------------------------------------------------------


def attack(cells: list[str], truth: Any) -> tuple[str, str]:
    """How a column was read, and what was said about it."""
    table = pa.table({"v": cells, "x": np.arange(len(cells)) * 1.5})
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            reader = TableReader.learn_and_read([table], "Model", None, {"v": "auto", "x": "auto"})[
                0
            ]
            reader.warn("Model")
            kind = reader.columns[0].kind
            values = _values(reader, table)
            parts = values if values is None else _in_parts(reader, table)
        except ValueError as error:
            return ("refused" if "'v'" in str(error) else "REFUSED WITHOUT A NAME"), str(error)
    said = " ".join(str(item.message) for item in warned if "'v'" in str(item.message))
    word = ", warned of" if said else ""
    if kind == "category":
        return f"text{word}", said
    if not _equal(parts, values):
        return "DEPENDS ON OTHER ROWS", said
    if truth is None or not _equal(values, truth):
        return ("WRONG WITHOUT A WORD" if not said else "wrong, warned of"), said
    return f"right{word}", said


def _values(reader: TableReader, table: pa.Table) -> Any:
    column = reader.columns[0]
    if column.kind == "date":
        return reader.dates(table, "Model")["v"]
    return reader.read(table, "Model")[0].values if column.kind == "number" else None


def _in_parts(reader: TableReader, table: pa.Table) -> Any:
    bounds = sorted({0, 1, len(table) // 2, len(table)})
    parts = [table.slice(a, b - a) for a, b in pairwise(bounds)]
    return np.concatenate([_values(reader, part) for part in parts])


def _equal(values: Any, truth: Any) -> bool:
    if (values.dtype.kind == "M") != (truth.dtype.kind == "M"):
        return False
    if truth.dtype.kind == "M":
        return bool(((values == truth) | (np.isnat(values) & np.isnat(truth))).all())
    return bool(np.allclose(values, truth, rtol=1e-12, atol=0, equal_nan=True))


def attack_target(cells: list[str], truth: Any) -> tuple[str, str]:
    """The same of a target."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            values, present = target_values(Text(pa.array(cells)), "v", lambda row: f"row {row}")
        except ValueError as error:
            return ("refused" if "'v'" in str(error) else "REFUSED WITHOUT A NAME"), str(error)
    said = " ".join(str(item.message) for item in warned if "'v'" in str(item.message))
    word = ", warned of" if said else ""
    if values.dtype.kind not in "iuf":
        return f"text{word}", said
    is_right = truth is not None and truth.dtype.kind != "M"
    if not is_right or not _equal(np.asarray(values, float), truth[present]):
        return ("WRONG WITHOUT A WORD" if not said else "wrong, warned of"), said
    return f"right{word}", said


def attack_typed_model(cells: list[str], truth: Any) -> tuple[str, str]:
    """Text given to a model that learned dates with a type: right, refused, or missing."""
    reader = TableReader.learn_and_read([pa.table({"v": truth})], "Model", None, {"v": "auto"})[0]
    wrong = []
    for rows in ([cell] for cell in cells[:3]):
        table = pa.table({"v": rows})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                wrong.append(not _equal(_values(reader, table), truth[len(wrong) : len(wrong) + 1]))
            except (ValueError, UserWarning) as error:
                if "'v'" not in str(error):
                    return "REFUSED WITHOUT A NAME", str(error)
                wrong.append(False)
    return ("WRONG WITHOUT A WORD" if any(wrong) else "right or refused"), ""


def attack_style(name: str, attacks: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Attacks with columns of one style: counts of outcomes, and the columns that broke a rule."""
    counts, broken = Counter[str](), []
    for k in range(attacks):
        rng = np.random.default_rng([seed, k, *name.encode()])
        cells, truth = STYLES[name](rng, ROWS[k % len(ROWS)])
        outcomes = {"feature": attack(cells, truth), "target": attack_target(cells, truth)}
        if truth is not None and truth.dtype.kind == "M" and name != "01.31.2024":
            outcomes["later"] = attack_typed_model(cells, truth)
        for way, (outcome, said) in outcomes.items():
            counts[f"{way}: {outcome}"] += 1
            if outcome.isupper():
                broken.append(f"{name} as a {way}: {outcome}: {cells[:5]} … {said[:200]}")
    return counts, broken


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack all styles, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--styles", nargs="*", default=list(STYLES))
    parser.add_argument("--attacks", type=int, default=100, help="columns of each style")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    total, faults = Counter[str](), list[str]()
    for name in given.styles:
        counts, broken = attack_style(name, given.attacks, given.seed)
        of_features = {k.removeprefix("feature: "): v for k, v in counts.items() if "feature" in k}
        print(f"{name:24}", ", ".join(f"{v} {k}" for k, v in sorted(of_features.items())))
        for fault in broken[:3]:
            print("   ", fault)
        total += counts
        faults += broken
    print(f"\n{len(given.styles)} styles, {given.attacks * len(given.styles):,} columns")
    for outcome, count in sorted(total.items()):
        print(f"{count:7,} {outcome}")
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main())
