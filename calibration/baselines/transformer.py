"""The arrays of a BERT or DistilBERT encoder, under one set of names.

Devlin et al. (2019) and Sanh et al. (2019). DistilBERT differs in its tensors' names and in
having no token types; the arithmetic is the same.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.baselines.weights import Array32, Weights
from data.errors import BadFile


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
    """An encoder cut after the wanted layer.

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


_BERT = {
    "layer": "encoder.layer",
    "qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "mix": "attention.output.dense",
    "mix_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "down_norm": "output.LayerNorm",
}
_DISTILBERT = {
    "layer": "transformer.layer",
    "qkv": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    "mix": "attention.out_lin",
    "mix_norm": "sa_layer_norm",
    "up": "ffn.lin1",
    "down": "ffn.lin2",
    "down_norm": "output_layer_norm",
}


@dataclass(frozen=True, slots=True)
class Config:
    """What config.json says about the shape of the encoder."""

    kind: str
    layers: int
    heads: int
    epsilon: float


def read_config(folder: Path) -> Config:
    """Read config.json; BadFile unless it describes a BERT or DistilBERT that we can compute."""
    path = folder / "config.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return _config(found, path)
    except (OSError, ValueError) as error:
        raise BadFile(f"{path} cannot be read as a model's configuration: {error}") from error
    except KeyError as error:
        raise BadFile(f"{path} does not say {error}") from error


def _config(found: dict[str, Any], path: Path) -> Config:
    """Return the configuration under one set of names; the activation must be the exact GELU."""
    kind, activation = found.get("model_type"), found.get("hidden_act", found.get("activation"))
    if kind not in ("bert", "distilbert"):
        raise BadFile(f"{path}: model_type is {kind!r}; only bert and distilbert can be computed")
    if activation != "gelu" or found.get("position_embedding_type", "absolute") != "absolute":
        raise BadFile(f"{path}: only the exact gelu and absolute positions can be computed")
    layers, heads = (
        ("num_hidden_layers", "num_attention_heads") if kind == "bert" else ("n_layers", "n_heads")
    )
    if found.get("is_decoder"):
        raise BadFile(f"{path}: only encoders can be computed; this is a decoder")
    epsilon = found.get("layer_norm_eps", 1e-12)
    return Config(kind, found[layers], found[heads], epsilon)


def build(weights: Weights, config: Config, layer: int) -> Transformer:
    """Return the encoder up to and including the layer (1 is the first)."""
    positions = weights.tensor("embeddings.position_embeddings.weight")
    if config.kind == "bert":
        positions = positions + weights.tensor("embeddings.token_type_embeddings.weight")[0]
    return Transformer(
        words=weights.tensor("embeddings.word_embeddings.weight"),
        positions=positions,
        norm=_norm(weights, "embeddings.LayerNorm"),
        epsilon=config.epsilon,
        blocks=tuple(_block(weights, config.kind, index) for index in range(layer)),
        heads=config.heads,
    )


def _block(weights: Weights, kind: str, index: int) -> Block:
    """Return one layer by the names its architecture gives it."""
    names = _BERT if kind == "bert" else _DISTILBERT
    at = {part: f"{names['layer']}.{index}.{names[part]}" for part in names}
    return Block(
        qkv=_linear(weights, *(f"{names['layer']}.{index}.{name}" for name in names["qkv"])),
        mix=_linear(weights, at["mix"]),
        mix_norm=_norm(weights, at["mix_norm"]),
        up=_linear(weights, at["up"]),
        down=_linear(weights, at["down"]),
        down_norm=_norm(weights, at["down_norm"]),
    )


def _linear(weights: Weights, *names: str) -> Affine:
    """Return linear maps side by side; files store weights as (out, in)."""
    stacked = np.concatenate([weights.tensor(f"{name}.weight") for name in names])
    bias = np.concatenate([weights.tensor(f"{name}.bias") for name in names])
    return Affine(np.ascontiguousarray(stacked.T), bias)


def _norm(weights: Weights, name: str) -> Affine:
    """Return a layer norm."""
    return Affine(weights.tensor(f"{name}.weight"), weights.tensor(f"{name}.bias"))
