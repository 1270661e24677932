"""BERTScore: how well the words of a text and of its reference match in meaning.

The values are those of the bert-score package on the same backbone, without torch. Texts are cut
into word pieces (Schuster & Nakajima 2012) by the `tokenizers` library from the model's files.
"""

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits
from tokenizers import Tokenizer
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from calibration.baselines.backbone import load_backbone
from calibration.baselines.transformer import Array32, NumpyEncoder
from data.errors import BadFile, BadInput

Array = npt.NDArray[np.float64]
LongTexts = Literal["truncate", "windows"]
_TEXTS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class WordPieces:
    """A vocabulary of word pieces, and the longest text that its model takes.

    Attributes
    ----------
    start, end
        Ids of [CLS] and [SEP], which stand around every text and carry no weight.
    longest
        Word pieces a text may have, [CLS] and [SEP] among them.
    """

    tokenizer: Tokenizer
    start: int
    end: int
    longest: int

    def ids(self, text: str) -> list[int]:
        """Return the ids of the stripped text, with [CLS] and [SEP] around it."""
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return list(self.tokenizer.encode(whole.strip()).ids)


def read_wordpieces(folder: Path, *, longest: int, vocabulary_size: int) -> WordPieces:
    """Read tokenizer.json, or vocab.txt where there is none.

    `longest` is the model's number of positions; tokenizer_config.json may set a lower limit.
    `vocabulary_size` is how many word pieces the model has embeddings for.
    """
    path = folder / "tokenizer_config.json"
    try:
        settings = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise BadFile(f"{path} is not JSON: {error}") from error
    tokenizer = _tokenizer(folder, settings)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ends = list(tokenizer.encode("").ids)
    if len(ends) != 2:
        raise BadFile(f"the tokenizer in {folder} does not put [CLS] and [SEP] around a text")
    if tokenizer.get_vocab_size() > vocabulary_size:
        raise BadFile(
            f"the tokenizer in {folder} has more word pieces than the model: {vocabulary_size}"
        )
    start, end = ends
    return WordPieces(
        tokenizer, start, end, int(min(longest, settings.get("model_max_length", longest)))
    )


def _tokenizer(folder: Path, settings: dict[str, Any]) -> Tokenizer:
    if (path := folder / "tokenizer.json").is_file():
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # the library raises nothing narrower
            raise BadFile(f"{path} is not a tokenizer's file: {error}") from error
        if json.loads(text)["model"].get("type") != "WordPiece":
            raise BadFile(f"{path} is no WordPiece tokenizer, which BERT uses")
        return tokenizer
    if not (folder / "vocab.txt").is_file():
        raise BadFile(f"{folder} holds neither tokenizer.json nor vocab.txt")
    words = BertWordPieceTokenizer(
        str(folder / "vocab.txt"),
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    return Tokenizer.from_str(words.to_str())


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a text that is encoded at once, and the part of its states that is used.

    All four are positions among the text's inner word pieces; ends are exclusive.
    """

    start: int
    end: int
    used_from: int
    used_to: int


def windows(length: int, longest: int) -> list[Window]:
    """Return windows, half of `longest` apart, that use each word piece once with most context.

    `longest` includes [CLS] and [SEP] around each window. Neighbouring windows meet in the middle
    of their overlap, and the last window ends with the text.
    """
    size = longest - 2
    last = max(length - size, 0)
    starts = [*range(0, last, longest // 2), last]
    ends = [min(start + size, length) for start in starts]
    cuts = [(start + end + 1) // 2 for start, end in zip(starts[1:], ends, strict=False)]
    return [Window(*edges) for edges in zip(starts, ends, [0, *cuts], [*cuts, length], strict=True)]


@dataclass(frozen=True, slots=True)
class BertScores:
    """Scores of pairs in the order given, and what they were computed with.

    Attributes
    ----------
    precision, recall, f1
        Shape (n,); -1 to 1, in practice 0.3 to 1.
    truncated
        Indices of the pairs of which a text was longer than the backbone reads, so that only
        its start was compared.
    backbone, layer, sha256
        Model, layer, and hash of its weights.
    """

    precision: Array
    recall: Array
    f1: Array
    truncated: tuple[int, ...]
    backbone: str
    layer: int
    sha256: str


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A text's states at unit length, the weight of each, and whether its end was cut off."""

    states: Array32
    weights: Array
    truncated: bool


def bert_score(
    pairs: Sequence[tuple[str, str]],
    model: str | Path | None = None,
    layer: int | None = None,
    *,
    long_texts: LongTexts = "truncate",
) -> BertScores:
    """Return BERTScore precision, recall and F1 of each (prediction, reference).

    Every word piece is matched with the most similar one of the other text (cosine of their
    states); precision is the mean over the prediction's word pieces, recall over the
    reference's, and F1 = 2PR / (P + R). [CLS] and [SEP] can be matched to but are not counted.
    No idf weights, no rescaling with a baseline: HELM's settings.

    Parameters
    ----------
    pairs
        Texts as they are; outer white space is ignored. HELM also drops outer braces, which
        count here.
    model
        None for the packaged all-MiniLM-L6-v2; the folder of a BERT; or a name in the local
        Hugging Face cache. HELM and the MedHELM paper use "distilbert-base-uncased", which is
        not computed here. Scores of different backbones are not comparable.
    layer
        None for bert-score's choice (bert-base-uncased: 9), and for models without one
        the last but one (MiniLM: 5 of 6).
    long_texts
        "truncate" reads the first 512 word pieces, as bert-score does, and reports which;
        "windows" reads all, in windows of 512 that overlap by half, each word piece from the
        window where it has most context. The two differ by up to 0.06 on long notes.

    Returns
    -------
    BertScores
        Within 1e-6 of bert-score 0.3.13. All three are exactly 0 where a text is empty or holds
        nothing but control characters.

    Raises
    ------
    BadInput, BadFile
        If the backbone is absent, altered or cannot be computed (see `load_backbone`).

    References
    ----------
    Zhang, Kishore, Wu, Weinberger & Artzi (2020), BERTScore: evaluating text generation with
    BERT, ICLR.
    """
    if long_texts not in (allowed := get_args(LongTexts)):
        raise BadInput(f"{long_texts!r} is not one of {', '.join(allowed)}")
    backbone = load_backbone(model, layer)
    transformer = backbone.transformer
    pieces = read_wordpieces(
        backbone.folder, longest=len(transformer.positions), vocabulary_size=len(transformer.words)
    )
    reader = _Reader(pieces, NumpyEncoder(transformer), long_texts)
    scores, truncated = np.zeros((len(pairs), 3)), np.zeros((len(pairs), 2), dtype=bool)
    for rows, values, is_truncated in _scored_blocks(pairs, reader):
        scores[rows], truncated[rows] = values, is_truncated
    return BertScores(
        precision=scores[:, 0].copy(),
        recall=scores[:, 1].copy(),
        f1=scores[:, 2].copy(),
        truncated=tuple(np.flatnonzero(truncated.any(axis=1)).tolist()),
        backbone=backbone.name,
        layer=backbone.layer,
        sha256=backbone.sha256,
    )


def _scored_blocks(
    pairs: Sequence[tuple[str, str]], reader: "_Reader"
) -> Iterator[tuple[list[int], list[tuple[float, float, float]], list[tuple[bool, bool]]]]:
    """Yield rows, their scores and their truncations, a block of texts at a time.

    One thread a core, each with its own text; the matrix library then has to stay on one.
    """
    encoded: dict[str, _Encoded] = {}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(cores) as pool:
        for rows in _blocks(pairs):
            encoded = _encoded({text for row in rows for text in pairs[row]}, encoded, reader, pool)
            encoded_pairs = [(encoded[pairs[row][0]], encoded[pairs[row][1]]) for row in rows]
            values = list(pool.map(_match, *zip(*encoded_pairs, strict=True)))
            yield rows, values, [(one.truncated, other.truncated) for one, other in encoded_pairs]


def _blocks(pairs: Sequence[tuple[str, str]]) -> Iterator[list[int]]:
    """Yield the rows in blocks of few distinct texts, those of one reference together.

    This bounds memory, and encodes a reference once however many responses it has.
    """
    groups: dict[str, list[int]] = {}
    for row, (_, reference) in enumerate(pairs):
        groups.setdefault(reference, []).append(row)
    block: list[int] = []
    texts: set[str] = set()
    for row in (row for group in groups.values() for row in group):
        if block and len(texts.union(pairs[row])) > _TEXTS_AT_ONCE:
            yield block
            block, texts = [], set()
        block.append(row)
        texts.update(pairs[row])
    if block:
        yield block


def _encoded(
    texts: set[str], previous: dict[str, _Encoded], reader: "_Reader", pool: Executor
) -> dict[str, _Encoded]:
    """Return the texts encoded, longest first; what the block before has encoded is taken over."""
    new_texts = sorted(texts - previous.keys(), key=lambda text: (-len(text), text))
    reused = {text: previous[text] for text in texts & previous.keys()}
    return reused | dict(zip(new_texts, pool.map(reader.read, new_texts), strict=True))


@dataclass(frozen=True, slots=True)
class _Reader:
    """From text to states."""

    pieces: WordPieces
    encode: NumpyEncoder
    long_texts: LongTexts

    def read(self, text: str) -> _Encoded:
        """Encode one text."""
        ids = np.array(self.pieces.ids(text), dtype=np.int64)
        is_too_long = len(ids) > self.pieces.longest
        if is_too_long and self.long_texts == "truncate":
            ids = np.append(ids[: self.pieces.longest - 1], self.pieces.end)
        states = self._in_windows(ids) if len(ids) > self.pieces.longest else self.encode(ids)
        states /= np.linalg.norm(states, axis=1, keepdims=True)
        weights = (~np.isin(ids, (self.pieces.start, self.pieces.end))).astype(np.float64)
        return _Encoded(states, weights, is_too_long and self.long_texts == "truncate")

    def _in_windows(self, ids: npt.NDArray[np.int64]) -> Array32:
        """Return the states of a long text, [CLS] from its first window and [SEP] from its last."""
        parts: list[Array32] = []
        inner = ids[1:-1]
        for window in windows(len(inner), self.pieces.longest):
            piece = np.concatenate([ids[:1], inner[window.start : window.end], ids[-1:]])
            states = self.encode(piece)
            first = window.used_from - window.start + (window.used_from > 0)
            last = window.used_to - window.start + 1 + (window.used_to == len(inner))
            parts.append(states[first:last])
        return np.concatenate(parts)


def _match(prediction: _Encoded, reference: _Encoded) -> tuple[float, float, float]:
    """Return precision, recall and F1 of one pair, all 0 if a text has nothing to match."""
    if not prediction.weights.any() or not reference.weights.any():
        return 0.0, 0.0, 0.0
    cosines = prediction.states @ reference.states.T
    precision = float(np.average(cosines.max(axis=1), weights=prediction.weights))
    recall = float(np.average(cosines.max(axis=0), weights=reference.weights))
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0
