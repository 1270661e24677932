"""BERT and DistilBERT folders small enough to write in a test."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

VOCABULARY = str.split(
    "[PAD] [UNK] [CLS] [SEP] [MASK] no chest pain today , fever ##s was given as ##pir ##in twice ."
)

WIDTH, INNER, LONGEST = 8, 16, 16


def write_backbone(folder: Path, kind: str, *, loudness: float = 1.0) -> Path:
    """Write a two-layer BERT or DistilBERT whose weights are a frozen random stream."""
    folder.mkdir(parents=True)
    stream = np.random.RandomState(7)
    tensors = {
        name: (stream.normal(0, 0.5, shape) * (loudness if "q" in name else 1)).astype("<f4")
        for name, shape in _shapes(kind).items()
    }
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(_config(kind)))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    BertWordPieceTokenizer(str(folder / "vocab.txt")).save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "BertTokenizer", "model_max_length": LONGEST}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def write_safetensors(path: Path, tensors: dict[str, Any], dtype: str = "F32") -> None:
    header, start = {}, 0
    for name, values in tensors.items():
        place = [start, start + values.nbytes]
        header[name] = {"dtype": dtype, "shape": values.shape, "data_offsets": place}
        start += values.nbytes
    text = json.dumps(header).encode()
    data = b"".join(values.tobytes() for values in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def _config(kind: str) -> dict[str, Any]:
    if kind == "bert":
        names = "hidden_size intermediate_size num_hidden_layers num_attention_heads hidden_act"
    else:
        names = "dim hidden_dim n_layers n_heads activation"
    shape = dict(zip(names.split(), (WIDTH, INNER, 2, 2, "gelu"), strict=True))
    size = {"vocab_size": len(VOCABULARY), "max_position_embeddings": LONGEST}
    return {"model_type": kind, "type_vocab_size": 2, "layer_norm_eps": 1e-12, **shape, **size}


def _shapes(kind: str) -> dict[str, tuple[int, ...]]:
    prefix = "" if kind == "bert" else "distilbert."
    rows = {"word": len(VOCABULARY), "position": LONGEST}
    rows |= {"token_type": 2} if kind == "bert" else {}
    shapes: dict[str, tuple[int, ...]] = {
        f"{prefix}embeddings.{name}_embeddings.weight": (count, WIDTH)
        for name, count in rows.items()
    }
    shapes |= _vectors(f"{prefix}embeddings.LayerNorm", WIDTH)
    for layer in range(2):
        for part, size in _parts(kind).items():
            name = f"{prefix}{'encoder' if kind == 'bert' else 'transformer'}.layer.{layer}.{part}"
            shapes |= _vectors(name, size[0])
            shapes |= {f"{name}.weight": size}
    return shapes


def _vectors(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _parts(kind: str) -> dict[str, tuple[int, ...]]:
    square, norm, up, down = (WIDTH, WIDTH), (WIDTH,), (INNER, WIDTH), (WIDTH, INNER)
    names = {
        "bert": "attention.self.query attention.self.key attention.self.value"
        " attention.output.dense attention.output.LayerNorm intermediate.dense output.dense"
        " output.LayerNorm",
        "distilbert": "attention.q_lin attention.k_lin attention.v_lin attention.out_lin"
        " sa_layer_norm ffn.lin1 ffn.lin2 output_layer_norm",
    }
    sizes = (square, square, square, square, norm, up, down, norm)
    return dict(zip(names[kind].split(), sizes, strict=True))


def tiny(tmp_path: Path, name: str) -> Path:
    kind, _, loud = name.partition("-")
    return write_backbone(tmp_path / name, kind, loudness=30.0 if loud else 1.0)
