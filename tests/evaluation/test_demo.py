"""The demonstration is one comparison that every public map takes part in."""

import pytest

import kernelmaps
from kernelmaps.evaluation import demo


@pytest.fixture(scope="module")
def asked():
    """What the demonstration asks for, without running it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "compare", lambda X, y, **options: (X, y, options))
        return demo.run_demo(progress=False)


def test_every_public_map_takes_part(asked):
    public = {n for n, m in kernelmaps._MODULE_OF.items() if m.startswith("kernelmaps.maps.")}
    maps = {n for n in public if hasattr(getattr(kernelmaps, n), "transform")}
    names = {item if isinstance(item, str) else type(item[1]).__name__ for item in asked[2]["maps"]}
    assert names == maps - set(demo.ELSEWHERE)


def test_it_is_within_its_time_and_on_all_digits(asked):
    X, y, options = asked
    assert options["budget"] <= 15
    assert X.shape == (1797, 64)
    assert len(y) == 1797
    scope = {"km": kernelmaps}
    exec(options["loading_code"], scope)
    assert (scope["X"] == X).all()


def test_it_runs():
    result = demo.run_demo(budget=0.5, progress=False)
    assert result.finished()
    assert result.task == "classification"
    assert len({row.label for row in result.rows}) > 20
