"""Arguments are refused in one wording: the owner, the argument, what is allowed and found."""

import numpy as np
import pytest

from kernelmaps.arguments import (
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_positive,
)


class Owner:
    pass


@pytest.mark.parametrize("owner", ["Owner", Owner()], ids=["name", "object"])
@pytest.mark.parametrize(
    ("check", "arguments", "message"),
    [
        (check_choice, ("c", ("a", "b")), "Owner: x must be one of 'a', 'b', got 'c'."),
        (check_choice, (True, (0, 1)), "Owner: x must be one of 0, 1, got True."),
        (check_choice, (["a"], ("a",)), r"Owner: x must be one of 'a', got \['a'\]."),
        (check_choice, (np.ones(2), (1, 2)), "Owner: x must be one of 1, 2, got array"),
        (check_count, (0,), "Owner: x must be an integer >= 1, got 0."),
        (check_count, (True,), "Owner: x must be an integer >= 1, got True."),
        (check_count, (2, 3), "Owner: x must be an integer >= 3, got 2."),
        (check_count, (2.0,), "Owner: x must be an integer >= 1, got 2.0."),
        (check_positive, (0.0,), "Owner: x must be a positive number, got 0.0."),
        (check_positive, (np.nan,), "Owner: x must be a positive number, got nan."),
        (check_positive, (np.inf,), "Owner: x must be a positive number, got inf."),
        (check_positive, ("1",), "Owner: x must be a positive number, got '1'."),
        (check_positive, (0, "a width"), "Owner: x must be a width, got 0."),
        (check_number, (2, "small", lambda v: v < 1), "Owner: x must be small, got 2."),
        (check_number, (True, "small", lambda v: True), "Owner: x must be small, got True."),
        (check_flag, (1,), "Owner: x must be True or False, got 1."),
    ],
)
def test_wrong_arguments_are_refused_by_name(owner, check, arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        check(owner, "x", *arguments)


def test_right_arguments_pass():
    check_choice("f", "x", "b", ("a", "b"))
    check_choice("f", "x", np.int64(2), (1, 2))
    assert check_count("f", "x", np.int32(3)) == 3
    check_positive("f", "x", np.float32(0.5))
    check_flag("f", "x", np.bool_(False))
