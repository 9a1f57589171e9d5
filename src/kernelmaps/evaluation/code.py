"""Python code for what was measured: maps, kernels, pipelines and programs."""

from __future__ import annotations

from typing import Any

from ..kernels import Exponential, HomogeneousKernel, Kernel


def kernel_code(kernel: Kernel) -> str:
    """Python that makes a kernel."""
    if isinstance(kernel, Exponential):
        return f"km.kernels.Exponential({kernel_code(kernel.base)}, gamma={kernel.gamma!r})"
    if not isinstance(kernel, HomogeneousKernel):
        return f"km.kernels.{kernel!r}"
    changes = [f"gamma={kernel.gamma:g}"] if kernel.gamma != 1 else []
    changes += ["signed=True"] if kernel.signed else []
    name = f"km.kernels.{kernel.name}"
    return f"{name}.replace({', '.join(changes)})" if changes else name


def expression(value: Any) -> str:
    """Python that makes a value; of estimators with the settings that are not the defaults."""
    if isinstance(value, Kernel):
        return kernel_code(value)
    if not hasattr(value, "get_params"):
        return repr(value)
    if hasattr(value, "steps"):
        return f"make_pipeline({', '.join(expression(step) for _, step in value.steps)})"
    prefix = "km." if _is_ours(value) else ""
    own, usual = value.get_params(deep=False), type(value)().get_params(deep=False)
    changed = [f"{key}={expression(own[key])}" for key in own if repr(own[key]) != repr(usual[key])]
    return f"{prefix}{type(value).__name__}({', '.join(changed)})"


def import_lines(pipeline: Any) -> list[str]:
    """The imports that `expression` of a pipeline needs beside ``import kernelmaps as km``."""
    lines = {"from sklearn.pipeline import make_pipeline"}
    for _, step in pipeline.steps:
        if not _is_ours(step):
            module = type(step).__module__.split("._")[0]
            lines.add(f"from {module} import {type(step).__name__}")
    return sorted(lines)


def _is_ours(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "kernelmaps"
