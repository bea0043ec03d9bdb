"""How many workers have room in a cluster, and what is said if they have none."""

from __future__ import annotations

import pytest

from syno._util.errors import UserError
from syno.launch.room import TAG_SHARE, Demand, check_room, room, tag_resources

from .fake_cluster import node


@pytest.mark.parametrize(
    ("demand", "total", "count"),
    [
        (Demand(1), {"CPU": 4}, 4),
        (Demand(3), {"CPU": 8}, 2),
        (Demand(1), {}, 0),
        (Demand(1, 0.5), {"CPU": 8, "GPU": 2}, 4),
        (Demand(1, 0.4), {"CPU": 8, "GPU": 2}, 4),  # two on each, and a fifth is left of each
        (Demand(1, 0.1), {"CPU": 8, "GPU": 1}, 8),
        (Demand(1, 2), {"CPU": 8, "GPU": 5}, 2),
        (Demand(1, 1), {"CPU": 8}, 0),
        (Demand(1, 0, {"jetson": TAG_SHARE}), {"CPU": 2, "jetson": 1}, 2),
        (Demand(1, 0, {"jetson": TAG_SHARE}), {"CPU": 2}, 0),
        (Demand(1, node="another"), {"CPU": 2}, 0),
        (Demand(1, node="1"), {"CPU": 2}, 2),
    ],
)
def test_a_node_has_room_for_whole_workers(demand, total, count):
    assert room(demand, node("1", **total)) == count


def test_without_a_number_there_are_as_many_as_have_room():
    nodes = [node("1", CPU=3), node("2", CPU=5)]
    assert check_room(Demand(2), None, nodes) == 3
    assert check_room(Demand(2), 1, nodes) == 1


def test_more_gpus_than_there_are_is_said_at_once():
    nodes = [node("1", CPU=8), node("2", CPU=8, GPU=2)]
    with pytest.raises(UserError) as error:
        check_room(Demand(1, 1.0), 4, nodes)
    assert str(error.value) == (
        "4 workers with 1 core and 1 GPU each cannot be placed: the Ray cluster has room for 2\n"
        "  found: 2 nodes: host-1 (10.0.0.1: 8 cores); host-2 (10.0.0.2: 8 cores, 2 GPUs)\n"
        "  what to do: --jobs 2, or less for each worker (--cores-per-worker, --gpus-per-worker, "
        "--worker-tags), or add nodes to the cluster first"
    )
    with pytest.raises(UserError, match=r"a worker with 9 cores cannot be placed: .* for none"):
        check_room(Demand(9), None, nodes)
    with pytest.raises(UserError, match="a worker with 1 core and 3 GPUs cannot be placed"):
        check_room(Demand(1, 3.0), 1, nodes)


def test_a_large_cluster_is_listed_in_part():
    nodes = [node(str(number), CPU=1) for number in range(30)]
    with pytest.raises(UserError, match=r"found: 30 nodes: .*; and 22 more\n"):
        check_room(Demand(2), None, nodes)


def test_a_tag_is_a_resource_where_a_node_has_one_of_this_name():
    nodes = [node("1", CPU=2, memory=1e9), node("2", CPU=2, jetson=1, **{"node:10.0.0.2": 1})]
    tags = ("jetson", "fast", "CPU", "memory", "node:10.0.0.2")
    assert tag_resources(tags, nodes) == {"jetson": TAG_SHARE}
