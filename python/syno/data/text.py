"""`load_text`: a text as arrays of tokens, and batches of contexts with their next tokens.

Needs NumPy (and `tokenizers` for byte pairs), never torch.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np

from syno._util.errors import UserError
from syno.data import cache as store
from syno.data.catalogue import kind_of
from syno.data.documents import KINDS, SUFFIXES, Documents, is_text, text_source
from syno.data.layout import is_image
from syno.data.loading import KNOWN
from syno.data.progress import bar
from syno.data.random import Stream
from syno.data.source import ARCHIVES, ArchiveSource, FileSource, find_path
from syno.data.tokens import BYTE_VOCABULARY, BytePairTokenizer, ByteTokenizer, Tokenizer, from_json

TOKENIZERS = (ByteTokenizer.name, BytePairTokenizer.name)
_PARTS = ("train", "held", "test")
_TRAIN, _VALIDATION, _TEST = range(3)
_ARRAYS = tuple(f"{part}_tokens" for part in _PARTS)
_SUFFIXES = (*SUFFIXES, *ARCHIVES)
_LARGEST_VOCABULARY = 1 << 20
_DOCUMENTS_AT_ONCE = 4096
_BYTES_AT_ONCE = 16 << 20


@dataclass(frozen=True, eq=False)
class TextData:
    """Tokens of a text, each document followed by `tokenizer.end`: uint16 or uint32 [T], maybe
    memory-mapped.

    validation_tokens: the validation split: documents that training and tokenizer never read.
    test_tokens: the official test split, or documents that were set apart; may be empty.
    documents, text_bytes: the number of documents, and of their bytes in UTF-8, of the splits
        "train", "held" (validation) and "test".
    fingerprint: a digest (32 hexadecimal digits) of content, splits and tokenizer.
    """

    name: str
    train_tokens: np.ndarray
    validation_tokens: np.ndarray
    test_tokens: np.ndarray
    tokenizer: Tokenizer
    fingerprint: str
    documents: dict[str, int] = field(default_factory=dict)
    text_bytes: dict[str, int] = field(default_factory=dict)

    @property
    def vocabulary(self) -> int:
        """How many tokens there are; a token is 0 .. vocabulary - 1."""
        return self.tokenizer.vocabulary

    def batches(self, context: int, batch: int, seed: int, step: int = 0) -> TextBatches:
        """Endless training batches from `step` on: (inputs, targets), both int64 [batch, context].

        targets[b, i] is the token behind inputs[b, i]. In one pass the training tokens are cut into
        windows of `context` from a place that the seed draws, and each window comes once, in an
        order of the seed. The batch of a step is a function of (context, batch, seed, step) alone.
        Raises UserError where the training tokens do not fill one batch.
        """
        return TextBatches(self, context, batch, seed, step)

    def validation_batches(
        self, context: int, batch: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Iterate once over the validation tokens, in order.

        Args:
            context: tokens of a sequence.
            batch: sequences of a batch.

        Returns:
            Pairs (inputs, targets), int64 [n, context]. n is `batch`, and may be smaller in the
            last pair. Tokens at the end that do not fill a context are omitted.

        Raises:
            UserError: if the validation split is shorter than a context.
        """
        return self._in_order("validation", self.validation_tokens, context, batch)

    def test_batches(self, context: int, batch: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Iterate over the test split as `validation_batches` does. Only a report may read it."""
        return self._in_order("test", self.test_tokens, context, batch)

    def bits_a_byte(self, loss: float, part: str = "held") -> float:
        """Convert a mean loss per token (nats) to bits per byte, which compares across tokenizers.

        Args:
            loss: the mean loss per token, in nats.
            part: the split of the loss: a key of `text_bytes`.
        """
        tokens = self.test_tokens if part == "test" else self.validation_tokens
        return float(loss * len(tokens) / max(self.text_bytes[part], 1) / np.log(2))

    def _in_order(
        self, part: str, tokens: np.ndarray, context: int, batch: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        _check_sizes(context, batch)
        windows = (len(tokens) - 1) // context
        if windows < 1:
            raise UserError(
                f"the {part} part of text '{self.name}' is too short for a context of {context}\n"
                f"  expected: at least {context + 1} tokens      got: {len(tokens)}\n"
                "  use a smaller context, or a larger part (holdout=)"
            )
        return (
            _cut(tokens, np.arange(first, min(first + batch, windows)) * context, context)
            for first in range(0, windows, batch)
        )


class TextBatches:
    """What `TextData.batches` gives: an endless iterator whose `step` can be kept and gone on from.

    `steps_a_pass` is how many batches one pass over the training tokens has (the windows left over
    are others in each pass).
    """

    def __init__(self, data: TextData, context: int, batch: int, seed: int, step: int) -> None:
        _check_sizes(context, batch)
        if step < 0:
            raise UserError(f"step {step} of a training is negative\n  expected: 0 or more")
        self._tokens, self._context, self._batch = data.train_tokens, context, batch
        # A window needs one token more, and the first of a pass begins up to context - 1 late.
        self._windows = (len(self._tokens) - context) // context
        self.steps_a_pass = self._windows // batch
        if self.steps_a_pass < 1:
            least = (batch + 1) * context
            raise UserError(
                f"text '{data.name}' is too short for batches of {batch} with a context of "
                f"{context}\n  expected: at least {least:,} training tokens      got: "
                f"{len(self._tokens):,}\n  take a smaller batch or context, or more text"
            )
        self.step = step
        self._seed = seed
        self._pass = lru_cache(maxsize=2)(self._starts)

    def __iter__(self) -> TextBatches:
        return self

    def __next__(self) -> tuple[np.ndarray, np.ndarray]:
        self.step += 1
        return self.at(self.step - 1)

    def at(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """The batch of any step, without moving: inputs and targets, int64 [batch, context]."""
        number, place = divmod(step, self.steps_a_pass)
        starts = self._pass(number)[place * self._batch : (place + 1) * self._batch]
        return _cut(self._tokens, starts, self._context)

    def _starts(self, number: int) -> np.ndarray:
        """Where the windows of a pass begin, in their order: int64 [windows]."""
        stream = Stream(self._seed, number)
        offset = int(stream.below(self._context, 1)[0])
        return stream.permutation(self._windows) * self._context + offset


def load_text(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    tokenizer: str = "bytes",
    vocabulary: int = 4096,
    documents: str | None = None,
    holdout: float | None = None,
    test: float | None = None,
    held: str = "drawn",
    seed: int = 0,
    cache: bool = True,
    progress: bool = True,
) -> TextData:
    """Loads a text as tokens, split by documents.

    name: a file, folder or archive of text in `data_dir` (`name` or `name.txt`), or a path to one.
        The names of files determine their split (documents.py).
    data_dir: the folder that holds it (default: the environment's SYNO_DATA).
    tokenizer: `bytes`, or `byte-pair`, trained on the training documents alone.
    vocabulary: tokens of a byte-pair tokenizer, the end of a document among them.
    documents: `line`, `paragraph` (a blank line ends one) or `file`; None looks at the text.
    holdout: the share of the training documents that form the validation split. By default, it is
        0.1, or the official validation split if there is one.
    test: the share of the training documents that form the test split, if there is no official
        one; None for no test split.
    held: how documents are selected: `drawn` by a hash of their content and the seed (equal
        documents stay together), or `last` for the end of the text.
    seed: selects the documents of the validation and the test split.
    cache: keep the tokens in the user's cache folder, memory-mapped; False: in memory.
    progress: draw a progress bar while reading, if standard error is a terminal.

    Raises UserError for a missing or damaged file, text that is not UTF-8, options out of range,
    too few documents to divide, and a cache that cannot be written.
    """
    _check_options(name, tokenizer, vocabulary, documents, holdout, test, held)
    path = find_path(name, data_dir, _SUFFIXES)
    with closing(text_source(path, name)) as source:
        request = _Request(
            name, source, tokenizer, vocabulary, documents, holdout, test, held, seed, progress
        )
        return _cached(request) if cache else _in_memory(request)


def is_text_data(name: str, data_dir: str | os.PathLike[str] | None = None) -> bool:
    """Whether `load_text` rather than `load` is for the data set of this name, told by the names of
    its files. Raises UserError where there is none."""
    if name in KNOWN:
        return False
    path = find_path(name, data_dir, (*ARCHIVES, *SUFFIXES), KNOWN)
    kind = kind_of(path)
    if kind == "archive":
        with closing(ArchiveSource(path, lambda file: is_text(file) or is_image(file))) as source:
            source.scan(lambda _: None)
            return not any(map(is_image, source.files)) and any(map(is_text, source.files))
    return kind == "text"


@dataclass(frozen=True)
class _Request:
    """What is to be read, and how."""

    name: str
    source: FileSource
    tokenizer: str
    vocabulary: int
    documents: str | None
    holdout: float | None
    test: float | None
    held: str
    seed: int
    progress: bool

    def key(self) -> str:
        """32 hex: names the content and how it is divided and encoded."""
        tokens = (self.tokenizer, self.tokenizer == BytePairTokenizer.name and self.vocabulary)
        split: tuple[object, ...] = (self.documents, self.holdout, self.held, self.seed)
        if self.test is not None:
            split = (*split, "test", self.test)
        parts = ("text", store.FORMAT, self.source.content(), tokens, split)
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _cached(request: _Request) -> TextData:
    key = request.key()

    def build(made: Path) -> None:
        writers: dict[str, store.ArrayWriter] = {}
        with ExitStack() as stack:

            def add(part: str, block: np.ndarray) -> None:
                name = f"{part}_tokens"
                if name not in writers:
                    writer = store.ArrayWriter(made / f"{name}.npy", block)
                    writers[name] = stack.enter_context(closing(writer))
                writers[name].add(block)

            meta = _encode(request, add)
        store.write_meta(made, {"name": request.name, **meta}, writers)

    label = request.tokenizer
    if label == BytePairTokenizer.name:
        label += f"-{request.vocabulary}"
    meta, arrays = store.cached(store.folder_of(request.name, label, key), _ARRAYS, build)
    return _made(request.name, arrays, meta, key)


def _in_memory(request: _Request) -> TextData:
    blocks: dict[str, list[np.ndarray]] = {part: [] for part in _PARTS}
    meta = _encode(request, lambda part, block: blocks[part].append(block))
    arrays = {f"{part}_tokens": np.concatenate(parts) for part, parts in blocks.items()}
    return _made(request.name, arrays, meta, request.key())


def _made(name: str, arrays: dict[str, np.ndarray], meta: store.Meta, key: str) -> TextData:
    return TextData(
        name=name,
        train_tokens=arrays["train_tokens"],
        validation_tokens=arrays["held_tokens"],
        test_tokens=arrays["test_tokens"],
        tokenizer=from_json(meta["tokenizer"]),
        fingerprint=key,
        documents=meta["documents"],
        text_bytes=meta["text_bytes"],
    )


def _encode(request: _Request, sink: Callable[[str, np.ndarray], None]) -> dict[str, object]:
    """Feeds each part's tokens to sink(part, block), at least one block each, maybe empty.

    1. reads the training documents and chooses those to hold out
    2. trains the tokenizer on the others
    3. encodes all parts
    """
    with bar(f"reading {request.name}", None, request.progress) as advance:
        request.source.scan(lambda _: None)
        text = Documents(request.source, request.documents)
        chosen = _set_apart(request, text, advance)
    training = (d for d, part in zip(text.read("train"), chosen, strict=True) if part == _TRAIN)
    if request.tokenizer == ByteTokenizer.name:
        tokenizer: Tokenizer = ByteTokenizer()
    else:
        tokenizer = BytePairTokenizer.trained(training, request.vocabulary)

    counts = dict.fromkeys(_PARTS, 0)
    sizes = dict.fromkeys(_PARTS, 0)
    for part in _PARTS:
        sink(part, tokenizer.encode([]))

    def add(part: str, documents: list[bytes]) -> None:
        if documents:
            sink(part, tokenizer.encode(documents))
            counts[part] += len(documents)
            sizes[part] += sum(map(len, documents))

    total = len(chosen) if not text.parts["held"] and not text.parts["test"] else None
    with bar(f"encoding {request.name}", total, request.progress) as advance:
        for part in _PARTS:
            flags = iter(chosen) if part == "train" else None
            for documents in _groups(text.read(part)):
                if flags is None:
                    add(part, documents)
                else:
                    parts = list(islice(flags, len(documents)))
                    pairs = list(zip(documents, parts, strict=True))
                    for number, own in enumerate(_PARTS):
                        add(own, [document for document, where in pairs if where == number])
                advance(len(documents))
    return {"tokenizer": tokenizer.to_json(), "documents": counts, "text_bytes": sizes}


def _groups(documents: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Some documents at once, of bounded size in all."""
    group: list[bytes] = []
    size = 0
    for document in documents:
        group.append(document)
        size += len(document)
        if len(group) == _DOCUMENTS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _set_apart(request: _Request, text: Documents, advance: Callable[[int], None]) -> np.ndarray:
    """The part of each training document, a place in `_PARTS`: uint8 [documents].

    A document is drawn by a hash of its content under the seed, so equal documents never stand on
    both sides, whatever the order of documents and files.
    """
    key = request.seed.to_bytes(8, "little", signed=request.seed < 0)
    drawn = request.held == "drawn"
    hashes = array("Q")
    for document in text.read("train"):
        digest = hashlib.blake2b(document, digest_size=8, key=key).digest() if drawn else b""
        hashes.append(int.from_bytes(digest, "little"))
        if len(hashes) % _DOCUMENTS_AT_ONCE == 0:
            advance(_DOCUMENTS_AT_ONCE)
    parts = np.full(len(hashes), _TRAIN, dtype=np.uint8)
    wants_validation = not (text.parts["held"] and request.holdout is None)
    wants_test = request.test is not None and not text.parts["test"]
    if not wants_validation and not wants_test:
        return parts
    values = np.array(hashes) if drawn else np.arange(len(hashes))[::-1]
    distinct = np.unique(values)
    least = 1 + wants_validation + wants_test
    if len(distinct) < least:
        raise UserError(
            f"cannot hold out documents of text '{request.name}': {request.source.where} holds "
            f"{len(distinct)} {'different ' if len(hashes) > len(distinct) else ''}{text.kind}"
            f"{'' if len(distinct) == 1 else 's'}\n  expected: at least {least}; documents= (line, "
            "paragraph or file) says where one ends"
        )
    left, first = len(distinct) - 1, 0
    for wanted, share, part in (
        (wants_validation, 0.1 if request.holdout is None else request.holdout, _VALIDATION),
        (wants_test, request.test or 0.0, _TEST),
    ):
        if wanted:
            rest = wants_test and part == _VALIDATION  # one document is kept for the test part
            count = min(max(round(share * len(distinct)), 1), left - rest)
            inside = (values >= distinct[first]) & (values <= distinct[first + count - 1])
            parts[inside] = part
            first, left = first + count, left - count
    return parts


def _cut(tokens: np.ndarray, starts: np.ndarray, context: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows of `context` + 1 tokens as inputs and targets, int64 [n, context]."""
    windows = np.asarray(tokens[starts[:, None] + np.arange(context + 1)], dtype=np.int64)
    return np.ascontiguousarray(windows[:, :-1]), np.ascontiguousarray(windows[:, 1:])


def _check_sizes(context: int, batch: int) -> None:
    for name, value in (("context", context), ("batch", batch)):
        if value < 1:
            raise UserError(f"cannot make text batches with {name} {value}\n  expected: 1 or more")


def _check_options(
    name: str,
    tokenizer: str,
    vocabulary: int,
    documents: str | None,
    holdout: float | None,
    test: float | None,
    held: str,
) -> None:
    for option, value, known in (
        ("tokenizer", tokenizer, TOKENIZERS),
        ("documents", documents, (None, *KINDS)),
        ("held", held, ("drawn", "last")),
    ):
        if value not in known:
            raise UserError(
                f"cannot load text '{name}' with {option} '{value}'\n"
                f"  expected: {', '.join(repr(k) for k in known if k)}"
            )
    if not BYTE_VOCABULARY <= vocabulary <= _LARGEST_VOCABULARY:
        raise UserError(
            f"cannot train a tokenizer with a vocabulary of {vocabulary} for text '{name}'\n"
            f"  expected: {BYTE_VOCABULARY} (all bytes and the end) to {_LARGEST_VOCABULARY:,}"
        )
    for words, share in (("hold out", holdout), ("set apart for the test", test)):
        if share is not None and not 0.0 < share < 1.0:
            raise UserError(
                f"cannot {words} a fraction of {share} of text '{name}'\n"
                "  expected: a fraction between 0 and 1, such as 0.1"
            )
    if holdout is not None and test is not None and holdout + test >= 1.0:
        raise UserError(
            f"cannot hold out {holdout} and set apart {test} of text '{name}' for the test\n"
            "  expected: together below 1: the rest is trained on"
        )
