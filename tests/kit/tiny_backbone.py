"""Folders of a BERT small enough to write in a test."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

VOCABULARY = str.split(
    "[PAD] [UNK] [CLS] [SEP] [MASK] no chest pain today , fever ##s was given as ##pir ##in twice ."
)

WIDTH, INNER, LONGEST = 8, 16, 16

PARTS = {
    "attention.self.query": (WIDTH, WIDTH),
    "attention.self.key": (WIDTH, WIDTH),
    "attention.self.value": (WIDTH, WIDTH),
    "attention.output.dense": (WIDTH, WIDTH),
    "attention.output.LayerNorm": (WIDTH,),
    "intermediate.dense": (INNER, WIDTH),
    "output.dense": (WIDTH, INNER),
    "output.LayerNorm": (WIDTH,),
}

CONFIG = {
    "model_type": "bert",
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "hidden_act": "gelu",
    "vocab_size": len(VOCABULARY),
    "max_position_embeddings": LONGEST,
}


def write_backbone(folder: Path, *, loudness: float = 1.0) -> Path:
    """Write a two-layer BERT whose weights are a frozen random stream."""
    folder.mkdir(parents=True)
    stream = np.random.RandomState(7)
    tensors = {
        name: (stream.normal(0, 0.5, shape) * (loudness if "q" in name else 1)).astype("<f4")
        for name, shape in _shapes().items()
    }
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(CONFIG))
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


def _shapes() -> dict[str, tuple[int, ...]]:
    rows = {"word": len(VOCABULARY), "position": LONGEST, "token_type": 2}
    shapes: dict[str, tuple[int, ...]] = {
        f"embeddings.{name}_embeddings.weight": (count, WIDTH) for name, count in rows.items()
    }
    shapes |= _vectors("embeddings.LayerNorm", WIDTH)
    for layer in range(2):
        for part, size in PARTS.items():
            name = f"encoder.layer.{layer}.{part}"
            shapes |= _vectors(name, size[0])
            shapes |= {f"{name}.weight": size}
    return shapes


def _vectors(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def tiny(tmp_path: Path, name: str) -> Path:
    return write_backbone(tmp_path / name, loudness=30.0 if name.endswith("-loud") else 1.0)
