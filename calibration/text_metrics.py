"""How close a text comes to its reference: ROUGE-L by its wording, BERTScore by its meaning.

ROUGE-L has the words and stems of Google's rouge-score; rapidfuzz finds their longest common
subsequence. BERTScore has the values of the bert-score package on the same backbone, without torch:
texts are cut into word pieces (Schuster & Nakajima 2012) by the `tokenizers` library.
"""

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import LCSseq
from threadpoolctl import threadpool_limits
from tokenizers import Tokenizer
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from calibration.encoder import Array32, Encoder, load_encoder
from data.errors import BadFile, BadInput

Array = npt.NDArray[np.float64]
LongTexts = Literal["truncate", "windows"]
_TEXTS_AT_ONCE = 64


def rouge_l(pairs: Sequence[tuple[str, str]]) -> Array:
    """Return the ROUGE-L F-measure of each (prediction, reference).

    Parameters
    ----------
    pairs
        Texts as they are. HELM first removes outer white space and braces; both are separators
        here and in rouge-score, so the value is the same as HELM's.

    Returns
    -------
    shape (n,)
        2PR / (P + R), with P and R the length of the longest common subsequence of stems over
        the number of words in the prediction and in the reference; 0 to 1. Words are runs of
        a-z and 0-9 after lower-casing; those of more than three letters are stemmed. Exactly 0
        when a text has no word or no stem is shared.

    References
    ----------
    Lin (2004), ROUGE: a package for automatic evaluation of summaries. Same values as
    ``RougeScorer(["rougeL"], use_stemmer=True)`` of rouge-score 0.1.2; its "rougeLsum", which
    splits at newlines, is another measure.

    Examples
    --------
    >>> rouge_l([("Chest pains resolved.", "The chest pain has resolved")]).round(3).tolist()
    [0.75]
    """
    from nltk.stem.porter import PorterStemmer  # seconds to import, so only where it is used
    from rouge_score.tokenize import tokenize

    stemmer = SimpleNamespace(stem=lru_cache(maxsize=1 << 18)(PorterStemmer().stem))
    stems = lru_cache(maxsize=4096)(lambda text: tokenize(text, stemmer))
    scores = np.zeros(len(pairs))
    for row, texts in enumerate(pairs):
        predicted, expected = map(stems, texts)
        if common := LCSseq.similarity(predicted, expected):
            precision, recall = common / len(predicted), common / len(expected)
            scores[row] = 2 * precision * recall / (precision + recall)
    return scores


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


class Window(NamedTuple):
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
    precision, recall, f1 : shape (n,); -1 to 1, in practice 0.3 to 1
    truncated : indices of the pairs of which a text was longer than the backbone reads, so that
        only its start was compared
    backbone, layer, sha256 : model, layer, and hash of its weights
    """

    precision: Array
    recall: Array
    f1: Array
    truncated: tuple[int, ...]
    backbone: str
    layer: int
    sha256: str


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
        None for the packaged all-MiniLM-L6-v2, or the folder of a BERT. HELM and the MedHELM
        paper use "distilbert-base-uncased", which is not computed here. Scores of different
        backbones are not comparable.
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
        If the backbone is absent, altered or cannot be computed (see `load_encoder`).

    References
    ----------
    Zhang, Kishore, Wu, Weinberger & Artzi (2020), BERTScore: evaluating text generation with
    BERT, ICLR.
    """
    if long_texts not in (allowed := get_args(LongTexts)):
        raise BadInput(f"{long_texts!r} is not one of {', '.join(allowed)}")
    encoder = load_encoder(model, layer)
    pieces = read_wordpieces(
        encoder.folder, longest=len(encoder.positions), vocabulary_size=len(encoder.words)
    )
    scores, truncated = np.zeros((len(pairs), 3)), np.zeros(len(pairs), dtype=bool)
    encoded: dict[str, _Encoded] = {}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    # One thread a core, each with its own text; the matrix library then has to stay on one.
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(cores) as pool:
        for rows in _blocks(pairs):
            texts = {text for row in rows for text in pairs[row]}
            encoded = {text: encoded[text] for text in texts & encoded.keys()}
            new = sorted(texts - encoded.keys(), key=lambda text: (-len(text), text))
            of_new = pool.map(lambda text: _encoded(text, pieces, encoder, long_texts), new)
            encoded |= dict(zip(new, of_new, strict=True))
            both = [(encoded[pairs[row][0]], encoded[pairs[row][1]]) for row in rows]
            scores[rows] = [*pool.map(_match, *zip(*both, strict=True))]
            truncated[rows] = [one.truncated or other.truncated for one, other in both]
    return BertScores(
        precision=scores[:, 0].copy(),
        recall=scores[:, 1].copy(),
        f1=scores[:, 2].copy(),
        truncated=tuple(np.flatnonzero(truncated).tolist()),
        backbone=encoder.name,
        layer=encoder.layer,
        sha256=encoder.sha256,
    )


class _Encoded(NamedTuple):
    """A text's states at unit length, the weight of each, and whether its end was cut off."""

    states: Array32
    weights: Array
    truncated: bool


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


def _encoded(text: str, pieces: WordPieces, encoder: Encoder, long_texts: LongTexts) -> _Encoded:
    ids = np.array(pieces.ids(text), dtype=np.int64)
    is_cut = len(ids) > pieces.longest and long_texts == "truncate"
    if is_cut:
        ids = np.append(ids[: pieces.longest - 1], pieces.end)
    parts: list[Array32] = []
    inner = ids[1:-1]
    for window in windows(len(inner), pieces.longest):  # [CLS] of the first, [SEP] of the last
        piece = np.concatenate([ids[:1], inner[window.start : window.end], ids[-1:]])
        first = window.used_from - window.start + (window.used_from > 0)
        last = window.used_to - window.start + 1 + (window.used_to == len(inner))
        parts.append(encoder.states(piece)[first:last])
    states = np.concatenate(parts)
    states /= np.linalg.norm(states, axis=1, keepdims=True)
    weights = (~np.isin(ids, (pieces.start, pieces.end))).astype(np.float64)
    return _Encoded(states, weights, is_cut)


def _match(prediction: _Encoded, reference: _Encoded) -> tuple[float, float, float]:
    """Return precision, recall and F1 of one pair, all 0 if a text has nothing to match."""
    if not prediction.weights.any() or not reference.weights.any():
        return 0.0, 0.0, 0.0
    cosines = prediction.states @ reference.states.T
    precision = float(np.average(cosines.max(axis=1), weights=prediction.weights))
    recall = float(np.average(cosines.max(axis=0), weights=reference.weights))
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0
