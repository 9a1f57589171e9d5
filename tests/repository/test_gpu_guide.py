"""The blocks of the guide to GPUs, on torch's tensors in ordinary memory."""

import re
from pathlib import Path

import numpy as np
import pytest

import kernelmaps as km

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "gpu.md"


def test_blocks_run_in_their_order(seed):
    torch = pytest.importorskip("torch")
    text = GUIDE.read_text("utf-8").replace('"cuda"', '"cpu"').replace("10_000", "60")
    blocks = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 6
    X = np.random.default_rng(seed).dirichlet(np.full(6, 0.5), 200)
    y = X[:, 0]
    names = {
        "X": X,
        "y": y,
        "X_sample": X[:50],
        "X_train": X,
        "y_train": np.digitize(y, [0.05, 0.2]),
        "X_device": torch.asarray(X),
        "fourier_map": km.RandomFourierMap("gaussian", 60, random_state=0).fit(X),
    }
    for block in blocks:
        exec(block, names)
    for name in ("Z", "scores", "K"):
        assert type(names[name]) is torch.Tensor
    assert names["predicted"].shape == y.shape
