"""Write the performance page, its picture and the README's table: ``python -m benchmarks.render``.

Everything is made from ``results/*.json``; nothing is measured here. The page shows headlines; all
rows are tables of their own in ``docs/records``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from math import log10
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from .harness import RESULTS, Row, figure, ratio_text
from .record_tables import keep_table, markdown_table

ROOT = RESULTS.parent.parent
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "headlines.svg"
README = ROOT / "README.md"
SLOWER = 1.5  # at most, with 128-bit vectors


class Headline(NamedTuple):
    """One bar of the picture: a row of the results under a short name."""

    record: str
    what: str
    peer: str  # how the peer's name begins in the results
    label: str
    beside: str  # the peer's name in the picture
    tuned: bool = False  # whether settings of ours were tuned and the peer's were not


HEADLINES = [
    Headline("tables", "diamonds, no pairs: fit", "EBM",
             "GAM of 40,000 diamonds, fit", "EBM without pairs"),
    Headline("tables", "flights: fit", "mgcv::bam",
             "GAM of 150,000 flights (two classes), fit", "R's mgcv::bam(discrete)"),
    Headline("foundation", "exact χ² Gram 2000×2000×784, CSR 5 % non-zero", "sklearn",
             "Exact χ² Gram matrix, sparse rows", "additive_chi2_kernel"),
    Headline("foundation", "HomogeneousMap χ² 5-D, uint8 20000×784", "sklearn",
             "χ² map, bytes", "AdditiveChi2Sampler"),
    Headline("foundation", "HomogeneousMap χ² 5-D, float32 20000×784 in [0, 1)", "sklearn",
             "χ² map, float32", "AdditiveChi2Sampler"),
    Headline("streaming", "PCA of 20,000 × 400 float64 in 10 chunks, 100 components", "sklearn",
             "PCA in chunks", "IncrementalPCA"),
    Headline("foundation", "HomogeneousMap χ² 5-D, CSR float32 20000×784, 20 % non-zero", "sklearn",
             "χ² map, sparse rows", "AdditiveChi2Sampler"),
    Headline("fourier", "compressive features m=100 (default), 3000×784 → 6000, float32", "sklearn",
             "Compressive Fourier features", "RBFSampler"),
    Headline("fourier", "RandomFourierMap 5000×784 → 2000, CSR 19 % non-zero, float32", "sklearn",
             "Fourier features, sparse rows", "RBFSampler"),
    Headline("exponential", "rms error of exp-χ², D = 4096, scene15_bow", "sklearn Additive",
             "Error of exp-χ² features (smaller by)", "AdditiveChi2Sampler + RBFSampler"),
    Headline("additive", "fit inria, C=0.01: D1, degree 3, 10 bases", "LinearSVC",
             "Additive SVM (cubic splines), fit", "LinearSVC on raw features"),
    Headline("additive", "decision_function, cubic, 100 bases, float64 rows", "LinearSVC",
             "Additive SVM (100 splines a feature), predict", "LinearSVC on raw features"),
]  # fmt: skip

TITLES = {
    "additive": "Additive SVMs",
    "anchor": "Anchor maps and codes",
    "design": "Design of maps",
    "exponential": "Exponential kernels",
    "foundation": "Kernels and homogeneous maps",
    "fourier": "Random Fourier features",
    "ordinary": "Additive SVMs of ordinary tables",
    "product": "Compare and choose",
    "streaming": "Streaming models",
    "tables": "Generalised additive models",
    "wide": "Generalised additive models of many columns",
}

INTRODUCTION = """# Performance

<!-- Made by `python -m benchmarks.render` from benchmarks/results/*.json: do not edit. -->

```{image} images/headlines.svg
:alt: Ratios against other libraries, as bars on a logarithmic scale
```

Each bar says how many times better kernelmaps is than the named peer on the same task: faster, or
with a smaller error where the label says so. Bars left of 1× are tasks where the peer is better.
Both sides have their default settings, or equal ones. The same in numbers:

{headlines}

*Earlier loop* means that the compiled code has changed since and the row has not been measured
again. All comparisons are in the tables below; where settings of ours were tuned and those of the
peer are its defaults, the note of the row says so.

{arena}
## How to read the tables

Every row compares two sides in one process on one machine: they take turns on the same data, after
one warm-up call each, and the best of several rounds counts.

- **ratio**: how many times better we are than the peer. Below 1× the peer is better.
- **target**: what we set out to reach; ✓ if reached, ✗ if not.
- **at 128 bits**: the ratio of a second run in which our code is compiled for the baseline
  instructions of the processor, as on machines without wide vectors. The peers keep theirs. Where
  that column has no target of its own, it is the ratio of the first run divided by 1.5.
- **× limit**: our time divided by the time that the hardware needs at least. For maps this is the
  time to write the result into fresh memory; for products, the time at the measured GEMM rate. 1.0
  is the hardware limit.
- Memory is what a separate process needs beyond the result.

Run the benchmarks yourself with `make bench`.
"""


def find(records: dict[str, dict], headline: Headline) -> Row | None:
    """The row of a headline, or None where it was not measured."""
    for row in records.get(headline.record, {}).get("rows", []):
        same = row["what"] == headline.what and row["peer"].startswith(headline.peer)
        if same and row["ratio"] is not None:
            return Row(**row)
    return None


def headline_rows(records: dict[str, dict]) -> list[tuple[Headline, Row]]:
    """Headlines that were measured, the largest ratio first."""
    found = [(headline, find(records, headline)) for headline in HEADLINES]
    return sorted((pair for pair in found if pair[1]), key=lambda pair: -pair[1].ratio)


def remarks(headline: Headline, row: Row, tuned: str) -> str:
    """What a reader has to know beside the ratio, in brackets."""
    found = [tuned] * headline.tuned + ["earlier loop"] * ("earlier loop" in row.note)
    return f" ({', '.join(found)})" if found else ""


def picture(rows: list[tuple[Headline, Row]]) -> str:
    """The headlines as horizontal bars on a logarithmic scale, in SVG."""
    left, width, height = 300, 330, 26
    low, high = -1.0, max(1.0, *(log10(row.ratio) for _, row in rows)) if rows else 1.0

    def x(ratio: float) -> float:
        return left + width * (log10(ratio) - low) / (high - low)

    bottom = 14 + height * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {bottom + 34}" width="900" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="900" height="{bottom + 34}" fill="#ffffff"/>',
    ]
    for power in range(int(low), int(high) + 1):
        line = "#888888" if power == 0 else "#dddddd"
        parts.append(
            f'<line x1="{x(10**power):.1f}" x2="{x(10**power):.1f}" y1="8" y2="{bottom}" '
            f'stroke="{line}"/><text x="{x(10**power):.1f}" y="{bottom + 18}" fill="#555555" '
            f'text-anchor="middle">{ratio_text(10.0**power)}</text>'
        )
    for k, (headline, row) in enumerate(rows):
        y = 14 + height * k
        begin, end = sorted((x(1.0), x(row.ratio)))
        color = "#1b4965" if row.ratio >= 1 else "#d1495b"
        beside = headline.beside + remarks(headline, row, "tuned")
        parts += [
            f'<text x="{left - 12}" y="{y + 15}" text-anchor="end" fill="#222222">'
            f"{escape(headline.label)}</text>",
            f'<rect x="{begin:.1f}" y="{y + 2}" width="{max(end - begin, 1):.1f}" height="18" '
            f'fill="{color}"/>',
            f'<text x="{max(end, x(1.0)) + 8:.1f}" y="{y + 15}" fill="#222222">'
            f'<tspan font-weight="bold">{ratio_text(row.ratio)}</tspan>'
            f'<tspan fill="#555555">  {escape(beside)}</tspan></text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def headline_figures(rows: list[tuple[Headline, Row]]) -> list[str]:
    """The headlines with the figures of both sides, for the top of the page."""
    header = ("task", "ours", "compared with", "theirs", "ratio", "python -m benchmarks …")
    cells = [
        (
            headline.label,
            f"{figure(row.ours)} {row.unit}",
            headline.beside + remarks(headline, row, "our settings tuned, theirs default"),
            f"{figure(row.theirs)} {row.unit}",
            ratio_text(row.ratio),
            f"`{headline.record}`",
        )
        for headline, row in rows
    ]
    return markdown_table(header, cells)


def headline_table(rows: list[tuple[Headline, Row]]) -> list[str]:
    """The headlines as a Markdown table for the README."""
    header = ("task", "compared with", "ours is better by (below 1×: worse)")
    cells = []
    for headline, row in rows:
        anchor = title(headline.record).lower().replace(" ", "-")
        section = f"docs/performance.md#{anchor}"
        note = remarks(headline, row, "our settings tuned, theirs default")
        cells.append(
            (headline.label, f"{headline.beside}{note}", f"[{ratio_text(row.ratio)}]({section})")
        )
    return markdown_table(header, cells)


def title(name: str) -> str:
    """The heading of a record."""
    return TITLES.get(name, name.replace("_", " ").capitalize())


def measured_on(date: str, machine: dict, limits: dict) -> str:
    """When and where a record was measured."""
    return (
        f"{date}, {machine['threads']} threads of {machine['processor']}; memory copy "
        f"{limits['copy'] / 1e9:.1f} GB/s, DGEMM {limits['dgemm'] / 1e9:.0f} Gflop/s; "
        f"NumPy {machine['numpy']}, scikit-learn {machine['scikit-learn']}, "
        f"numba {machine['numba']}."
    )


def section(page: Path, record: dict, plain: dict | None = None) -> list[str]:
    """One record: its machine and its table, with the ratios of a run at 128 bits beside."""
    narrow = {(row["what"], row["peer"]): Row(**row) for row in (plain or {}).get("rows", [])}
    machine = record["machine"]
    # Our own threads make a load of their number; much more is other people's work.
    busy = machine.get("load", 0) > 2 * machine["threads"]
    warning = f" **The machine was busy with other work (load {machine['load']}).**" if busy else ""
    rows = [Row(**row) for row in record["rows"]]
    for row in rows:
        date = "" if row.date in ("", record["date"]) else f"measured {row.date}"
        row.note = "; ".join(words for words in (row.note, date) if words)
    aimed = [row.reached for row in rows if row.reached is not None]
    header = ("task", "ours", "peer", "theirs", "ratio", "target", "at 128 bits", "its target",
              "× limit", "note")  # fmt: skip
    cells = [table_row(row, narrow.get((row.what, row.peer))) for row in rows]
    return [
        f"## {title(record['name'])}",
        "",
        f"`python -m benchmarks {record['name']}`: {sum(aimed)} of {len(aimed)} targets reached. "
        f"{measured_on(record['date'], machine, record['limits'])}{warning}",
        "",
        *keep_table(page, record["name"], header, cells),
        "",
    ]


ARENA = """## Accuracy on ordinary tables

{tables} public tables of R packages and scikit-learn that no setting was chosen on, {splits} splits
of each (70 % of the rows for training), every method at its defaults
(`python -m benchmarks.arena --half {half} --splits {splits}`). The score is the AUC for two
classes and R² for numbers; rank 1 is the best method of a table; seconds are processor time of all
fits of one split. The losses are those to the linear model (ridge regression with α chosen by
cross-validation, or logistic regression): the largest of a table, with its standard error.
"""


def arena_methods(record: dict) -> list[str]:
    """The methods of the arena by their mean rank."""
    return sorted(record["summary"], key=lambda name: record["summary"][name]["rank"])


def arena_section(page: Path, record: dict, ebm: dict) -> list[str]:
    """Methods by their mean rank on the tables of the arena, the tables folded below.

    `ebm` has the scores of EBM in the first splits of some tables, which take it minutes.
    """
    methods = arena_methods(record)
    lines = []
    for method in methods:
        row = record["summary"][method]
        loss = f"{row['largest loss']:.3f} ± {row['its error']:.3f}"
        lines.append(
            (method, f"{row['score']:.3f}", f"{row['rank']:.2f}",
             "–" if method == "linear" else loss, f"{row['seconds']:.1f}")
        )  # fmt: skip
    cells = []
    for name, row in record["tables"].items():
        scores = (f"{sum(row[m]['scores']) / len(row[m]['scores']):.3f}" for m in methods)
        cells.append((name, str(row["rows"]), str(row["columns"]), *scores))
    header = ("method", "mean score", "mean rank", "largest loss to linear", "seconds")
    return [
        *ARENA.format(
            tables=len(record["tables"]), splits=record["splits"], half=record["half"]
        ).splitlines(),
        "",
        *markdown_table(header, lines),
        "",
        *beside_ebm(record, ebm),
        *keep_table(page, "arena", ("table", "rows", "columns", *methods), cells),
        "",
    ]


def arena_ranks(record: dict) -> list[str]:
    """The arena in the README: mean ranks and scores."""
    cells = []
    for method in arena_methods(record):
        row = record["summary"][method]
        cells.append((method, f"{row['rank']:.2f}", f"{row['score']:.3f}", f"{row['seconds']:.1f}"))
    header = ("method, at its defaults", "mean rank", "mean score", "seconds")
    return markdown_table(header, cells)


def beside_ebm(record: dict, ebm: dict, method: str = "kernelmaps, pairs") -> list[str]:
    """Mean scores and seconds on the tables and splits that EBM was fitted to."""
    tables = {name: row[method] for name, row in record["tables"].items() if name in ebm}
    if not tables:
        return []
    n_splits = min(len(ebm[name]["scores"]) for name in tables)
    words = []
    for label, rows in (("EBM", ebm), (method, tables)):
        score = sum(sum(rows[name]["scores"][:n_splits]) / n_splits for name in tables)
        seconds = sum(rows[name]["seconds"] for name in tables)
        words.append(f"{label} has a mean score of {score / len(tables):.3f} in {seconds:.0f} s")
    splits = "one split" if n_splits == 1 else f"{n_splits} splits"
    text = f"EBM was fitted to {len(tables)} of these tables, {splits} of each: {', '.join(words)}."
    return [*fill(text, 100).splitlines(), ""]


def arm_section(page: Path, records: list[dict]) -> list[str]:
    """The races that were run on ARM, in one table."""
    newest = max(records, key=lambda record: record["date"])
    cells = []
    for row in (Row(**row) for record in records for row in record["rows"]):
        ratio = ratio_text(row.ratio) if row.ratio is not None else "–"
        ours, theirs = f"{figure(row.ours)} {row.unit}", figure(row.theirs)
        peer, note = row.peer or "–", row.note or "–"
        cells.append((row.what, ours, peer, theirs, ratio, target_text(row), note))
    header = ("task", "ours", "peer", "theirs", "ratio", "target", "note")
    return [
        "## On ARM",
        "",
        f"{measured_on(newest['date'], newest['machine'], newest['limits'])} Vectors have 128 bits "
        "there: the targets are those of that column above.",
        "",
        *keep_table(page, "arm", header, cells),
        "",
    ]


def gpu_section(page: Path, record: dict) -> list[str]:
    """The record of a GPU."""
    cells = []
    for row in (Row(**row) for row in record["rows"]):
        share = f"{1 / row.of_limit:.0%} ({row.limit_of})" if row.of_limit else "–"
        theirs = f"{figure(row.theirs)} {row.unit}" if row.theirs else "–"
        ours = f"{figure(row.ours)} {row.unit}"
        cells.append((row.what, ours, target_text(row), share, theirs, row.note or "–"))
    header = ("task", "ours", "target", "share of the limit", "formula", "note")
    return [
        "## On a GPU",
        "",
        f"`python -m benchmarks.device`: {record['date']}, one {record['gpu']}; copies on the GPU "
        f"at {record['copy'] / 1e12:.2f} TB/s; torch {record['torch']}, Triton "
        f"{record['triton']}. A time is that of the GPU: twenty calls are recorded and played "
        "back; notes say what a call takes that the processor launches anew, or waits for. The "
        "limit of an additive map is a copy of the rows and the result, that of a joint map its "
        "dense matrix product alone.",
        "",
        *keep_table(page, "gpu", header, cells),
    ]


def table_row(row: Row, narrow: Row | None = None) -> tuple[str, ...]:
    """One row of the table; `narrow`: the same race at 128 bits."""
    return (
        row.what,
        f"{figure(row.ours)} {row.unit}",
        row.peer or "–",
        figure(row.theirs),
        *(ratio_text(row.ratio) if row.ratio is not None else "–", target_text(row)),
        *narrow_cells(row, narrow),
        f"{row.of_limit:.1f}× ({row.limit_of})" if row.of_limit is not None else "–",
        row.note or "–",
    )


def target_text(row: Row) -> str:
    """What was to be reached, and whether it was."""
    return (row.target or "–") + {True: " ✓", False: " ✗", None: ""}[row.reached]


def narrow_cells(row: Row, narrow: Row | None) -> tuple[str, str]:
    """Ratio and target at 128 bits; a row without one of its own follows the other ratio."""
    if narrow is None or narrow.ratio is None:
        return "–", "–"
    if not narrow.target and row.ratio is not None:
        wanted = row.ratio / SLOWER
        narrow = replace(narrow, target=f"≥ {ratio_text(wanted)}", reached=narrow.ratio >= wanted)
    return ratio_text(narrow.ratio), target_text(narrow)


def read_json(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def load(results: Path = RESULTS) -> dict[str, dict]:
    """The records of all races by name."""
    found = [read_json(path) for path in sorted(results.glob("*.json"))]
    # Other scripts keep results here, too: those of a race have the machine's limits with them.
    return {
        record["name"]: record
        for record in found
        if isinstance(record, dict) and "limits" in record
    }


def write(page: Path = PAGE) -> Path:
    """Write the performance page and its tables from all results there are."""
    headlines = "\n".join(headline_figures(headline_rows(load())))
    ebm = read_json(RESULTS / "recorded" / "ebm_arena.json")
    arena = "\n".join(arena_section(page, read_json(RESULTS / "arena.json"), ebm))
    top = INTRODUCTION.replace("{headlines}", headlines).replace("{arena}", arena)
    lines = [*top.splitlines(), ""]
    for name, record in load().items():
        lines += section(page, record, read_json(RESULTS / "plain" / f"{name}.json"))
    lines += arm_section(page, list(load(RESULTS / "arm").values()))
    lines += gpu_section(page, read_json(RESULTS / "device.json"))
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return page


def readme_text(text: str) -> str:
    """The README with the tables of headlines and of the arena as the results have them."""
    headlines = headline_table(headline_rows(load()))
    arena = arena_ranks(read_json(RESULTS / "arena.json"))
    for name, table in (("headlines", headlines), ("arena", arena)):
        begin, end = f"<!-- {name}: made by benchmarks/render.py -->", f"<!-- end {name} -->"
        before, rest = text.split(begin)
        body = "\n".join(table)
        text = f"{before}{begin}\n\n{body}\n\n{end}{rest.split(end)[1]}"
    return text


def write_all() -> list[Path]:
    """Write the page, its picture and the README's table."""
    PICTURE.write_text(picture(headline_rows(load())), encoding="utf-8")
    README.write_text(readme_text(README.read_text(encoding="utf-8")), encoding="utf-8")
    return [write(), PICTURE, README]


if __name__ == "__main__":
    print(*write_all(), sep="\n")
