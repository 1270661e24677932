"""Read a `.safetensors` file: a JSON table of tensors, then their bytes.

Layout: eight bytes of header length (little-endian), the header, the data. Known by its SHA-256.
"""

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
    """Read the file whole, so that the hash is that of the very bytes that are used."""
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
    """Widen F16 and BF16; BF16 is the upper half of a float32."""
    if dtype == "BF16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32, copy=False)


def _plain_name(name: str) -> str:
    """Return a tensor's name without the task model around it and in today's spelling."""
    for prefix in ("bert.", "distilbert."):
        name = name.removeprefix(prefix)
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )
