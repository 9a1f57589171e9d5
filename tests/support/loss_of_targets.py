"""Losses by name, in units of the targets."""

import numpy as np

from kernelmaps.models.losses import LOSSES, Loss, svm_loss


def make_loss(name, y, weight=None, epsilon=0.0) -> Loss:
    """The loss as a fit of these targets has it."""
    if LOSSES[name].for_gam:
        return LOSSES[name].adapt_to_targets(y, np.ones(len(y)) if weight is None else weight)
    return svm_loss(name, epsilon)
