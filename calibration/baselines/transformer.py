"""A BERT encoder (Devlin et al. 2019): read from its files, and run in NumPy."""

import hashlib
import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from data.errors import BadFile

Array32 = npt.NDArray[np.float32]

_STORED_AS: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
}
# Abramowitz & Stegun (1964), 7.1.26: erfc(z) = t * polynomial(t) * exp(-z^2), t = 1 / (1 + p z),
# |error| <= 1.5e-7 for z >= 0.
_P = 0.3275911
_POLYNOMIAL = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
_ROWS_IN_CACHE = 32
_SAFE_EXPONENT = 60.0  # e^60 summed over a text, and e^-60, are far inside float32


@dataclass(frozen=True, slots=True)
class Weights:
    """The named tensors of one file.

    Attributes
    ----------
    path, sha256
        Where they were read, and the hash of exactly the bytes that were read.
    tensors
        Name -> header entry (`dtype`, `shape`, `data_offsets`).
    data
        The bytes behind the header.
    """

    path: Path
    sha256: str
    tensors: dict[str, dict[str, Any]]
    data: memoryview

    def tensor(self, name: str) -> Array32:
        """Return a tensor as float32; BadFile if it is absent or of another kind."""
        if name not in self.tensors:
            raise BadFile(
                f"{self.path} holds no tensor {name}: not the weights its config.json says"
            )
        entry = self.tensors[name]
        if entry["dtype"] not in _STORED_AS:
            raise BadFile(
                f"{self.path}: {name} is stored as {entry['dtype']}, not F32, F16 or BF16"
            )
        return _float32(self._stored(name, _STORED_AS[entry["dtype"]]), entry["dtype"])

    def _stored(self, name: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return the tensor as it is stored, having checked its place against its shape."""
        shape, (start, end) = self.tensors[name]["shape"], self.tensors[name]["data_offsets"]
        if not 0 <= start <= end <= len(self.data) or end - start != prod(shape) * dtype.itemsize:
            raise BadFile(
                f"{self.path} is cut short or damaged at tensor {name}: download it again"
            )
        return np.frombuffer(self.data[start:end], dtype=dtype).reshape(shape)


def read_weights(path: Path) -> Weights:
    """Read a `.safetensors` file, with the hash of exactly the bytes that are used.

    Layout: eight bytes of header length (little-endian), a JSON header of tensors, their bytes.
    """
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    try:
        if not 0 < length <= len(raw) - 8:
            raise ValueError(f"header of {length} bytes in a file of {len(raw)}")
        header: dict[str, dict[str, Any]] = json.loads(raw[8 : 8 + length])
    except ValueError as error:
        raise BadFile(f"{path} is not a safetensors file ({error}): download it again") from error
    header.pop("__metadata__", None)
    tensors = {_plain_name(name): entry for name, entry in header.items()}
    return Weights(path, hashlib.sha256(raw).hexdigest(), tensors, memoryview(raw)[8 + length :])


def _float32(stored: npt.NDArray[Any], dtype: str) -> Array32:
    """Convert F16 and BF16 to float32; BF16 is the upper half of a float32."""
    if dtype == "BF16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32, copy=False)


def _plain_name(name: str) -> str:
    """Return a tensor's name without the task model around it and in today's spelling."""
    plain = name.removeprefix("bert.")
    return plain.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )


@dataclass(frozen=True, slots=True)
class Affine:
    """Weight and bias: of a linear map, weight of shape (in, out), or of a layer norm, (d,)."""

    weight: Array32
    bias: Array32


@dataclass(frozen=True, slots=True)
class Block:
    """One layer: self-attention and feed-forward, each added to its input and normalised.

    `qkv` maps a state to its query, key and value, side by side.
    """

    qkv: Affine
    mix: Affine
    mix_norm: Affine
    up: Affine
    down: Affine
    down_norm: Affine


@dataclass(frozen=True, slots=True)
class Transformer:
    """An encoder up to the layer whose states are compared.

    Attributes
    ----------
    words, positions
        Embedding tables, shape (vocabulary, d) and (longest text, d); the token type's embedding
        is already added to `positions`.
    norm, epsilon
        Layer norm of the embeddings, and the epsilon of all layer norms.
    blocks, heads
        Layers, and attention heads in each.
    """

    words: Array32
    positions: Array32
    norm: Affine
    epsilon: float
    blocks: tuple[Block, ...]
    heads: int


@dataclass(frozen=True, slots=True)
class Config:
    """The shape of the encoder by its config.json."""

    layers: int
    heads: int
    epsilon: float


def read_config(folder: Path) -> Config:
    """Read config.json; BadFile unless it is of a BERT that can be computed here."""
    path = folder / "config.json"
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        return _config(settings, path)
    except (OSError, ValueError) as error:
        raise BadFile(f"{path} cannot be read as a model's configuration: {error}") from error
    except KeyError as error:
        raise BadFile(f"{path} does not say {error}") from error


def _config(settings: dict[str, Any], path: Path) -> Config:
    """Return the configuration; the activation must be the exact GELU."""
    if (kind := settings.get("model_type")) != "bert":
        raise BadFile(f"{path}: model_type is {kind!r}; only bert can be computed")
    if (
        settings.get("hidden_act") != "gelu"
        or settings.get("position_embedding_type", "absolute") != "absolute"
    ):
        raise BadFile(f"{path}: only the exact gelu and absolute positions can be computed")
    if settings.get("is_decoder"):
        raise BadFile(f"{path}: only encoders can be computed; this is a decoder")
    epsilon = settings.get("layer_norm_eps", 1e-12)
    return Config(settings["num_hidden_layers"], settings["num_attention_heads"], epsilon)


def build(weights: Weights, config: Config, layer: int) -> Transformer:
    """Return the encoder up to and including the layer (1 is the first)."""
    positions = weights.tensor("embeddings.position_embeddings.weight")
    positions = positions + weights.tensor("embeddings.token_type_embeddings.weight")[0]
    return Transformer(
        words=weights.tensor("embeddings.word_embeddings.weight"),
        positions=positions,
        norm=_norm(weights, "embeddings.LayerNorm"),
        epsilon=config.epsilon,
        blocks=tuple(_block(weights, f"encoder.layer.{index}") for index in range(layer)),
        heads=config.heads,
    )


def _block(weights: Weights, name: str) -> Block:
    """Return one layer."""
    attention = (f"{name}.attention.self.{part}" for part in ("query", "key", "value"))
    return Block(
        qkv=_linear(weights, *attention),
        mix=_linear(weights, f"{name}.attention.output.dense"),
        mix_norm=_norm(weights, f"{name}.attention.output.LayerNorm"),
        up=_linear(weights, f"{name}.intermediate.dense"),
        down=_linear(weights, f"{name}.output.dense"),
        down_norm=_norm(weights, f"{name}.output.LayerNorm"),
    )


def _linear(weights: Weights, *names: str) -> Affine:
    """Return linear maps side by side; files store weights as (out, in)."""
    stacked = np.concatenate([weights.tensor(f"{name}.weight") for name in names])
    bias = np.concatenate([weights.tensor(f"{name}.bias") for name in names])
    return Affine(np.ascontiguousarray(stacked.T), bias)


def _norm(weights: Weights, name: str) -> Affine:
    """Return a layer norm."""
    return Affine(weights.tensor(f"{name}.weight"), weights.tensor(f"{name}.bias"))


class NumpyEncoder:
    """An encoder in NumPy: from word-piece ids to a state for each word piece.

    It runs one text at a time, without padding, in single precision as torch does. What is not a
    matrix product works on blocks that fit in the processor's cache, so that the products take
    some three quarters of the time.
    """

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
    """Return softmax(query key' / sqrt(width)) value, one head after the other."""
    length, width = len(qkv), qkv.shape[1] // (3 * heads)
    query, key, value = (part.reshape(length, heads, width) for part in np.split(qkv, 3, axis=1))
    query = query * np.float32(width**-0.5)
    # A bound on |query . key| of each head (Cauchy-Schwarz) tells whether exp could overflow.
    shift = _longest(query) * _longest(key) > _SAFE_EXPONENT
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
    """Replace x by x * Phi(x), Phi the normal distribution function; the error is below 3e-7.

    Computed as max(x, 0) - |x| erfc(|x| / sqrt 2) / 2, in blocks of rows.
    """
    scratch = np.empty((3, min(len(values), _ROWS_IN_CACHE), values.shape[1]), np.float32)
    for start in range(0, len(values), _ROWS_IN_CACHE):
        rows = values[start : start + _ROWS_IN_CACHE]
        tail = _tail(rows, scratch[:, : len(rows)])
        np.maximum(rows, 0, out=rows)
        rows -= tail


def _tail(rows: Array32, scratch: Array32) -> Array32:
    """Return |x| erfc(|x| / sqrt 2) / 2, computed in three scratch arrays."""
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
