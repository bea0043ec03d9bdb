"""Export to the blackbox format of Syne Tune: what is written is read again without Syne Tune."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest

import syno
from syno_lab.benchmark.blackbox import COSTS, ERROR, LOSS, TIME, write_blackbox
from syno_lab.benchmark.parquet import write_text_column

from . import made


class Compact:
    """Reads structures of Thrift's compact protocol as dictionaries by the ids of fields."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def value(self, kind):
        if kind in (4, 5, 6):
            value = self.varint()
            return value >> 1 ^ -(value & 1)
        if kind == 8:
            size = self.varint()
            self.at += size
            return self.data[self.at - size : self.at].decode()
        if kind == 9:
            header = self.byte()
            return [self.value(header & 15) for _ in range(header >> 4)]
        assert kind == 12
        return self.struct()

    def struct(self):
        found, number = {}, 0
        while header := self.byte():
            number += header >> 4
            found[number] = self.value(header & 15)
        return found


def read_column(path):
    """The name and the texts of a Parquet file with one column, and its metadata."""
    data = path.read_bytes()
    assert data[:4] == data[-4:] == b"PAR1"
    (size,) = struct.unpack("<I", data[-8:-4])
    metadata = Compact(data[-8 - size : -8]).struct()
    (group,) = metadata[4]
    (chunk,) = group[1]
    column = chunk[3]
    reader = Compact(data)
    reader.at = column[9]
    page = reader.struct()
    assert page[1] == 0
    assert reader.at - column[9] + page[3] == column[6] == column[7]
    values, at = [], reader.at
    for _ in range(page[5][1]):
        (length,) = struct.unpack_from("<I", data, at)
        values.append(data[at + 4 : at + 4 + length].decode())
        at += 4 + length
    assert at == len(data) - 8 - size
    assert metadata[3] == group[3] == column[5] == len(values)
    assert metadata[2][0][5] == 1
    assert metadata[2][1][4] == column[3][0]
    return column[3][0], values


@pytest.mark.parametrize("values", [[], ["a"], ["", "ü€", "x" * 300] * 100])
def test_a_column_of_texts_is_read_again(tmp_path, values):
    path = tmp_path / "x.parquet"
    write_text_column(path, "operator", values)
    assert read_column(path) == ("operator", values)


def test_a_blackbox_has_the_values_of_the_table(tmp_path):
    table = made.table(seeds=2, noise=0.01)
    table.results[3] = replace(table.results[3], accuracy=None, curve=())
    folder = tmp_path / "made"
    write_blackbox(table, folder)
    name, keys = read_column(folder / "hyperparameters.parquet")
    good = [key for key in table.keys if key != table.rows[table.results[3].operator].key]
    assert keys == good
    space = json.loads((folder / "configspace.json").read_text())
    assert space[name]["domain_kwargs"]["categories"] == keys
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata["objectives_names"] == [ERROR, TIME, *COSTS]
    assert metadata["task_names"] == ["made"]
    assert (metadata["metric_default"], metadata["metric_elapsed_time"]) == (ERROR, TIME)
    assert list(json.loads((folder / "fidelityspace.json").read_text())) == [
        metadata["resource_attr"]
    ]
    epochs = np.load(folder / "fidelities_values.npy")
    assert epochs.tolist() == [1, 2]
    values = np.load(folder / "objectives_evaluations.npy")
    assert values.dtype == np.float32
    assert values.shape == (1, len(keys), 2, 2, 4)
    for place in (0, 5, len(keys) - 1):
        for seed in (0, 1):
            result = table.results_of(keys[place])[seed]
            found = values[0, place, seed]
            assert found[:, 0] == pytest.approx([1 - each for each in result.curve])
            assert found[:, 1] == pytest.approx([result.seconds / 2, result.seconds])
            row = table.rows[result.operator]
            assert found[:, 2:].tolist() == [[row.macs, row.params]] * 2


def test_only_seeds_of_all_operators_are_written(tmp_path):
    table = made.table(seeds=2)
    del table.results[1]
    write_blackbox(table, tmp_path)
    assert np.load(tmp_path / "objectives_evaluations.npy").shape[2] == 1


def test_a_table_of_text_has_losses(tmp_path):
    table = made.table()
    table.configuration = made.configuration(fidelity={"name": "fast/text"})
    table.results = [replace(r, loss=2.0 + r.accuracy, curve=(r.accuracy,)) for r in table.results]
    write_blackbox(table, tmp_path)
    values = np.load(tmp_path / "objectives_evaluations.npy")
    assert values.shape[3] == 1
    losses = [table.results_of(key)[0].loss for key in table.keys]
    assert values[0, :, 0, 0, 0].tolist() == pytest.approx(losses)
    metadata = json.loads((tmp_path / "metadata.json").read_text())
    assert metadata["metric_default"] == metadata["objectives_names"][0] == LOSS


def test_a_table_without_results_is_refused(tmp_path):
    with pytest.raises(syno.UserError, match="cannot be written as a blackbox"):
        write_blackbox(made.table(trained=0), tmp_path)
