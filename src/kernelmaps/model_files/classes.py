"""Classes that a model file may hold, by the names that files use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import kernelmaps

from ..kernels.registry import kernel_class
from ..maps.registry import PLUGINS as MAP_PLUGINS
from ..schema import State
from .scikit_learn import SKLEARN, SKLEARN_STATES

SPEC_ENTRIES = ("family", "arrays", "numbers", "parts")
NAMED_KERNELS = ("HomogeneousKernel", "Additive")

# Short names that files use, and where the class is today: files outlive a move of the code.
_RECORDS = {
    "Spec": "kernelmaps.engine.spec",
    "Certificate": "kernelmaps.certificate",
    "AnchorCertificate": "kernelmaps.maps._anchor_certificate",
    "Moments": "kernelmaps.stats.moments",
    "FoldMoments": "kernelmaps.stats.composite",
    "KernelMoments": "kernelmaps.stats.composite",
    "Features": "kernelmaps.models.streaming.feature_maps",
    "Part": "kernelmaps.models.streaming.feature_maps",
    "_Solution": "kernelmaps.models.streaming.projection",
    "Summary": "kernelmaps.models.additive.summary",
    "Progress": "kernelmaps.models.additive.summary",
    "Codebook": "kernelmaps.models.tables.codebooks",
    "FittedTerm": "kernelmaps.models.tables.model",
    "TableModel": "kernelmaps.models.tables.model",
    "Term": "kernelmaps.models.tables.terms",
    # Kernels without a name of their own; the others are those of `kernelmaps.kernels.register`.
    # They check their parameters when they are made.
    "MapKernel": "kernelmaps.maps.exponential",
    "SignCauchy": "kernelmaps.kernels.signs",
    "Linear": "kernelmaps.kernels.additive",
}
_ROOMS_OF_ESTIMATORS = ("kernelmaps.maps.", "kernelmaps.models.")
PLUGINS: dict[str, type] = {}  # by `register_class`


def register_class(cls: type) -> None:
    """Let model files hold instances of a class from outside, such as a model of a plug-in.

    A map is made known by `kernelmaps.maps.register`, which does this, too.

    Parameters
    ----------
    cls : type
        An estimator with a `_state` that says what it saves (a subclass of `FeatureMap` inherits
        one, and extends it by what its own transform needs). Its name must be free.
    """
    if not isinstance(getattr(cls, "_state", None), State):
        raise TypeError(f"{cls.__name__} has no _state that says what it saves.")
    known = listed_class(cls.__name__)
    if known is not None and known is not cls:
        raise ValueError(f"the name {cls.__name__!r} is taken by {known.__module__}.")
    PLUGINS[cls.__name__] = cls


def listed_class(name: str) -> type | None:
    """The class that a file may mean by `name`, or None."""
    if name in _RECORDS or name in SKLEARN:
        return getattr(import_module({**_RECORDS, **SKLEARN}[name]), name)
    if name in PLUGINS or name in MAP_PLUGINS:
        return PLUGINS.get(name) or MAP_PLUGINS[name]
    kernel = kernel_class(name)
    if kernel is not None:
        return kernel
    module = kernelmaps._MODULE_OF.get(name, "")
    found = getattr(kernelmaps, name, None) if module.startswith(_ROOMS_OF_ESTIMATORS) else None
    return found if hasattr(found, "_state") else None


def state_of(cls: Any) -> State | None:
    """What the instances of a class save; None for kernels, which are their parameters."""
    if cls.__name__ in SKLEARN:
        return SKLEARN_STATES[cls.__name__]
    return getattr(cls, "_state", None)
