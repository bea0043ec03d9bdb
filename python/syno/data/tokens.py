"""Tokenizers that need no download: bytes, and byte pairs trained on the text itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Protocol

import numpy as np

from syno._util import checks
from syno._util.errors import UserError
from syno._util.json_types import JsonObject

# A byte-pair tokenizer learns from so much of the training documents, in their order.
TRAINING_BYTES = 128 << 20
BYTE_VOCABULARY = 257


class Tokenizer(Protocol):
    """Text to tokens and back. `end` is the token behind every document; `vocabulary` counts all
    tokens, `end` among them."""

    name: str
    vocabulary: int
    end: int

    def encode(self, documents: Sequence[bytes]) -> np.ndarray:
        """The tokens of UTF-8 documents one behind the other, each with `end` behind it: [T]."""

    def decode(self, tokens: Iterable[int] | np.ndarray) -> str:
        """The text of tokens; a new line stands for `end`, U+FFFD for what is cut within a
        character."""

    def to_json(self) -> JsonObject:
        """What `from_json` makes the same tokenizer of."""


class ByteTokenizer:
    """Every byte of UTF-8 is a token; token 256 ends a document."""

    name = "bytes"
    vocabulary = BYTE_VOCABULARY
    end = 256

    def encode(self, documents: Sequence[bytes]) -> np.ndarray:
        """The tokens of UTF-8 documents, each with `end` behind it: uint16 [T]."""
        ends = np.cumsum([len(document) + 1 for document in documents], dtype=np.int64) - 1
        tokens = np.frombuffer(b"\0".join([*documents, b""]), dtype=np.uint8).astype(np.uint16)
        tokens[ends] = self.end
        return tokens

    def decode(self, tokens: Iterable[int] | np.ndarray) -> str:
        """The text; a new line stands for `end`, U+FFFD for what is cut within a character."""
        known = (ord("\n") if token == self.end else int(token) for token in tokens)
        return bytes(known).decode("utf-8", errors="replace")

    def to_json(self) -> JsonObject:
        """The name is all there is."""
        return {"name": self.name}


class BytePairTokenizer:
    """Byte pairs as in GPT-2, trained here; any text can be encoded, and decodes to itself."""

    name = "byte-pair"

    def __init__(self, model: str) -> None:
        """model: the JSON of a tokenizer of the package `tokenizers`."""
        try:
            self._model = _package().Tokenizer.from_str(model)
        except Exception as error:  # the package raises no narrower kind
            raise UserError(
                f"this is not a tokenizer of the package 'tokenizers': {error}\n"
                "  expected: the JSON that BytePairTokenizer.to_json gives"
            ) from error
        # The end is no token of the model, so no text can hold it.
        self.end = int(self._model.get_vocab_size())
        self.vocabulary = self.end + 1
        self._type = np.uint16 if self.vocabulary <= 1 << 16 else np.uint32

    @staticmethod
    def trained(documents: Iterable[bytes], vocabulary: int) -> BytePairTokenizer:
        """Learned from UTF-8 documents; the same documents give the same tokenizer.

        The vocabulary comes out smaller than asked where the documents hold fewer pairs.
        Raises UserError where the package `tokenizers` is not installed.
        """
        package = _package()
        model = package.Tokenizer(package.models.BPE())
        model.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
        model.decoder = package.decoders.ByteLevel()
        trainer = package.trainers.BpeTrainer(
            vocab_size=vocabulary - 1,
            initial_alphabet=sorted(package.pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        model.train_from_iterator(_sample(documents), trainer)
        return BytePairTokenizer(model.to_str())

    def encode(self, documents: Sequence[bytes]) -> np.ndarray:
        """The tokens of UTF-8 documents, each with `end` behind it: uint16 (uint32 for a vocabulary
        above 65,536) [T]."""
        texts = [document.decode("utf-8") for document in documents]
        parts: list[np.ndarray | list[int]] = []
        for encoding in self._model.encode_batch(texts):
            parts += (np.array(encoding.ids, dtype=self._type), [self.end])
        return np.concatenate(parts).astype(self._type) if parts else np.empty(0, self._type)

    def decode(self, tokens: Iterable[int] | np.ndarray) -> str:
        """The text; a new line stands for `end`, U+FFFD for what is cut within a character."""
        pieces: list[list[int]] = [[]]
        for token in tokens:
            if token == self.end:
                pieces.append([])
            else:
                pieces[-1].append(int(token))
        return "\n".join(self._model.decode(piece) for piece in pieces)

    def to_json(self) -> JsonObject:
        """The model as the package `tokenizers` writes it."""
        return {"name": self.name, "model": json.loads(self._model.to_str())}


def from_json(content: object) -> Tokenizer:
    """The tokenizer that `to_json` described. Raises UserError for anything else."""
    content = checks.fields("a tokenizer", content)
    name = checks.field("a tokenizer", content, "name")
    if name == ByteTokenizer.name:
        return ByteTokenizer()
    if name != BytePairTokenizer.name:
        raise UserError(
            f"unknown tokenizer {checks.shown(name)}\n"
            f"  expected: {ByteTokenizer.name} or {BytePairTokenizer.name}"
        )
    try:
        model = json.dumps(checks.field("a tokenizer", content, "model"))
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"a tokenizer's model is not JSON: {error}") from error
    return BytePairTokenizer(model)


def _sample(documents: Iterable[bytes]) -> Iterator[str]:
    left = TRAINING_BYTES
    for document in documents:
        if left <= 0:
            return
        left -= len(document)
        yield document.decode("utf-8")


def _package() -> ModuleType:
    try:
        import tokenizers
    except ImportError as error:
        raise UserError(
            "a byte-pair tokenizer needs the package 'tokenizers', which is not installed\n"
            "  install it with: pip install 'syno[text]', or take tokenizer='bytes'"
        ) from error
    return tokenizers
