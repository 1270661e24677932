"""Write a GGUF model that llama.cpp's server runs in a moment: `tiny_model.py VOCABULARY OUT`.

VOCABULARY is one of llama.cpp's own files without weights, such as `models/ggml-vocab-llama-spm.gguf`.
The weights are made up: whatever it reads, each word has its own fixed chance, and what ends a
sentence is likely. Under a JSON schema that makes well-formed verdicts that mean nothing, which is
enough to try a real server's protocol. Needs the packages gguf and numpy.
"""

import sys

import numpy as np
from gguf import GGUFReader, GGUFWriter

WIDTH, HEADS, INNER, CONTEXT = 64, 4, 128, 32768
LIKELY = {'"': 7.0, '",': 7.0, '"}': 7.0, "}": 5.0, "</s>": 6.0, ".": 4.0, '."': 6.0}


def main(vocabulary: str, out: str) -> None:
    """Write the model."""
    fields = GGUFReader(vocabulary).fields
    tokens, scores, types = (
        fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "scores", "token_type")
    )
    writer = GGUFWriter(out, "llama")
    writer.add_name("words by chance")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)  # or a grammar does not meet the words that it begins with
    for name, weights in _weights(tokens).items():
        writer.add_tensor(name, weights.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _weights(tokens: list[str]) -> dict[str, np.ndarray]:
    """Return all tensors: the state is nearly the same at every place, so a row is a chance."""
    random = np.random.default_rng(0)
    chance = random.normal(0, 1, len(tokens))
    chance += [LIKELY.get(token.lstrip("\u2581"), 0.0) for token in tokens]
    square, noise = (WIDTH, WIDTH), 0.05
    block = {f"attn_{name}": random.normal(0, noise, square) for name in ("q", "k", "v", "output")}
    block |= {f"ffn_{name}": random.normal(0, noise, (INNER, WIDTH)) for name in ("gate", "up")}
    block |= {"ffn_down": random.normal(0, noise, (WIDTH, INNER))}
    block |= {"attn_norm": np.ones(WIDTH), "ffn_norm": np.ones(WIDTH)}
    return {
        "token_embd.weight": 1 + random.normal(0, 0.3, (len(tokens), WIDTH)),
        "output_norm.weight": np.ones(WIDTH),
        "output.weight": chance[:, None] / WIDTH + random.normal(0, 0.02, (len(tokens), WIDTH)),
        **{f"blk.0.{name}.weight": weights for name, weights in block.items()},
    }


if __name__ == "__main__":
    main(*sys.argv[1:3])
