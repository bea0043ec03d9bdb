"""check_rule: exact rules of the catalogue pass, wrong ones do not."""

import pytest

import syno
from syno import Rule, Specification, UserError, check_rule
from syno.space.rules import list_rules

SPECIFICATION = Specification(
    "[C, H]",
    "[C, H]",
    ["C: 2", "H: 2"],
    ["k=3: 2", "s=2: 2"],
    bindings=["C=4, H=12"],
    max_merges=2,
    max_strides=2,
    max_repeat=4,
    element_wise_weights=True,
)
# Patterns that random graphs of this specification meet.
COMMON = {"R1b", "R2a", "R2b", "R3a", "R3b", "R6a", "R6b", "R7", "R13", "R14", "R15a"}


@pytest.mark.parametrize("rule", [r.id for r in list_rules() if r.kind == "exact"])
def test_exact_rules_of_the_catalogue_keep_equal_operators(rule):
    found = check_rule(rule, SPECIFICATION, trials=15, max_graphs=300, seed=1)
    assert found.different == 0, found
    assert found.compared > 0 or rule not in COMMON
    assert found.sound


def test_a_rotation_that_is_taken_for_none_is_found():
    @syno.rule("U1", "shift-is-none", kind="exact", steps=["shift"])
    def shift_is_none(graph, step):
        return graph

    found = check_rule(shift_is_none, SPECIFICATION, trials=30)
    assert not found.sound
    assert found.different >= 10
    assert found.most_share == 1
    again = check_rule(shift_is_none, SPECIFICATION, trials=30)
    assert again == found, "the same seed gives the same graphs"
    assert check_rule(shift_is_none, SPECIFICATION, trials=30, seed=1) != found


def test_a_renumbered_weight_is_no_difference():
    # R6a under another name: its key is equal, whatever the numbering of the weight.
    found = check_rule("R6a", SPECIFICATION, trials=30)
    assert found.equal_keys == found.compared == 30


def test_the_share_of_an_approximate_rule_is_measured():
    wide = SPECIFICATION.with_changes(bindings=["C=4, H=96"])
    found = check_rule("R10a", wide, trials=20, max_graphs=4000)
    assert found.compared >= 5
    assert 0 < found.most_share < 0.5
    assert found.kept_graph != found.refused_graph


def test_an_exception_names_the_rule():
    def breaks(graph, step):
        raise LookupError("a mistake")

    with pytest.raises(LookupError) as caught:
        check_rule(Rule("U1", "breaks", "exact", breaks), SPECIFICATION)
    assert "in rule U1 breaks" in caught.value.__notes__[0]


def test_mistakes_are_named():
    with pytest.raises(UserError, match="a rule is checked on the layers"):
        check_rule("R6a", Specification("[H]", "[H]", ["H: 1"]))
    with pytest.raises(UserError, match="'trials' is an integer of at least 1, got 0"):
        check_rule("R6a", SPECIFICATION, trials=0)
    with pytest.raises(UserError, match="unknown rule 'R0'"):
        check_rule("R0", SPECIFICATION)
    with pytest.raises(UserError, match="there is a rule 'R6a' already"):
        check_rule(Rule("R6a", "other", "restriction", lambda g, s: False), SPECIFICATION)
