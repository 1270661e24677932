"""What HELM does to texts before it compares them."""


def as_helm_reads(prediction: str, reference: str) -> tuple[str, str]:
    """Return the texts as HELM's summarization metrics score them.

    The prediction is stripped; then one brace that opens and one that closes a text are dropped,
    each on its own. ROUGE-L is blind to this; BERTScore sees a brace as a word.
    """
    return _without_braces(prediction.strip()), _without_braces(reference)


def _without_braces(text: str) -> str:
    """Return the text without one leading "{" and one trailing "}"."""
    return text.removeprefix("{").removesuffix("}")
