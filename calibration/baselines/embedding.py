"""A text as one vector: the mean of its word pieces' states in the packaged encoder.

Reimers, Gurevych (2019), Sentence-BERT, EMNLP, 3982: mean pooling of the last layer, to unit length.
What follows the first 512 word pieces is not read.
"""

from collections.abc import Sequence

import numpy as np

from calibration.baselines.backbone import load_backbone
from calibration.baselines.bertscore import read_wordpieces
from calibration.baselines.transformer import NumpyEncoder
from calibration.scores import Array


def embeddings(texts: Sequence[str]) -> Array:
    """Return a vector of unit length for each text, shape (n, 384).

    Raises
    ------
    BadInput
        If the packaged encoder is not installed.
    """
    backbone = load_backbone(layer=6)
    model = backbone.transformer
    longest, size = model.positions.shape[0], model.words.shape[0]
    pieces = read_wordpieces(backbone.folder, longest=longest, vocabulary_size=size)
    encode = NumpyEncoder(model)
    vectors = np.zeros((len(texts), model.words.shape[1]))
    for row, text in enumerate(texts):
        ids = np.array(pieces.ids(text), dtype=np.int64)
        if len(ids) > longest:
            ids = np.append(ids[: longest - 1], pieces.end)
        vectors[row] = encode(ids).mean(axis=0)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1.0)
