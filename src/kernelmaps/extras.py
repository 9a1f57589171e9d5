"""Import of optional packages, with a hint which extra installs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PACKAGES = {
    "plot": ["matplotlib"],
    "dask": ["dask", "distributed"],
    "data": ["h5py", "zarr"],
    "onnx": ["onnx", "onnxruntime", "skl2onnx"],
    "skops": ["skops"],
}
EXTRA_OF = {package: extra for extra, packages in _PACKAGES.items() for package in packages}
"""The smallest extra that installs each optional package."""


def install_hint(package: str) -> str:
    """Say how to install a missing package."""
    extra = EXTRA_OF.get(package)
    requirement = f"'kernelmaps[{extra}]'" if extra else package
    return f"{package} is not installed: pip install {requirement}"


def needed(package: str) -> Any:
    """Import a package that only some parts need, or say how to get it."""
    name = package.split(".")[0]
    try:
        import_module(name)
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(install_hint(name), name=name) from error
