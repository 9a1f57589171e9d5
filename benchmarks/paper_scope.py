"""What the papers describe beyond their main algorithms: where it is, or why it is left out."""

from __future__ import annotations

__all__ = ["markdown"]

_ANNFM = "nearest-neighbour maps"
_LOW_DIM = "low-dimensional maps"
_CHEBYSHEV = "Chebyshev"
_ADDITIVE = "additive classifiers"
_COMPRESSIVE = "compressive features"

# Paper, what it describes (its section, equation or figure), where it is or why not.
SCOPE = (
    (_ANNFM, "a kernel for each feature (eq. 1)",
     "a list of kernels: `AnchorMap`, `NystroemMap`, `choose`; maps of cosines share their cosines "
     "over all features, so that kernels are combined by `ColumnTransformer`"),
    (_ANNFM, "nearest neighbours of whole rows (3.1)",
     '`NearestLandmarkMap` of `benchmarks/paper_parts.py`; the number of anchors grows '
     "exponentially with that of features, as the paper says and a test shows"),
    (_ANNFM, "other maps for the anchors (3.3)", "`benchmarks/paper_parts.py`"),
    (_ANNFM, "general weights of neighbours (5)", "`benchmarks/paper_parts.py`"),
    (_ANNFM, "Theorem 1(a), mean error",
     "on the page of `AnchorMap`; `tests/maps/test_anchor.py` tests the rate O(ε²) of the mean "
     "signed error, and the rates of the rms error"),
    (_ANNFM, "Theorem 1(b), rows",
     "`row_certificate`, with measured moments in place of L and σ; attacked below"),
    (_ANNFM, "Table 1", "below; \"2-AN, averaged\" is the paper's 2-AN"),
    (_ANNFM, "Tables 3 and 4", "in shape: the paper's features cannot be had"),
    (_ANNFM, "saliency SIFT (Figure 3)", "left out: a descriptor of images, not a feature map"),
    (_LOW_DIM, "Figures 3 to 6", "below, with numbers"),
    (_LOW_DIM, "match kernels of sets of descriptors (1)", "gallery: sets of descriptors"),
    (_CHEBYSHEV, "γ-homogeneous kernels (2, 3)", "`HomogeneousMap(gamma=…)`, with a certificate"),
    (_CHEBYSHEV, "the same series for min and Jensen-Shannon",
     'left out: future work of the paper; `DesignedMap(method="minimax")` and `AnchorMap` map both '
     "kernels with certified errors"),
    (_CHEBYSHEV, "other composite penalties", "elastic net and sparse groups: `StreamingLasso`"),
    (_CHEBYSHEV, "several labels for a row",
     "`StreamingRidge` or `StreamingLasso`, each label a target of zeros and ones"),
    (_CHEBYSHEV, "skewed χ²", "`benchmarks/paper_parts.py`: random Fourier features of logarithms"),
    (_CHEBYSHEV, "Nyström", "`NystroemMap`"),
    (_CHEBYSHEV, "efficient match kernels (EMK)",
     "left out: learned vocabularies for images; sums of mapped descriptors are in the gallery"),
    (_CHEBYSHEV, "score calibration (7.3)", "`benchmarks/score_alignment.py`; Table 4 uses it"),
    (_CHEBYSHEV, "Tables 1 and 2", "in shape, also with the paper's C = 50 and β = 1.5"),
    (_CHEBYSHEV, "Table 3", "in shape: two descriptors in place of seven"),
    (_CHEBYSHEV, "Table 4", "in shape: Caltech-101 in place of ImageNet"),
    (_ADDITIVE, "Figure 1", "below, with numbers"),
    (_ADDITIVE, "truncated polynomials",
     "left out: they span the same splines as the B-splines of `SplineMap`, but their Gram matrix "
     "is badly conditioned; the paper calls them less stable"),
    (_ADDITIVE, "Jacobi and Laguerre polynomials",
     "left out: the paper names them without an experiment; `TrigonometricMap` and `HermiteMap` "
     "are its orthogonal bases"),
    (_ADDITIVE, "PEGASOS",
     "left out: `fit` certifies a duality gap, which a stochastic gradient does not, also of rows "
     "that do not fit into memory"),
    (_ADDITIVE, "features computed online in the solver (4, 5)",
     "`AdditiveSVC` always trains on values or codes and never stores the mapped rows; Table 4 has "
     "no lines with precomputed features"),
    (_ADDITIVE, "Tables 2 to 4", "in shape, on INRIA, with the spread of six sets as in the paper"),
    (_ADDITIVE, "Table 5", "on our own features, chosen on the test rows, as its section says"),
    (_COMPRESSIVE, "sub-Gaussian projections", '`RandomOrthoprojector(method="independent")`'),
    (_COMPRESSIVE, "restricted isometry of a matrix", "`benchmarks/paper_parts.py`"),
    (_COMPRESSIVE, "Theorem 3", "`required_features`, as a part of Theorem 2"),
    (_COMPRESSIVE, "FastFood", '`sampling="structured"`; its bias is measured below'),
    (
        _COMPRESSIVE,
        "B-spline kernel",
        "`benchmarks/paper_parts.py`, as a product over features, each of them positive definite; "
        "the radial form is not, since the transform of a cubic spline of ‖x − y‖ in two "
        "dimensions is negative in places: 30 × 30 points of a grid, five to a knot interval, have "
        "the eigenvalue −0.031, with the product none below 0",
    ),
    (_COMPRESSIVE, "Figures 2 to 5", "below; other features than pixels but for MNIST"),
    (_COMPRESSIVE, "Figure 6 (house numbers)", "left out: the data cannot be had"),
    (_COMPRESSIVE, "dot-product kernels (conjecture)",
     "measured below with scikit-learn's `PolynomialCountSketch`, which `compare` has, too"),
    (_COMPRESSIVE, "smooth manifolds (conjecture)",
     "left out: the paper has no statement or experiment"),
    (_COMPRESSIVE, "20 trials", "the notes of all random lines say how many seeds there are"),
)  # fmt: skip


def markdown() -> str:
    """The table, for the page of reproductions."""
    rows = ["| paper | what | where, or why not |", "|---|---|---|"]
    rows += [f"| {paper} | {what} | {where} |" for paper, what, where in SCOPE]
    return "\n".join(rows) + "\n"
