"""Arguments are refused in one wording: the owner, the argument, what is allowed and found."""

import numpy as np
import pytest

from kernelmaps._util.arguments import (
    argument,
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_positive,
    named_as_options,
    parameter,
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
        (check_count, (np.timedelta64(1),), "Owner: x must be an integer >= 1, got np.timedelta64"),
        (check_count, (np.timedelta64(2, "s"),), "Owner: x must be an integer >= 1, got np.time"),
        (check_count, (np.datetime64(1, "s"),), "Owner: x must be an integer >= 1, got np.datet"),
        (check_choice, (np.timedelta64(1), (1, 2)), "Owner: x must be one of 1, 2, got np.timede"),
        (check_positive, (np.timedelta64(1),), "Owner: x must be a positive number, got np.time"),
        (check_positive, (np.datetime64(1, "s"),), "Owner: x must be a positive number, got np.d"),
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


def test_a_command_names_its_options_where_python_names_arguments():
    assert parameter("max_error") == "max_error"
    assert argument("max_error") == "max_error="
    assert argument("loss", "poisson") == "loss='poisson'"
    assert argument("maps", None) == "maps=None"
    with named_as_options({"max_error": "--max-error", "loss": "--loss"}):
        assert parameter("max_error") == argument("max_error") == "--max-error"
        assert argument("loss", "poisson") == "--loss poisson"
        assert argument("tol", 0.1) == "tol=0.1"  # not an option of this command
        with pytest.raises(ValueError, match=r"^fit: --loss must be one of 'a', got 'b'"):
            check_choice("fit", "loss", "b", ["a"])
    assert argument("max_error") == "max_error="


def test_names_of_arguments_are_restored_after_an_error():
    with pytest.raises(RuntimeError), named_as_options({"tol": "--tol"}):
        raise RuntimeError
    assert parameter("tol") == "tol"
