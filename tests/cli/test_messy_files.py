"""Files as they come: each is fitted, with at most one option more, which the first run names."""

import gzip
import shlex

import numpy as np
import pandas as pd
import pytest
from command_line import invoke, run

N = 60
rng = np.random.default_rng(0)
area = rng.gamma(5.0, 20.0, N).round(1)
FLATS = pd.DataFrame(
    {
        "town": rng.choice(["Köln", "Bonn", "Bern"], N),
        "area": area,
        "built": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, N), "D"),
        "rent": (area * 10 + rng.normal(0, 20, N)).round(2),
    }
)


def text(frame=FLATS, names=None, **options):
    lines = frame.to_csv(index=False, lineterminator="\n", **options)
    return lines if names is None else ",".join(names) + lines[lines.index("\n") :]


def with_token(column, rows, token="k.A."):
    frame = FLATS.astype({column: object})
    frame.loc[: rows - 1, column] = token
    return frame


def write_workbook(path):
    frame = FLATS.assign(built=FLATS["built"].dt.date)
    frame.to_excel(path, index=False, startrow=2)


def write_folder(path):
    """Parts by town, of which one has whole numbers where the others have fractions."""
    path.mkdir()
    for name, part in FLATS.groupby("town"):
        (path / f"town={name}").mkdir()
        part = part.drop(columns="town").astype({"area": int} if name == "Bern" else {})
        part.to_parquet(path / f"town={name}" / "part-0.parquet")
    (path / "_SUCCESS").write_text("")


ragged = text().splitlines()
ragged[5] += ",remark"
ragged[9] = "Köln"
gaps = FLATS.assign(area=FLATS["area"].where(FLATS.index > 2))
forms = ["%Y-%m-%d", "%d.%m.%Y", "%d%b%Y", "%b %d, %Y"]
several_forms = [day.strftime(forms[k % 4]) for k, day in enumerate(FLATS["built"])]
HEADER = ["town", "area", "area", "rent"]
FILES = {
    "two columns of one name.csv": (text(names=HEADER), None),
    "the number of a name is taken.csv": (
        text(FLATS.assign(x=1.5 * area), [*HEADER, "area.1"]), None,
    ),
    "lines of other lengths.csv": ("\n".join(ragged), "--bad-lines skip"),
    "some odd tokens.csv": (text(with_token("area", 2)), "--na-values k.A."),
    "many odd tokens.csv": (text(with_token("area", 15, "n. b.")), "--na-values 'n. b.'"),
    "of a database.csv": (text(gaps, na_rep="\\N"), None),
    "a division by zero of R.csv": (text(with_token("area", 1, "Inf")), "--na-values Inf"),
    "a token among targets.csv": (text(with_token("rent", 3)), "--na-values k.A."),
    "of Windows.csv": (text(FLATS.replace("Bern", "€-Ort")).encode("cp1252"), "--encoding cp1252"),
    "utf-16.csv": (text().encode("utf-16"), None),
    "of a spreadsheet.csv.gz": (
        gzip.compress(text(sep=";", decimal=",", date_format="%d.%m.%Y").encode("utf-8-sig")), None,
    ),
    "a title and bars.csv": ("Rents of 2024\n\n" + text(sep="|"), None),
    "tabs and other line ends.tsv": (text(sep="\t").replace("\n", "\r\n\r\n"), None),
    "book.xlsx": (write_workbook, None),
    "folder": (write_folder, None),
    "dates in several forms.csv": (text(FLATS.assign(built=several_forms)), None),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_messy_files_are_fitted(tmp_path, name):
    content, option = FILES[name]
    path, out = tmp_path / name, tmp_path / "model.kmap"
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    fit = ["fit", path, "-t", "rent", "-o", out]
    options = []
    if option is None:
        result = invoke(*fit)
    else:
        result = invoke(*fit, "--holdout", "none")
        assert option in " ".join(result.stderr.split())
        options = shlex.split(option)
        result = invoke(*fit, *options)
    assert result.exit_code == 0, result.output
    shown = " ".join(result.stdout.split())
    assert "numbers: area" in shown
    assert "categories: town" in shown
    assert "dates: " in shown
    assert "R² on" in shown
    assert float(shown.partition("R² on ")[2].split()[3]) > 0.8
    predicted = invoke("predict", out, path, *([] if "na-values" in str(option) else options))
    assert predicted.exit_code == 0, predicted.output
    assert "k.A." not in predicted.stderr  # the model knows its tokens
    assert 55 <= len(predicted.stdout.splitlines()) <= N + 1


def test_a_workbook_is_read_in_blocks_as_at_once(tmp_path):
    write_workbook(tmp_path / "book.xlsx")
    predicted = []
    for option in ("--in-memory", "--stream"):
        run("fit", tmp_path / "book.xlsx", "-t", "rent", "-o", tmp_path / "m.kmap", option)
        predicted.append(run("predict", tmp_path / "m.kmap", tmp_path / "book.xlsx"))
    assert predicted[0] == predicted[1]
