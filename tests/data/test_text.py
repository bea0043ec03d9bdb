"""Text: documents, tokens that decode to what was written, splits and batches."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import lzma
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import syno
from syno import UserError
from syno.data import Stream, TextData, load_text
from syno.data.tokens import BytePairTokenizer, ByteTokenizer, from_json

WORDS = ("the", "a", "quick", "brown", "lazy", "fox", "dog", "jumps", "över", "naïve", "東京", "🦊")


def sentence(number: int) -> str:
    """Some words, the same for the same number."""
    picks = Stream(number, 3).below(len(WORDS), 8)
    return f"{number} " + " ".join(WORDS[pick] for pick in picks)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A file of 200 sentences, one a line."""
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(sentence(i) for i in range(200)) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """Laid out like the one billion word benchmark: 3 shards to train, 2 held out officially."""
    root = tmp_path / "lm"
    number = itertools.count()
    for part, shards in (("training-monolingual", 3), ("heldout-monolingual", 2)):
        (root / part).mkdir(parents=True)
        for shard in range(shards):
            text = "".join(sentence(next(number)) + "\n" for _ in range(50))
            (root / part / f"news.en-{shard:05}-of-{shards:05}").write_text(text, encoding="utf-8")
    return root


def documents(data: TextData, tokens: np.ndarray) -> list[str]:
    """The documents that tokens hold."""
    ends = np.flatnonzero(np.asarray(tokens) == data.tokenizer.end)
    assert len(tokens) == 0 or ends[-1] == len(tokens) - 1
    parts = np.split(np.asarray(tokens), ends + 1)[:-1]
    return [data.tokenizer.decode(part[:-1]) for part in parts]


@pytest.mark.parametrize("tokenizer", ["bytes", "byte-pair"])
def test_every_document_is_trained_on_or_held_out_and_decodes_to_itself(
    lines: Path, tokenizer: str
) -> None:
    data = load_text(str(lines), tokenizer=tokenizer, vocabulary=400)
    train, held = documents(data, data.train_tokens), documents(data, data.validation_tokens)
    assert sorted(train + held) == sorted(sentence(i) for i in range(200))
    assert len(held) == 20
    assert data.documents == {"train": 180, "held": 20, "test": 0}
    assert data.text_bytes["held"] == sum(len(text.encode()) for text in held)
    assert int(data.train_tokens.max()) < data.vocabulary
    assert data.train_tokens.dtype == np.uint16


def test_the_order_of_training_documents_stays_and_the_last_may_be_held_out(lines: Path) -> None:
    data = load_text(str(lines), held="last", holdout=0.25)
    assert documents(data, data.train_tokens) == [sentence(i) for i in range(150)]
    assert documents(data, data.validation_tokens) == [sentence(i) for i in range(150, 200)]


def test_documents_that_are_encoded_in_small_groups_give_the_same(
    lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load_text(str(lines), cache=False)
    for name, value in (("_BYTES_AT_ONCE", 100), ("_DOCUMENTS_AT_ONCE", 3)):
        monkeypatch.setattr(f"syno.data.text.{name}", value)
        found = load_text(str(lines), cache=False)
        assert np.array_equal(found.train_tokens, expected.train_tokens)
        assert np.array_equal(found.validation_tokens, expected.validation_tokens)


def test_the_hold_out_depends_on_seed_and_content_alone(lines: Path, tmp_path: Path) -> None:
    data = load_text(str(lines), seed=1)
    held = set(documents(data, data.validation_tokens))
    other = load_text(str(lines), seed=2)
    assert held != set(documents(other, other.validation_tokens))
    mixed = tmp_path / "mixed.txt"
    order = Stream(9).permutation(200)
    mixed.write_text("\n\r\n".join(sentence(int(i)) for i in order), encoding="utf-8")
    again = load_text(str(mixed), seed=1, documents="line")
    assert held == set(documents(again, again.validation_tokens))


def test_equal_documents_stay_together(tmp_path: Path) -> None:
    path = tmp_path / "twice.txt"
    path.write_text("\n".join(sentence(i % 40) for i in range(200)), encoding="utf-8")
    data = load_text(str(path), holdout=0.5)
    train, held = documents(data, data.train_tokens), documents(data, data.validation_tokens)
    assert len(train) == len(held) == 100
    assert not set(train) & set(held)


def test_sharded_text_with_an_official_test_part(sharded: Path) -> None:
    data = load_text("lm", sharded.parent)
    assert data.documents == {"train": 135, "held": 15, "test": 100}
    assert documents(data, data.test_tokens) == [sentence(i) for i in range(150, 250)]


def test_an_official_hold_out_part_is_taken_and_another_drawn_where_asked(tmp_path: Path) -> None:
    for part, count in (("train", 30), ("valid", 5), ("test", 7)):
        text = "\n".join(sentence(i) for i in range(count))
        (tmp_path / f"wiki.{part}.tokens").write_text(text, encoding="utf-8")
    data = load_text(str(tmp_path), documents="line")
    assert data.documents == {"train": 30, "held": 5, "test": 7}


@pytest.mark.parametrize("form", ["gz", "xz", "folder", "tar.gz"])
def test_packed_text_gives_the_same_tokens(lines: Path, tmp_path: Path, form: str) -> None:
    expected = load_text(str(lines))
    content = lines.read_bytes()
    packed = tmp_path / f"packed.txt.{form}"
    if form == "gz":
        packed.write_bytes(gzip.compress(content))
    elif form == "xz":
        packed.write_bytes(lzma.compress(content))
    elif form == "folder":
        packed.mkdir()
        (packed / "only.txt").write_bytes(content)
        (packed / "notes.pdf").write_bytes(b"\0")
    else:
        with tarfile.open(packed, "w:gz") as archive:
            archive.add(lines, "text/lines.txt")
    found = load_text(str(packed))
    assert np.array_equal(found.train_tokens, expected.train_tokens)
    assert np.array_equal(found.validation_tokens, expected.validation_tokens)


def test_paragraphs_and_files_are_found_by_looking(tmp_path: Path) -> None:
    play = tmp_path / "play.txt"
    play.write_text("\n\nFirst:\nHear me.\n \nAll:\nSpeak.\n\n\n" * 1 + "Last:\nGone.")
    data = load_text(str(play))
    found = documents(data, data.train_tokens) + documents(data, data.validation_tokens)
    assert sorted(found) == ["All:\nSpeak.", "First:\nHear me.", "Last:\nGone."]
    books = tmp_path / "books"
    books.mkdir()
    for i in range(4):
        (books / f"{i}.txt").write_text(f"{i}\n\nof four\n")
    data = load_text(str(books))
    assert data.documents == {"train": 3, "held": 1, "test": 0}
    assert "\n\nof four" in documents(data, data.validation_tokens)[0]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=6))
def test_bytes_decode_to_what_was_encoded(texts: list[str]) -> None:
    tokenizer = ByteTokenizer()
    tokens = tokenizer.encode([text.encode() for text in texts])
    assert (tokens == tokenizer.end).sum() == len(texts)
    parts = np.split(tokens, np.flatnonzero(tokens == tokenizer.end) + 1)[:-1]
    assert [tokenizer.decode(part[:-1]) for part in parts] == texts


@pytest.fixture(scope="module")
def pairs() -> BytePairTokenizer:
    return BytePairTokenizer.trained((sentence(i).encode() for i in range(100)), 300)


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=6))
def test_byte_pairs_decode_to_what_was_encoded_whatever_the_text(
    pairs: BytePairTokenizer, texts: list[str]
) -> None:
    tokens = pairs.encode([text.encode() for text in texts])
    parts = np.split(tokens, np.flatnonzero(tokens == pairs.end) + 1)[:-1]
    assert [pairs.decode(part[:-1]) for part in parts] == texts


def test_byte_pairs_are_learned_from_training_documents_alone(lines: Path, tmp_path: Path) -> None:
    data = load_text(str(lines), tokenizer="byte-pair", vocabulary=320)
    training = [text.encode() for text in documents(data, data.train_tokens)]
    alone = BytePairTokenizer.trained(training, 320)
    assert alone.to_json() == data.tokenizer.to_json()
    everything = [sentence(i).encode() for i in range(200)]
    assert BytePairTokenizer.trained(everything, 320).to_json() != alone.to_json()
    assert data.vocabulary == 320
    assert len(data.train_tokens) < 0.75 * data.text_bytes["train"]


def test_a_trained_tokenizer_is_the_same_in_every_process_and_from_json(lines: Path) -> None:
    data = load_text(str(lines), tokenizer="byte-pair", vocabulary=350)
    again = from_json(data.tokenizer.to_json())
    assert again.to_json() == data.tokenizer.to_json()
    program = (
        "import sys, hashlib; from syno.data import load_text\n"
        "data = load_text(sys.argv[1], tokenizer='byte-pair', vocabulary=350, cache=False)\n"
        "print(hashlib.sha256(data.train_tokens.tobytes()).hexdigest())"
    )
    package = str(Path(syno.__file__).parents[1])
    found = {
        subprocess.run(
            [sys.executable, "-c", program, str(lines)],
            env={**os.environ, "PYTHONPATH": package, "PYTHONHASHSEED": hash_seed, **threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed, threads in (("1", {}), ("2", {"RAYON_NUM_THREADS": "1"}))
    }
    expected = hashlib.sha256(np.asarray(data.train_tokens).tobytes()).hexdigest()
    assert found == {expected + "\n"}


def test_a_large_vocabulary_needs_wider_tokens(lines: Path) -> None:
    pairs = BytePairTokenizer.trained([b"a b c"], 300)
    assert pairs.encode([b"a"]).dtype == np.uint16
    pairs._type = np.uint32  # as for a vocabulary above 65,536
    assert pairs.encode([b"a", b"b"]).dtype == np.uint32


class TestBatches:
    @pytest.fixture
    def data(self, lines: Path) -> TextData:
        return load_text(str(lines))

    def test_targets_are_the_next_tokens(self, data: TextData) -> None:
        inputs, targets = next(data.batches(16, 4, seed=0))
        assert inputs.shape == targets.shape == (4, 16)
        assert inputs.dtype == targets.dtype == np.int64
        assert np.array_equal(inputs[:, 1:], targets[:, :-1])
        text = np.asarray(data.train_tokens)
        for row, target in zip(inputs, targets, strict=True):
            (place,) = np.flatnonzero(
                (np.lib.stride_tricks.sliding_window_view(text, 16) == row).all(1)
            )
            assert text[place + 16] == target[-1]

    def test_a_step_gives_the_same_batch_whenever_it_is_asked(self, data: TextData) -> None:
        through = list(itertools.islice(data.batches(16, 8, seed=3), 120))
        assert data.batches(16, 8, seed=3).steps_a_pass < 120
        resumed = data.batches(16, 8, seed=3, step=60)
        for expected in through[60:]:
            found = next(resumed)
            assert all(map(np.array_equal, found, expected))
        assert resumed.step == 120
        assert np.array_equal(resumed.at(7)[0], through[7][0])
        assert not np.array_equal(data.batches(16, 8, seed=4).at(0)[0], through[0][0])

    def test_a_pass_shows_each_window_once_and_the_next_another_cut(self, data: TextData) -> None:
        batches = data.batches(10, 1, seed=5)
        passes = []
        for number in range(5):
            first = number * batches.steps_a_pass
            rows = [batches.at(first + i)[0][0].tobytes() for i in range(batches.steps_a_pass)]
            shown = np.concatenate([np.frombuffer(row, np.int64) for row in rows])
            covered = len(data.train_tokens) - 20
            assert len(shown) >= covered
            # As many of each token as the text has, but for the ends that no window reaches.
            counts = np.bincount(np.asarray(data.train_tokens), minlength=257)
            assert (np.bincount(shown, minlength=257) <= counts).all()
            passes.append(rows)
        assert len({tuple(rows) for rows in passes}) == 5
        assert len({frozenset(rows) for rows in passes}) > 1

    def test_held_out_tokens_come_once_in_order(self, data: TextData) -> None:
        found = list(data.validation_batches(7, 4))
        targets = np.concatenate([target.ravel() for _, target in found])
        assert np.array_equal(targets, data.validation_tokens[1 : len(targets) + 1])
        assert len(data.validation_tokens) - 1 - len(targets) < 7
        assert [len(inputs) for inputs, _ in found[:-1]] == [4] * (len(found) - 1)

    def test_bits_a_byte_of_a_uniform_guess(self, data: TextData) -> None:
        # 257 tokens, one for each byte and one for each end.
        guess = np.log(257)
        expected = np.log2(257) * len(data.validation_tokens) / data.text_bytes["held"]
        assert data.bits_a_byte(guess) == pytest.approx(expected)

    def test_too_short_a_text_says_how_long_it_must_be(self, data: TextData) -> None:
        count = len(data.train_tokens)
        batch = (count - 16) // 16
        assert data.batches(16, batch, 0).at(0)[0].shape == (batch, 16)
        text = rf"(?s)too short for batches of {batch + 1} with a context of 16.*at least .*got: "
        with pytest.raises(UserError, match=text):
            data.batches(16, batch + 1, 0)
        with pytest.raises(
            UserError, match=r"(?s)validation part .* too short for a context.*holdout="
        ):
            data.validation_batches(10_000, 1)
        with pytest.raises(UserError, match=r"(?s)test part .* too short"):
            data.test_batches(4, 1)
        with pytest.raises(UserError, match="with batch 0"):
            data.batches(4, 0, 0)


def test_real_text(real_data: Path) -> None:
    if not (real_data / "tinyshakespeare.txt").exists():
        pytest.skip("needs tinyshakespeare.txt")
    data = load_text("tinyshakespeare", real_data, held="last")
    assert sum(data.text_bytes.values()) > 1_000_000
    assert data.documents["held"] == round(0.1 * sum(data.documents.values()))


class TestMistakes:
    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"tokenizer": "words"}, r"tokenizer 'words'\n  expected: 'bytes', 'byte-pair'"),
            ({"documents": "chapter"}, r"documents 'chapter'\n  expected: 'line', 'paragraph'"),
            ({"held": "first"}, r"held 'first'\n  expected: 'drawn', 'last'"),
            ({"vocabulary": 256}, r"vocabulary of 256.*\n  expected: 257"),
            ({"holdout": 1.0}, r"fraction of 1.0"),
        ],
    )
    def test_options_out_of_range(self, lines: Path, options: dict, text: str) -> None:
        with pytest.raises(UserError, match=text):
            load_text(str(lines), **options)

    def test_no_such_text_names_the_nearest(self, lines: Path) -> None:
        with pytest.raises(
            UserError, match=r"'line' is not in data folder(.|\n)*did you mean: lines"
        ):
            load_text("line", lines.parent)
        with pytest.raises(UserError, match=r"text '.*nothing.txt': .* does not exist"):
            load_text(str(lines.parent / "nothing.txt"))

    def test_a_folder_without_text(self, tmp_path: Path) -> None:
        (tmp_path / "set").mkdir()
        (tmp_path / "set/a.png").write_bytes(b"")
        with pytest.raises(UserError, match=r"(?s)no training text found in folder.*\.txt"):
            load_text("set", tmp_path)

    def test_bytes_that_are_no_utf_8_are_named(self, tmp_path: Path) -> None:
        path = tmp_path / "latin.txt"
        path.write_bytes("one\nna\xefve\nthree".encode("latin1"))
        with pytest.raises(UserError, match=r"(?s)latin.txt' is not UTF-8: .*\\xefve.*iconv"):
            load_text(str(path))
        path.write_bytes(b"one\n\0\0two\nthree")
        with pytest.raises(UserError, match="holds bytes of value 0"):
            load_text(str(path))

    def test_a_damaged_compressed_file_is_named(self, tmp_path: Path, lines: Path) -> None:
        for suffix, pack in (("gz", gzip.compress), ("xz", lzma.compress)):
            path = tmp_path / f"cut.txt.{suffix}"
            content = pack(lines.read_bytes())
            path.write_bytes(content[: len(content) // 2])
            with pytest.raises(UserError, match=rf"cut.txt.{suffix}' cannot be read: .*\n.*fetch"):
                load_text(str(path))

    def test_one_document_cannot_be_divided(self, tmp_path: Path) -> None:
        path = tmp_path / "one.txt"
        path.write_text("all in one\n")
        with pytest.raises(UserError, match=r"(?s)holds 1 line\n.*at least 2.*documents="):
            load_text(str(path))
        path.write_text("again\nagain\n")
        with pytest.raises(UserError, match=r"holds 1 different line\n"):
            load_text(str(path))

    def test_byte_pairs_without_the_package(
        self, lines: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "tokenizers", None)
        with pytest.raises(
            UserError, match=r"(?s)'tokenizers', which is not installed.*syno\[text"
        ):
            load_text(str(lines), tokenizer="byte-pair", cache=False)


def test_a_changed_text_is_read_again_and_a_damaged_cache_rebuilt(
    lines: Path, cache_dir: Path
) -> None:
    first = load_text(str(lines))
    assert isinstance(first.train_tokens, np.memmap)
    stamp = lines.stat().st_mtime_ns
    content = lines.read_bytes()
    lines.write_bytes(content.replace(b"fox", b"cat"))
    os.utime(lines, ns=(stamp, stamp))  # the same size and time: the content tells
    changed = load_text(str(lines))
    assert changed.fingerprint != first.fingerprint
    assert "cat" in changed.tokenizer.decode(changed.train_tokens[:2000])
    for name in ("train_tokens.npy", "held_tokens.npy", "test_tokens.npy", "meta.json"):
        for place in (0, 30, 60, -5, -1):
            (folder,) = (
                f
                for f in (cache_dir / "data").iterdir()
                if changed.fingerprint[:16] in f.name and f.is_dir()
            )
            damaged = bytearray((folder / name).read_bytes())
            damaged[place] ^= 4
            (folder / name).write_bytes(damaged)
            again = load_text(str(lines))
            assert np.array_equal(again.train_tokens, changed.train_tokens)
            assert again.tokenizer.to_json() == changed.tokenizer.to_json()


@pytest.mark.parametrize("tokenizer", ["bytes", "byte-pair"])
def test_a_test_part_is_set_apart_from_training_and_hold_out(lines: Path, tokenizer: str) -> None:
    plain = load_text(str(lines), tokenizer=tokenizer, vocabulary=400)
    data = load_text(str(lines), tokenizer=tokenizer, vocabulary=400, test=0.15)
    parts = [
        documents(data, t) for t in (data.train_tokens, data.validation_tokens, data.test_tokens)
    ]
    assert [len(part) for part in parts] == [150, 20, 30]
    assert sorted(text for part in parts for text in part) == sorted(
        sentence(i) for i in range(200)
    )
    # What is held out does not depend on it; what is trained on does, and so the content's name.
    assert documents(plain, plain.validation_tokens) == parts[1]
    assert data.documents == {"train": 150, "held": 20, "test": 30}
    assert data.text_bytes["test"] == sum(len(text.encode()) for text in parts[2])
    assert data.fingerprint != plain.fingerprint
    assert len(list(data.test_batches(16, 4))) > 0
    assert load_text(str(lines), test=0.15, cache=False).documents["test"] == 30


def test_equal_documents_are_in_one_part_alone(tmp_path: Path) -> None:
    path = tmp_path / "twice.txt"
    path.write_text("".join(f"number {n % 10}\n" for n in range(60)))
    data = load_text(str(path), documents="line", holdout=0.2, test=0.2)
    parts = [set(documents(data, t)) for t in (data.train_tokens, data.validation_tokens)]
    parts.append(set(documents(data, data.test_tokens)))
    assert [len(part) for part in parts] == [6, 2, 2]
    assert not parts[0] & parts[1] and not parts[0] & parts[2] and not parts[1] & parts[2]


def test_shares_that_leave_nothing_to_train_on_are_refused(lines: Path) -> None:
    with pytest.raises(UserError, match=r"(?s)cannot hold out 0.6 and set apart 0.4 .* below 1"):
        load_text(str(lines), holdout=0.6, test=0.4)
    with pytest.raises(UserError, match=r"cannot set apart for the test a fraction of 1\.5"):
        load_text(str(lines), test=1.5)
    lines.write_text("one\ntwo\n")
    with pytest.raises(UserError, match=r"(?s)cannot hold out documents .* at least 3"):
        load_text(str(lines), test=0.1)
