"""Surrogate models on data whose answer is known."""

import json

import numpy as np
import pytest

import syno
from syno.features import FEATURES
from syno.surrogate import MODELS, SurrogateData, fit_model, normal_scores, select_model
from syno.surrogate.models import cross_validated, rank_correlation


def made(count, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, 12))
    y = x[:, 0] + 0.5 * np.abs(x[:, 1]) + noise * rng.standard_normal(count)
    return x, y


@pytest.mark.parametrize("name", MODELS)
class TestEveryModel:
    def test_ranks_new_operators(self, name):
        x, y = made(160)
        found = fit_model(name, x[:100], y[:100]).predict(x[100:])
        assert rank_correlation(found.mean, y[100:]) > 0.7
        assert (found.deviation >= 0).all()
        assert found.mean.shape == found.deviation.shape == (60,)

    def test_is_the_same_for_the_same_seed(self, name):
        x, y = made(60)
        found = [fit_model(name, x, y, seed=3).predict(x).mean for _ in range(2)]
        assert np.array_equal(*found)

    def test_is_less_sure_far_from_what_it_saw(self, name):
        x, y = made(80)
        model = fit_model(name, x, y)
        assert model.predict(3 * x).deviation.mean() > model.predict(x).deviation.mean()

    def test_takes_unknown_and_constant_features(self, name):
        x, y = made(60)
        x[::3, 2] = np.nan
        x[:, 4] = 1.0
        x[:, 5] = np.nan
        assert np.isfinite(fit_model(name, x, y).predict(x).mean).all()

    def test_operators_of_little_weight_count_little(self, name):
        x, y = made(80)
        other = -y
        weights = np.r_[np.ones(80), np.full(80, 0.01)]
        model = fit_model(name, np.r_[x, x], np.r_[y, other], weights)
        assert rank_correlation(model.predict(x).mean, y) > 0.7


def test_an_unknown_model_is_named():
    x, y = made(10)
    with pytest.raises(syno.UserError, match="no surrogate model 'tree'"):
        fit_model("tree", x, y)


def test_the_model_that_ranks_best_is_selected():
    x, y = made(60)
    name = select_model(x, y)
    own = {n: rank_correlation(cross_validated(n, x, y), y) for n in MODELS}
    assert own[name] == max(own.values())


def test_normal_scores_keep_the_order_alone():
    values = [3.0, 1.0, 100.0, 1.0]
    scores = normal_scores(values)
    assert scores[1] == scores[3] < scores[0] < scores[2]
    assert np.array_equal(scores, normal_scores(np.exp(values)))
    assert normal_scores([]).size == 0


class TestData:
    def data(self):
        rows = np.arange(2.0 * len(FEATURES)).reshape(2, -1)
        rows[0, 0] = np.nan
        return SurrogateData("runs.db:a", rows, (0.5, 0.25))

    def test_is_read_as_it_was_written(self, tmp_path):
        data = self.data()
        data.save(tmp_path / "a.json")
        found = SurrogateData.load(tmp_path / "a.json")
        assert found.source == data.source
        assert found.values == data.values
        assert np.array_equal(found.rows, data.rows, equal_nan=True)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"format": "other"}, "no data of a surrogate"),
            ({"version": 2}, "another version of Syno"),
            ({"features": ["depth"]}, "another version of Syno"),
            ({"values": [1.0]}, "2 rows of features, 1 finite"),
            ({"values": [1.0, "x"]}, "damaged"),
            ({"rows": [[1.0]]}, "damaged"),
        ],
    )
    def test_other_content_is_refused(self, change, message):
        content = json.loads(json.dumps(self.data().to_json())) | change
        with pytest.raises(syno.UserError, match=message):
            SurrogateData.from_json(content)

    def test_a_file_that_is_no_document_is_named(self, tmp_path):
        with pytest.raises(syno.UserError, match="cannot read the data"):
            SurrogateData.load(tmp_path / "none.json")
        (tmp_path / "b.json").write_text("{")
        with pytest.raises(syno.UserError, match="not a JSON document"):
            SurrogateData.load(tmp_path / "b.json")
