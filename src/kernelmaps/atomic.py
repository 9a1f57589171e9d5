"""Decorator for methods that either succeed or leave the object unchanged."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from .arguments import with_parameter

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(method: Method) -> Method:
    """Leave the attributes as they were if the method ends by an error or by Ctrl-C.

    An estimator whose `fit` is interrupted would otherwise keep, say, the new map beside the old
    weights. The method must set attributes, not change their values in place. An error that a
    parameter of a wrong kind led to names that parameter.
    """

    @wraps(method)
    def guarded(self: Any, *arguments: Any, **options: Any) -> Any:
        before = dict(self.__dict__)
        try:
            return method(self, *arguments, **options)
        except BaseException as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            named = with_parameter(self, error) if isinstance(error, Exception) else error
            if named is error:
                raise
            raise named from error

    return guarded  # type: ignore[return-value]
