"""Streaming models on codes: the model of the decoded features, which are never stored."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.maps.codes import Codes
from kernelmaps.models.streaming.rows import open_rows

N, BLOCK = 300, 64


def problem(seed, k=1):
    """A fitted map, rows, their codes, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.random((N, 5)) * (rng.random((N, 5)) < 0.6)
    y = np.sqrt(X).sum(axis=1) + 0.1 * rng.normal(size=N)
    feature_map = km.AnchorMap("chi2", 10, n_neighbors=k, feature_range=(0, None)).fit(X)
    codes = feature_map.encode(X)
    return feature_map, X, codes, y


class Watched(km.AnchorMap):
    """Notes how many rows are decoded at once; it may not be fitted again."""

    def decode(self, codes, *, out=None):
        self.__dict__.setdefault("decoded", []).append(codes.shape[0])
        return super().decode(codes, out=out)

    def fit(self, X, y=None):
        assert not hasattr(self, "spec_"), "fitted twice"
        return super().fit(X, y)


# ---- what the model is --------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2])
def test_the_model_is_that_of_the_decoded_features(seed, k):
    """Same blocks, same products: equal to the last bit, in fit and in prediction."""
    feature_map, rows, codes, y = problem(seed, k)
    Z = feature_map.decode(codes)
    model = km.StreamingRidge([0.01, 1.0], feature_map, block_rows=BLOCK).fit(codes, y)
    stored = km.StreamingRidge([0.01, 1.0], block_rows=BLOCK).fit(Z, y)
    np.testing.assert_array_equal(model.coef_, stored.coef_)
    np.testing.assert_array_equal(model.predict(codes), stored.predict(Z))
    assert model.feature_map_ is feature_map
    assert model.n_features_in_ == 5
    assert model.n_samples_seen_ == N
    # Raw rows go through transform, whose codes round weights to a byte where it interpolates.
    tolerance = 1e-5 if k == 1 else 1e-2
    np.testing.assert_allclose(model.predict(rows), model.predict(codes), atol=tolerance)
    assert model.score(rows, y) > 0.8


def test_chunks_of_codes_and_of_rows_add_up(seed):
    """partial_fit on codes, then on rows, is fit on all: both are the same φ."""
    feature_map, rows, codes, y = problem(seed)
    whole = km.StreamingRidge(0.1, feature_map).fit(codes, y)
    parts = km.StreamingRidge(0.1, feature_map)
    for a in range(0, N, 100):
        parts.partial_fit(codes[a : a + 100], y[a : a + 100])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-4, atol=1e-5)
    mixed = km.StreamingRidge(0.1, feature_map).partial_fit(codes[:100], y[:100])
    mixed.partial_fit(rows[100:], y[100:])
    np.testing.assert_allclose(mixed.coef_, whole.coef_, rtol=1e-4, atol=1e-5)
    assert parts.n_samples_seen_ == mixed.n_samples_seen_ == N


def test_codes_are_decoded_block_by_block_and_the_map_stays(seed):
    _, X, _, y = problem(seed)
    feature_map = Watched("chi2", 10).fit(X)
    codes = feature_map.encode(X)
    model = km.StreamingRidge(0.1, feature_map, block_rows=BLOCK).fit(codes, y)
    model.predict(codes)
    assert max(feature_map.decoded) == BLOCK
    assert sum(feature_map.decoded) >= 2 * N  # all of them, by fit and by predict


def test_blocks_are_sized_by_the_features_not_by_the_bytes_of_codes():
    X = np.float32(np.random.default_rng(0).random((60, 200)))
    feature_map = km.AnchorMap("chi2", 40, rank=10).fit(X)
    codes = feature_map.encode(X)
    assert codes.dtype == np.uint8
    assert feature_map.decode(codes).dtype == np.float32
    on_codes, on_rows = (km.StreamingPCA(2, feature_map).partial_fit(rows) for rows in (codes, X))
    assert on_codes._block_rows == on_rows._block_rows < 8192  # the longest that there is


# ---- everything else that fit takes -------------------------------------------------------------


def test_codes_in_a_file_are_read_block_by_block(seed, tmp_path):
    feature_map, _, codes, y = problem(seed)
    np.save(tmp_path / "codes.npy", codes.values)
    mapped = Codes(np.load(tmp_path / "codes.npy", mmap_mode="r"), codes.map_hash)
    options = {"alpha": 0.1, "feature_map": feature_map, "block_rows": BLOCK}
    model, stored = (km.StreamingRidge(**options).fit(c, y) for c in (mapped, codes))
    np.testing.assert_array_equal(model.coef_, stored.coef_)
    np.testing.assert_array_equal(model.predict(mapped), stored.predict(codes))


def test_a_checkpoint_of_codes_is_not_one_of_their_bytes(seed, tmp_path):
    """The same bytes as values are other data, although no byte of a block differs."""
    feature_map, _, codes, y = problem(seed)
    sources = (open_rows(km.StreamingRidge(feature_map=feature_map), X, y, reset=True,
                         supervised=True) for X in (codes, codes.values))  # fmt: skip
    of_codes, of_bytes = (source.describe() for source in sources)
    assert of_codes == f"{of_bytes} (codes)"
