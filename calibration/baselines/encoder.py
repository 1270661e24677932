"""Run a BERT encoder in NumPy, one text at a time and without padding.

Single precision, as torch runs it. What is not a matrix product works on pieces that stay in
the processor's cache, which leaves the products some three quarters of the time.
"""

import numpy as np
import numpy.typing as npt

from calibration.baselines.transformer import Affine, Block, Transformer
from calibration.baselines.weights import Array32

# Abramowitz & Stegun (1964), 7.1.26: erfc(z) = t * polynomial(t) * exp(-z^2), t = 1 / (1 + p z),
# |error| <= 1.5e-7 for z >= 0.
_P = 0.3275911
_POLYNOMIAL = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
_ROWS_IN_CACHE = 32
_SAFE_EXPONENT = 60.0  # e^60 summed over a text, and e^-60, are far inside float32


class NumpyEncoder:
    """Word-piece ids in, one state a word piece out."""

    def __init__(self, transformer: Transformer) -> None:
        self._transformer = transformer

    def __call__(self, ids: npt.NDArray[np.int64]) -> Array32:
        """Return the states of one text after the last layer, shape (len(ids), d)."""
        model = self._transformer
        states = model.words[ids] + model.positions[: len(ids)]
        _normalise(states, model.norm, model.epsilon)
        for block in model.blocks:
            states = _layer(states, block, model)
        return states


def _layer(states: Array32, block: Block, model: Transformer) -> Array32:
    """Return the states after one layer."""
    mixed = _apply(block.mix, _attend(_apply(block.qkv, states), model.heads))
    mixed += states
    _normalise(mixed, block.mix_norm, model.epsilon)
    wide = _apply(block.up, mixed)
    gelu_in_place(wide)
    out = _apply(block.down, wide)
    out += mixed
    _normalise(out, block.down_norm, model.epsilon)
    return out


def _apply(linear: Affine, states: Array32) -> Array32:
    """Return states @ weight + bias."""
    out: Array32 = states @ linear.weight
    out += linear.bias
    return out


def _attend(qkv: Array32, heads: int) -> Array32:
    """Return softmax(query key' / sqrt(width)) value, a head at a time."""
    length, width = len(qkv), qkv.shape[1] // (3 * heads)
    query, key, value = (part.reshape(length, heads, width) for part in np.split(qkv, 3, axis=1))
    query = query * np.float32(width**-0.5)
    shift = _largest_score(query, key) > _SAFE_EXPONENT
    weights = np.empty((length, length), np.float32)
    mixed = np.empty((length, heads, width), np.float32)
    for head in range(heads):
        np.matmul(query[:, head], key[:, head].T, out=weights)
        if shift[head]:
            weights -= weights.max(axis=1, keepdims=True)
        np.exp(weights, out=weights)
        np.matmul(weights, value[:, head], out=mixed[:, head])
        mixed[:, head] /= weights.sum(axis=1, keepdims=True)
    return mixed.reshape(length, heads * width)


def _largest_score(query: Array32, key: Array32) -> Array32:
    """Return a bound on |query . key| a head (Cauchy-Schwarz): small, and exp needs no shift."""
    return _longest(query) * _longest(key)


def _longest(vectors: Array32) -> Array32:
    """Return the largest Euclidean norm of each head's vectors."""
    squares: Array32 = np.einsum("thw,thw->th", vectors, vectors)
    longest: Array32 = np.sqrt(squares.max(axis=0))
    return longest


def _normalise(states: Array32, norm: Affine, epsilon: float) -> None:
    """Bring each row to mean 0 and variance 1, then scale and shift it, in place."""
    states -= states.mean(axis=1, keepdims=True)
    variance = np.einsum("td,td->t", states, states) / np.float32(states.shape[1])
    states /= np.sqrt(variance + np.float32(epsilon))[:, None]
    states *= norm.weight
    states += norm.bias


def gelu_in_place(values: Array32) -> None:
    """Replace x by x * Phi(x), Phi the normal distribution function; off by less than 3e-7.

    Computed as max(x, 0) - |x| erfc(|x| / sqrt 2) / 2, some rows at a time.
    """
    scratch = np.empty((3, min(len(values), _ROWS_IN_CACHE), values.shape[1]), np.float32)
    for start in range(0, len(values), _ROWS_IN_CACHE):
        rows = values[start : start + _ROWS_IN_CACHE]
        tail = _tail(rows, scratch[:, : len(rows)])
        np.maximum(rows, 0, out=rows)
        rows -= tail


def _tail(rows: Array32, scratch: Array32) -> Array32:
    """Return |x| erfc(|x| / sqrt 2) / 2, worked out in three scratch arrays."""
    size, t = scratch[0], scratch[1]
    tail: Array32 = scratch[2]
    np.abs(rows, out=size)
    np.multiply(size, np.float32(_P / np.sqrt(2)), out=t)
    t += 1
    np.reciprocal(t, out=t)
    np.multiply(t, np.float32(_POLYNOMIAL[0] / 2), out=tail)
    for coefficient in _POLYNOMIAL[1:]:
        tail += np.float32(coefficient / 2)
        tail *= t
    tail *= size
    np.square(size, out=size)
    size *= np.float32(-0.5)
    np.exp(size, out=size)
    tail *= size
    return tail
