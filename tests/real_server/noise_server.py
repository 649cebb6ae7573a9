"""Run by the Python of `.venv-server`: makes a tiny model of random weights and serves it, until its input ends.

    python noise_server.py FOLDER    makes a model there, and serves it to who has the key; prints `ready URL`
    python noise_server.py --model FILE --port NUMBER --jinja    as llama.cpp's own program, without a key

The weights are noise, and so are the words; the tokenizer, the protocol, the stream and the counts are real. Some rows
of the weights are laid by hand, so that answers begin with a call where tools are offered, and come to an end.
Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md for the names in the file.
"""

import argparse
import os
import sys
from pathlib import Path

import gguf
import numpy as np
import xllamacpp

KEY = "sk-of-the-noise-server"
CONTEXT = 2048
"""Tokens, and a token is about a byte."""
_WIDTH, _LAYERS, _HEADS, _INNER = 256, 2, 4, 256
_MERGES = [("t", "h"), ("th", "e"), ("i", "n"), ("a", "n"), ("e", "r")]
_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", '<tool_call>\n{"name": "', "</tool_call>"]
_END, _CALL, _CALLED = 258, 259, 260
_FOLLOWS = {_CALL: b">", _END: b".;!?0123", ord('"'): b"aeiost"}
"""What is likely to come -> behind which letters. The template ends with `>` where a call may come."""
_TEMPLATE = Path(__file__).with_name("chat_template.jinja")


def make_model(path: Path) -> None:
    """A llama of a few megabytes, the same each time."""
    tokens = [*_letters(), *_SPECIAL, *("".join(pair) for pair in _MERGES)]
    kinds = [gguf.TokenType.NORMAL] * len(tokens)
    kinds[256 : 256 + len(_SPECIAL)] = [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.USER_DEFINED] * 2
    file = gguf.GGUFWriter(path, "llama")
    file.add_name("noise")
    file.add_context_length(CONTEXT)
    file.add_embedding_length(_WIDTH)
    file.add_block_count(_LAYERS)
    file.add_feed_forward_length(_INNER)
    file.add_head_count(_HEADS)
    file.add_head_count_kv(_HEADS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(_WIDTH // _HEADS)
    file.add_vocab_size(len(tokens))
    file.add_file_type(gguf.LlamaFileType.ALL_F32)
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("gpt-2")
    file.add_token_list(tokens)
    file.add_token_types(kinds)
    file.add_token_merges([" ".join(pair) for pair in _MERGES])
    file.add_bos_token_id(256)
    file.add_eos_token_id(258)
    file.add_add_bos_token(False)
    file.add_chat_template(_TEMPLATE.read_text())
    _add_weights(file, len(tokens))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def _letters() -> list[str]:
    """A letter for each byte. Source: GPT-2's byte-level encoding, which all tokenizers of this kind share."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in shown else next(others)) for byte in range(256)]


def _add_weights(file: gguf.GGUFWriter, vocabulary: int) -> None:
    dice = np.random.default_rng(7)

    def noise(name: str, *shape: int, by: float = 0.02) -> None:
        file.add_tensor(name, dice.standard_normal(shape, dtype=np.float32) * by)

    words, out = (dice.standard_normal((vocabulary, _WIDTH), dtype=np.float32) * by for by in (0.5, 0.25))
    seen = words / np.sqrt((words**2).mean(axis=1, keepdims=True))
    out[:32], out[127:256] = 0, 0  # what is no letter of ASCII is rare
    for comes, letters in _FOLLOWS.items():
        out[comes] = 0.12 * seen[[*letters, _CALLED] if comes == _END else [*letters]].sum(axis=0)
    file.add_tensor("token_embd.weight", words)
    file.add_tensor("output.weight", out)
    file.add_tensor("output_norm.weight", np.ones(_WIDTH, dtype=np.float32))
    for layer in (f"blk.{number}." for number in range(_LAYERS)):
        for norm in ("attn_norm", "ffn_norm"):
            file.add_tensor(f"{layer}{norm}.weight", np.ones(_WIDTH, dtype=np.float32))
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            noise(f"{layer}{part}.weight", _WIDTH, _WIDTH)
        noise(f"{layer}ffn_gate.weight", _INNER, _WIDTH)
        noise(f"{layer}ffn_up.weight", _INNER, _WIDTH)
        noise(f"{layer}ffn_down.weight", _WIDTH, _INNER)


def serve(model: Path, port: int = 0, key: str = KEY) -> None:
    """llama.cpp's own server, as the package xllamacpp carries it."""
    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(model)
    wanted.n_ctx = CONTEXT
    wanted.n_parallel = 1
    wanted.hostnames, wanted.port = ["127.0.0.1"], port
    wanted.use_jinja, wanted.warmup = True, False
    wanted.api_keys = [key] if key else []
    wanted.cpuparams.n_threads = 1
    server = xllamacpp.Server(wanted)
    _tell_and_wait(server.listening_address)
    os._exit(0)  # its threads are the server's, and have nothing to keep


def _tell_and_wait(url: str) -> None:
    sys.stdout.write(f"ready {url}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__" and not sys.argv[1].startswith("-"):
    made = Path(sys.argv[1]) / "noise.gguf"
    make_model(made)
    serve(made)
elif __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--model", type=Path)
    options.add_argument("--port", type=int)
    options.add_argument("--jinja", action="store_true")
    asked = options.parse_args()
    serve(asked.model, asked.port, key="")
