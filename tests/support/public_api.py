"""The public API as one list: what the reference documents, taken apart into callables."""

import dataclasses
import inspect
from functools import cached_property
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator

from docs._reference import PARAMETERS_ALONE, sections


def members() -> dict[str, Any]:
    """Every public class, function and kernel by its full name."""
    names = [name for listed in sections().values() for name in listed]
    found = {}
    for full in names:
        module, _, name = full.rpartition(".")
        found[full] = getattr(import_module(module), name)
    return found


def methods(cls: type) -> dict[str, Any]:
    """Public methods that this package defines, inherited ones included.

    A function that is a field of a dataclass is one of its attributes, not a method.
    """
    found = inspect.getmembers(cls, lambda f: inspect.isfunction(f) or inspect.ismethod(f))
    fields = {field.name for field in dataclasses.fields(cls)} if is_result(cls) else set()
    if cls.__module__.rpartition(".")[2] in PARAMETERS_ALONE:
        return {}
    return {
        name: method
        for name, method in found
        if not name.startswith("_")
        and name not in fields
        and (method.__module__ or "").startswith("kernelmaps")
    }


def properties() -> dict[str, Any]:
    """Every public property that this package defines, inherited ones included."""
    found = {}
    for full, member in members().items():
        names = [name for name in dir(member) if not name.startswith("_")]
        for name in names if inspect.isclass(member) else ():
            own = inspect.getattr_static(member, name)
            if isinstance(own, property | cached_property):
                function = own.fget if isinstance(own, property) else own.func
                if function.__module__.startswith("kernelmaps"):
                    found[f"{full}.{name}"] = own
    return found


def callables() -> dict[str, Any]:
    """Every public constructor, function and method."""
    found = {}
    for name, member in members().items():
        if inspect.isclass(member):
            found[name] = member
            found |= {f"{name}.{key}": method for key, method in methods(member).items()}
        elif inspect.isfunction(inspect.unwrap(member)):  # also one that is cached
            found[name] = member
    return found


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    """Parameters by name, without the object itself."""
    try:
        found = dict(inspect.signature(function).parameters)
    except ValueError:  # constructors of exceptions
        return {}
    return {name: p for name, p in found.items() if name not in ("self", "cls")}


def is_result(function: Any) -> bool:
    """Whether it is a class of results or kernels, whose fields are its attributes.

    Estimators are dataclasses, too, but of parameters that users set.
    """
    return dataclasses.is_dataclass(function) and not issubclass(function, BaseEstimator)
