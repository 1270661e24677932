"""Cut a text into the word pieces of a BERT vocabulary, as bert-score has it cut.

Schuster & Nakajima (2012) word pieces, by the `tokenizers` library from the model's own files.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from data.errors import BadFile


@dataclass(frozen=True, slots=True)
class WordPieces:
    """A vocabulary, with the longest text in word pieces that its model takes.

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
        """Return all ids of the stripped text between [CLS] and [SEP]; an empty text has these two."""
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return list(self.tokenizer.encode(whole.strip()).ids)


def read_wordpieces(folder: Path, *, longest: int, known: int) -> WordPieces:
    """Read tokenizer.json, or vocab.txt where there is none.

    `longest` is the model's number of positions; tokenizer_config.json may set a lower limit.
    `known` is how many word pieces the model has embeddings for.
    """
    settings = _settings(folder / "tokenizer_config.json")
    tokenizer = _tokenizer(folder, settings)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ends = list(tokenizer.encode("").ids)
    if len(ends) != 2:
        raise BadFile(f"the tokenizer in {folder} does not put [CLS] and [SEP] around a text")
    if tokenizer.get_vocab_size() > known:
        raise BadFile(f"the tokenizer in {folder} has more word pieces than the model: {known}")
    start, end = ends
    return WordPieces(
        tokenizer, start, end, int(min(longest, settings.get("model_max_length", longest)))
    )


def _settings(path: Path) -> dict[str, Any]:
    """Return tokenizer_config.json, empty where there is none."""
    if not path.is_file():
        return {}
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadFile(f"{path} is not JSON: {error}") from error
    return settings


def _tokenizer(folder: Path, settings: dict[str, Any]) -> Tokenizer:
    """Return the tokenizer of a model's folder."""
    if (folder / "tokenizer.json").is_file():
        return _from_json(folder / "tokenizer.json")
    if not (folder / "vocab.txt").is_file():
        raise BadFile(f"{folder} holds neither tokenizer.json nor vocab.txt")
    made = BertWordPieceTokenizer(
        str(folder / "vocab.txt"),
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    return Tokenizer.from_str(made.to_str())


def _from_json(path: Path) -> Tokenizer:
    """Read tokenizer.json."""
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing narrower
        raise BadFile(f"{path} is not a tokenizer's file: {error}") from error
    if json.loads(text)["model"].get("type") != "WordPiece":
        raise BadFile(f"{path} is no WordPiece tokenizer, which BERT and DistilBERT use")
    return tokenizer


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a text that is encoded at once, and the part of it that is kept.

    All four are positions among the text's inner word pieces; ends are exclusive.
    """

    start: int
    end: int
    kept_from: int
    kept_to: int


def windows(length: int, longest: int) -> list[Window]:
    """Return windows half of `longest` apart that keep each word piece once, where it has most context.

    `longest` counts [CLS] and [SEP] around each window; neighbours part in the middle of what
    they share, and the last window ends with the text.
    """
    size = longest - 2
    last = max(length - size, 0)
    starts = [*range(0, last, longest // 2), last]
    ends = [min(start + size, length) for start in starts]
    cuts = [(start + end + 1) // 2 for start, end in zip(starts[1:], ends, strict=False)]
    return [Window(*edges) for edges in zip(starts, ends, [0, *cuts], [*cuts, length], strict=True)]
