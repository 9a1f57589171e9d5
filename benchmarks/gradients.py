"""Spatial pyramid of oriented gradients for small images: 2172 features of a 28 × 28 digit.

Twelve directions (modulo 2π) times 12² cells of 6 × 6 pixels in steps of 2, 6² cells of 8 × 8 in
steps of 4, and the whole image, stored in one byte. Histograms of cells are not divided by their
lengths: digits are all of the same ink, and with such a division a linear machine is as good as an
additive one, which in the paper it is not.
"""

from __future__ import annotations

import numpy as np

ORIENTATIONS = 12
LEVELS = ((6, 2), (8, 4), (28, 28))  # cell, step
FULL = 1.5  # of the largest byte, in units of the cell's side
_BATCH = 1000


def pyramid(images: np.ndarray) -> np.ndarray:
    """uint8 (n, 2172) of images (n, 784) or (n, 28, 28)."""
    images = images.reshape(-1, 28, 28)
    parts = [_features(images[a : a + _BATCH]) for a in range(0, len(images), _BATCH)]
    return np.concatenate(parts)


def _features(images: np.ndarray) -> np.ndarray:
    padded = np.pad(images.astype(np.float32), ((0, 0), (1, 1), (1, 1)))
    dy = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    dx = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    size = np.hypot(dx, dy) / 255
    place = (np.arctan2(dy, dx) % (2 * np.pi)) * (ORIENTATIONS / (2 * np.pi))
    left = place.astype(np.int64)
    share = (place - left).astype(np.float32)
    energy = np.zeros((*images.shape, ORIENTATIONS), np.float32)
    for bin_, weight in ((left % ORIENTATIONS, 1 - share), ((left + 1) % ORIENTATIONS, share)):
        both = np.take_along_axis(energy, bin_[..., None], axis=-1) + (size * weight)[..., None]
        np.put_along_axis(energy, bin_[..., None], both, axis=-1)
    total = np.pad(energy.cumsum(1).cumsum(2), ((0, 0), (1, 0), (1, 0), (0, 0)))
    return np.concatenate([_level(total, *level) for level in LEVELS], axis=1)


def _level(total: np.ndarray, cell: int, step: int) -> np.ndarray:
    """Histograms of the cells, from cumulative sums."""
    a = np.arange(0, 28 - cell + 1, step)
    b = a + cell
    sums = total[:, b][:, :, b] - total[:, a][:, :, b] - total[:, b][:, :, a] + total[:, a][:, :, a]
    filled = np.clip(sums / (FULL * cell), 0, 1)
    return np.round(255 * filled).astype(np.uint8).reshape(len(sums), -1)
