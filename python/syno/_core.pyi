"""
The C++ library of Syno. Private: the public interface is the package syno.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypedDict, overload

import numpy
from numpy.typing import NDArray



class LimitDescriptor(TypedDict):
    name: str
    type: str
    default: float
    minimum: float
    doc: str

class SpecificationFields(TypedDict):
    input: str
    output: str
    primary: list[str]
    coefficient: list[str]
    bindings: list[dict[str, int]]
    multiplicities: list[int]
    layer_macs: list[float]
    passed_through: list[tuple[int, int]]
    symmetries: list[str]
    limits: dict[str, float]

class RuleExample(TypedDict):
    refused: str
    kept: str
    share: float

class RuleCheck(TypedDict):
    graphs: int
    asked: int
    refused: int
    compared: int
    equal_keys: int
    equal_values: int
    different: int
    undecided: int
    mean_share: float
    most_share: float
    example: RuleExample | None

class BudgetUse(TypedDict):
    variable: str
    used: int
    budget: int
    within: bool

class LimitUse(TypedDict):
    limit: str
    used: float
    allowed: float
    within: bool

class Misfit(TypedDict):
    binding: str
    size: str

class Usage(TypedDict):
    budgets: list[BudgetUse]
    limits: list[LimitUse]
    misfits: list[Misfit]
    macs: int
    params: int
    pooling: int

class RefusedStep(TypedDict):
    step: str
    reason: str

class ExplainedStep(TypedDict):
    step: str
    children: int
    refused: dict[str, int]
    others: list[RefusedStep]

class Refusal(TypedDict):
    reason: str
    text: str

class Explanation(TypedDict):
    listed: bool
    key: str
    refusals: list[Refusal]
    refused_match: str
    reached: bool
    obstacle: str
    obstacle_reason: str
    steps: list[ExplainedStep]
    usage: Usage

Relaxation = TypedDict("Relaxation", {"kind": str, "name": str, "from": str, "to": str})

class KeptOperator(TypedDict):
    operator: Operator
    key: str
    rules: list[str]
    near: bool

class WhyNot(TypedDict):
    admitted: bool
    explanation: Explanation
    kept: KeptOperator | None
    relaxations: list[Relaxation]
    no_relaxation: str

MOST_THREADS: int = 512

class UserError(Exception):
    """
    An invalid request. The text says what is wrong, where, what was expected and what was found.
    """

class InternalError(Exception):
    """A bug in Syno: an invariant is violated."""

def seal(values: list) -> str:
    """The seal of values of a database, see seal.h."""

def seals(first: str, names: list, rows: list) -> list[str]:
    """
    The seal of each row: `first`, and the values of these names, None where there is none.
    """

def size_names(text: str) -> list[str]:
    """
    The names of the variables in a size such as 's^-1*C_in'. Raises UserError with the column.
    """

def parse_binding(text: str) -> dict[str, int]:
    """
    Parses a binding such as 'C_in=64, H=56'. Raises UserError with the column.
    """

def evaluate_size(text: str, binding: Mapping[str, int]) -> int:
    """
    The value of a size under a binding. Raises UserError if it is not a positive integer.
    """

def primitive_names() -> list[str]:
    """The names of all primitives, in their order."""

class Step:
    """One step of a graph as plain data, coordinates by name."""

    @property
    def op(self) -> str: ...

    @property
    def inputs(self) -> list[str]: ...

    @property
    def out(self) -> list[str]: ...

    @property
    def size(self) -> str:
        """The block, factor or extent; empty if there is none."""

    @property
    def amount(self) -> int: ...

    @property
    def causal(self) -> bool: ...

    @property
    def dims(self) -> list[tuple[str, str]]:
        """(coordinate, role) of each dimension of the weight."""

class Graph:
    """A partial graph, built from the output towards the input."""

    def __init__(self, variables: Sequence[str], output: Sequence[tuple[str, bool, bool]]) -> None:
        """
        The empty graph over these variables. output: (size, unordered, causal) for each dimension.
        """

    @staticmethod
    def parse(text: str) -> Graph:
        """Reads the text of a partial graph."""

    @property
    def text(self) -> str:
        """The canonical text."""

    def apply(self, op: str, inputs: Sequence[int], size: str = '', amount: int = 0, causal: bool = False, dims: Sequence[tuple[int, str]] = []) -> list[int]:
        """Applies one step and returns the coordinates that it produces."""

    @property
    def frontier(self) -> list[int]:
        """The coordinates at which the data is read."""

    def name(self, coordinate: int) -> str:
        """The canonical name of a coordinate."""

    def extent(self, coordinate: int) -> str:
        """The extent of a coordinate as a size string."""

    def copy(self) -> Graph: ...

    def root(self) -> Graph:
        """The empty graph of the same output and variables."""

    @property
    def steps(self) -> list[Step]: ...

    @property
    def depth(self) -> int: ...

    @property
    def primitives(self) -> dict[str, int]:
        """How many steps use each primitive."""

    def dot(self) -> str:
        """A drawing in the language of Graphviz."""

class Operator:
    """A complete graph matched to its input, in canonical form."""

    def __init__(self, graph: Graph, input: Sequence[tuple[str, bool, bool]], match: Sequence[int]) -> None:
        """
        match: for each input dimension, the coordinate of the frontier at which it is read.
        """

    @staticmethod
    def parse(text: str) -> Operator:
        """Reads the versioned text."""

    @staticmethod
    def from_json(data: object | None) -> Operator:
        """Reads the JSON form: a document as str or bytes, or its content."""

    @property
    def text(self) -> str:
        """The canonical text."""

    @property
    def json(self) -> str:
        """The JSON form."""

    @property
    def batch(self) -> str | None:
        """The variable of the batch; None without one."""

    @property
    def structure(self) -> str:
        """A hash of the canonical form, 32 hexadecimal digits."""

    @property
    def input(self) -> list[tuple[str, bool, bool]]: ...

    @property
    def output(self) -> list[tuple[str, bool, bool]]: ...

    @property
    def match(self) -> list[str]: ...

    @property
    def steps(self) -> list[Step]: ...

    @property
    def variables(self) -> list[str]: ...

    @property
    def primitives(self) -> dict[str, int]:
        """How many steps use each primitive; a contraction counts once."""

    @property
    def depth(self) -> int: ...

    @property
    def weights(self) -> int:
        """The number of weights."""

    @property
    def windows(self) -> int:
        """The number of steps that slide a window."""

    def dot(self) -> str:
        """A drawing in the language of Graphviz."""

    def __hash__(self) -> int: ...

    def __eq__(self, arg: object, /) -> bool: ...

def option_descriptors() -> list[LimitDescriptor]:
    """
    The name, type, default, minimum and doc of every limit of a specification.
    """

def preset_names() -> list[str]:
    """The names of the presets."""

def preset_doc(name: str) -> str:
    """A description of a preset in one sentence."""

def preset_source(name: str) -> SpecificationFields:
    """
    The fields of a preset. The UserError for an unknown preset lists the presets.
    """

class Specification:
    """Shapes, variables, bindings and limits."""

    def __init__(self, input: str, output: str, primary: Sequence[str], coefficient: Sequence[str], bindings: Sequence[Mapping[str, int]], multiplicities: Sequence[int], layer_macs: Sequence[float], passed_through: Sequence[tuple[int, int]], symmetries: Sequence[str], limits: Mapping[str, float]) -> None: ...

    @property
    def source(self) -> SpecificationFields:
        """The fields that define the specification."""

    @property
    def text(self) -> str:
        """"input -> output"."""

    @property
    def key(self) -> str:
        """A hash of the content, 32 hexadecimal digits."""

    @property
    def variables(self) -> list[str]: ...

    @property
    def defaults(self) -> dict[str, int]:
        """The values of variables that a binding may omit."""

    @property
    def full_bindings(self) -> list[dict[str, int]]:
        """The bindings, with the values of all variables."""

    @property
    def multiplicities(self) -> list[int]: ...

@overload
def interpret(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]]) -> NDArray[numpy.int64]: ...

@overload
def interpret(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)]]) -> NDArray[numpy.float64]:
    """
    Computes y by the definition, one term at a time. Exact for int64; raises UserError on overflow.
    """

@overload
def interpret_at(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]], positions: Sequence[int]) -> NDArray[numpy.int64]: ...

@overload
def interpret_at(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)]], positions: Sequence[int]) -> NDArray[numpy.float64]:
    """Computes y at row-major positions of the output."""

@overload
def gradients(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]], dy: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]) -> tuple[NDArray[numpy.int64], list[NDArray[numpy.int64]]]: ...

@overload
def gradients(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)]], dy: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)]) -> tuple[NDArray[numpy.float64], list[NDArray[numpy.float64]]]:
    """
    Computes the gradients of sum(dy * y) with respect to x and every weight.
    """

class OperatorShapes:
    """The extents of all tensors under a binding."""

    @property
    def input(self) -> list[int]: ...

    @property
    def output(self) -> list[int]: ...

    @property
    def weights(self) -> list[list[int]]: ...

def operator_shapes(op: Operator, binding: Mapping[str, int]) -> OperatorShapes:
    """Raises UserError if a size is not a positive integer."""

def reads_future(op: Operator, binding: Mapping[str, int], output_dim: int, input_dim: int) -> str:
    """
    A text that says where an output reads a later input; empty if none does.
    """

def factors(op: Operator, binding: Mapping[str, int], most: int) -> tuple[list[int], tuple[list[int], list[int], list[int], list[int], list[int]], NDArray[numpy.int64], list[tuple[list[int], NDArray[numpy.int64]]]]:
    """
    (extents of the variables, (blocks, free, rows, taps, ranks), where the data is read, weights), see factors.h. A weight is (its variables, an array with a dimension for each of them): the row-major position of its element, -1 where a window falls outside.
    """

def mean_square(op: Operator, binding: Mapping[str, int], seed: int = 0) -> float:
    """
    The mean of y^2 for data and weights of variance 1, over sampled elements if there are many terms.
    """

def semantic_key(op: Operator, spec: Specification) -> str:
    """
    Equal only for operators that are the same under every binding of the specification.
    """

def orbit_keys(operators: Sequence[Operator], spec: Specification) -> list[str]:
    """
    The keys of the orbits of operators under the symmetries of the specification.
    """

def random_operator(seed: int, batch: bool = False, unordered: float = 0.0, causal_windows: float = 0.0, min_weights: int = 0, max_terms: int = 20000) -> tuple[Operator, dict[str, int]]:
    """
    A random well-formed operator with a small binding, for tests. The same on every machine.
    """

def map_feature_list() -> list[tuple[str, str]]:
    """
    Names of the features of an operator as a linear map, each with a sentence.
    """

def map_features(op: Operator, binding: Mapping[str, int], output_positions: Sequence[int], input_positions: Sequence[int], seed: int = 0) -> list[float]:
    """
    The values of map_feature_list. Dimensions that are no positions are channels.
    """

def rule_catalogue() -> list[dict[str, str]]:
    """
    The id, name, kind (exact, approximate or restriction) and doc of every rule.
    """

def check_rule(spec: Specification, rules: RuleSet, rule: str, trials: int = 100, max_graphs: int = 2000, seed: int = 0, progress: Callable[[int, int], bool] | None = None) -> RuleCheck:
    """
    Compares what a rule rejects on random graphs with what it keeps. progress(compared, graphs) is called regularly and ends the check by returning False.
    """

class RuleSet:
    """The rules that are on. Initially, all rules are on."""

    def __init__(self) -> None: ...

    def set(self, rule: str, on: bool) -> None:
        """
        Switches a rule, given by id or name, on or off. The UserError for an unknown rule lists the rules.
        """

    def add(self, id: str, name: str, kind: str, doc: str, version: str, steps: Sequence[str], function: Callable[[Graph, Step], bool | Graph | None]) -> None:
        """
        Adds a custom rule function(graph, step). A restriction returns whether the step is left out; another rule returns the graph that is kept, or None. Several threads call the function, one at a time.
        """

    def is_on(self, rule: str) -> bool: ...

    @property
    def on(self) -> list[str]:
        """The ids of the rules that are on, in the order of evaluation."""

    @property
    def version(self) -> str:
        """A digest that changes if a rule is added, changed or switched."""

class Plan:
    """An operator under one binding as an ordered list of stages."""

    def __init__(self, op: Operator, binding: Mapping[str, int]) -> None:
        """The cheapest plan: fewest MACs, then fewest elements written."""

    @property
    def text(self) -> str:
        """One line for each stage with shape and cost, and the totals."""

    @property
    def macs(self) -> int: ...

    @property
    def macs_in_bounds(self) -> int:
        """
        The MACs without those on weights alone, and without those on elements outside of a tensor, which are zero: compiled code may skip both.
        """

    @property
    def written(self) -> int:
        """The number of elements that all stages write."""

    @property
    def stage_macs(self) -> list[int]: ...

    @property
    def views_first(self) -> bool:
        """
        Whether every window and cyclic shift of the data is computed before anything is multiplied or summed, as in a lowering step by step.
        """

    @property
    def params(self) -> int: ...

    @property
    def bytes_moved(self) -> int:
        """
        The number of bytes that all stages read and write, in float32. Views move no bytes.
        """

    @property
    def peak_bytes(self) -> int:
        """The peak memory in bytes, including input, weights and output."""

    @property
    def fold_macs(self) -> int:
        """
        MACs of the stages on weights alone, which `macs` does not count; 0 where none are folded.
        """

    def __str__(self) -> str: ...

    @property
    def fan_in(self) -> list[int]:
        """
        For each weight, the number of terms that are summed for an element that depends on it.
        """

    @property
    def exact(self) -> bool:
        """False if the costs of some orders of the steps were not computed."""

def plans(op: Operator, binding: Mapping[str, int], limit: int = 1, fold_weights: bool = False) -> list[Plan]:
    """The cheapest plans with different stages, sorted by cost."""

def macs(op: Operator, binding: Mapping[str, int]) -> int:
    """The MACs of the cheapest plan."""

def params(op: Operator, binding: Mapping[str, int]) -> int:
    """The number of elements of all weights."""

def refusals(op: Operator, spec: Specification, rules: RuleSet) -> list[tuple[str, str]]:
    """
    All rejection reasons of an operator under a specification, as (reason, text).
    """

def total_macs(op: Operator, spec: Specification) -> int:
    """MACs over all layers that the operator fits, weighted by multiplicity."""

def total_params(op: Operator, spec: Specification) -> int:
    """
    Parameters over all layers that the operator fits, weighted by multiplicity.
    """

class FoundOperator:
    """An operator with its key under a specification."""

    @property
    def op(self) -> Operator: ...

    @property
    def key(self) -> str: ...

    @property
    def depth(self) -> int: ...

class Enumeration:
    """The operators of a specification, enumerated within a budget."""

    @property
    def operators(self) -> list[FoundOperator]:
        """One operator for each semantic key, sorted by depth and key."""

    @property
    def graphs(self) -> int: ...

    @property
    def structures(self) -> int: ...

    @property
    def nodes(self) -> int: ...

    @property
    def complete_depth(self) -> int:
        """The largest depth limit that was enumerated completely."""

    @property
    def exhausted(self) -> bool: ...

    @property
    def rejections(self) -> dict[str, int]: ...

class EnumerateStatus:
    """The progress of an enumeration."""

    @property
    def depth_limit(self) -> int: ...

    @property
    def level(self) -> int:
        """The number of primitives of the graphs that are visited now."""

    @property
    def nodes(self) -> int:
        """Partial graphs visited over all depth limits."""

    @property
    def operators(self) -> int:
        """The approximate number of operators found."""

    @property
    def level_share(self) -> float:
        """The fraction of this level that is visited."""

class Space:
    """The enumerated graphs of a specification and the operators among them."""

    def __len__(self) -> int: ...

    @property
    def node_count(self) -> int:
        """The number of partial graphs, including the empty graph."""

    @property
    def graph_count(self) -> int:
        """Complete graphs, accepted or not."""

    @property
    def structures(self) -> int:
        """The number of accepted graphs with a matching."""

    @property
    def depth_limit(self) -> int: ...

    @property
    def complete_depth(self) -> int: ...

    @property
    def exhausted(self) -> bool: ...

    @property
    def visited(self) -> int:
        """Partial graphs visited over all depth limits."""

    @property
    def spec_text(self) -> str: ...

    @property
    def rules(self) -> str:
        """The version of the rule set."""

    @property
    def rejections(self) -> dict[str, int]: ...

    def op(self, spec: Specification, index: int) -> Operator:
        """The operator with an index below len()."""

    def key(self, index: int) -> str: ...

    def depth(self, index: int) -> int:
        """The number of primitives of the operator."""

    def graphs_by_depth(self) -> list[int]: ...

    def operators_by_depth(self) -> list[int]: ...

    def operators_by_primitives(self) -> dict[str, int]: ...

    def signature(self) -> str:
        """
        The same for any number of threads, names of variables and order of declaration.
        """

    def save(self, path: str) -> None: ...

    @staticmethod
    def load(path: str, spec: Specification, rules: RuleSet) -> Space:
        """
        Reads a saved space. Raises UserError if the file is damaged or belongs to another specification or rule set.
        """

def enumerate_options() -> list[dict[str, Any]]:
    """
    The name, type, default, minimum and doc of each budget of an enumeration.
    """

def enumerate_space(spec: Specification, rules: RuleSet, max_depth: int = 0, max_nodes: int = ..., max_memory: int = 0, max_seconds: float = 0.0, threads: int = 0, bound: str = 'full', quality: bool = True, keys: bool = True, first_depth: int = 1, progress: Callable[[EnumerateStatus], bool] | None = None) -> Space:
    """
    Enumerates the space level by level under increasing depth limits. progress(status) is called regularly; it ends the enumeration, as an exhausted budget does, by returning False. The result is the same for any number of threads.
    """

def enumerate(spec: Specification, rules: RuleSet, max_depth: int = 0, max_nodes: int = ..., threads: int = 0, progress: Callable[[EnumerateStatus], bool] | None = None) -> Enumeration:
    """Calls enumerate_space and builds the operators."""

class UniformSamples:
    """The numbers below a count in a random order that depends on a seed."""

    def __init__(self, count: int, seed: int) -> None: ...

    def at(self, n: int) -> int:
        """The n-th sample without replacement, for n < count."""

    def __len__(self) -> int: ...

def deepen(spec: Specification, rules: RuleSet, max_depth: int = 0, max_nodes: int = ..., max_memory: int = 0, max_seconds: float = 0.0, threads: int = 0, bound: str = 'full', progress: Callable[[EnumerateStatus], bool] | None = None, on_limit: Callable[[Space], None] | None = None, before: Space | None = None) -> tuple[Space, str]:
    """
    Calls enumerate_space for one depth limit after the other. Returns the space and why the enumeration ended: complete, stopped, max_seconds, max_nodes, or max_nodes or max_memory. on_limit(space) is called with each complete space; `before` is a space to continue from.
    """

def save_space(space: Space, path: str, spec: Specification, rules: RuleSet) -> None:
    """Writes an enumeration to a file, with its specification and rules."""

def load_space(path: str, name: str, spec: Specification, rules: RuleSet) -> Space:
    """
    Reads an enumeration from a file. Raises UserError that names the differences if the file belongs to another specification or rule set. `name` is the name of the file in messages.
    """

def sample_operators(space: Space, spec: Specification, count: int, seed: int, by: str = 'none', threads: int = 0) -> list[int]:
    """
    Samples the indices of distinct operators: uniformly, or stratified by quantiles of macs or params, or by multisets of primitives.
    """

def reason_groups() -> list[str]:
    """
    The groups of rejection reasons, in the order in which a search checks them.
    """

def reason_info(reason: str) -> dict[str, str]:
    """The group, subgroup and doc of a rejection reason."""

def rule_doc_parts(rule: str) -> list[tuple[str, str]]:
    """
    The doc of a rule, given by id or name, as (heading, text). The UserError for an unknown rule lists the rules.
    """

class WalkedOperator:
    """An operator that random walks found."""

    @property
    def op(self) -> Operator: ...

    @property
    def key(self) -> str: ...

    @property
    def depth(self) -> int: ...

    @property
    def weight(self) -> float:
        """
        An estimate of the number of structures of the space that it represents.
        """

    @property
    def met(self) -> int:
        """The number of populations that found it."""

class Walks:
    """
    The operators that guided random walks found, and estimates of the space.
    """

    @property
    def operators(self) -> list[WalkedOperator]:
        """
        One operator for each semantic key, in the order in which they were found.
        """

    @property
    def walks(self) -> int: ...

    @property
    def populations(self) -> int:
        """Groups of particles that select their steps together."""

    @property
    def accepted(self) -> int:
        """The number of operators found, counted once for each population."""

    @property
    def singletons(self) -> int:
        """Operators that exactly one population found."""

    @property
    def doubletons(self) -> int:
        """Operators that exactly two populations found."""

    @property
    def structures(self) -> float:
        """An estimate of the structures of the space."""

    @property
    def structures_error(self) -> float:
        """Its standard error."""

    @property
    def coverage(self) -> float: ...

    @property
    def at_least(self) -> float: ...

def walk_options() -> list[dict[str, Any]]:
    """
    The name, type, default, minimum and doc of each budget of random walks.
    """

def random_walks(spec: Specification, rules: RuleSet, walks: int, width: int = ..., max_seconds: float = 0.0, seed: int = 0, max_depth: int = 0, max_operators: int = 0, threads: int = 0, bound: str = 'full', progress: Callable[[int, int, float], bool] | None = None) -> Walks:
    """
    Samples operators by guided random walks. progress(walks, operators, coverage) is called after every round and ends the walks by returning False. The result is the same for any number of threads.
    """

class TreeNode:
    """A partial graph in a tree search."""

    @property
    def graph(self) -> Graph: ...

    @property
    def depth(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def step(self) -> str:
        """The last step, in the text format."""

    @property
    def least_steps(self) -> int:
        """A lower bound on the number of missing steps."""

    @property
    def count(self) -> int:
        """The number of operators at or below the node, or a lower bound on it."""

    @property
    def exact(self) -> bool:
        """Whether count is exact."""

class Tree:
    """The space as a tree of partial graphs."""

    def __init__(self, spec: Specification, rules: RuleSet, max_depth: int = 0, listed: Space | None = None, bound: str = 'full') -> None: ...

    @property
    def exact(self) -> bool: ...

    def root(self) -> TreeNode: ...

    def children(self, node: TreeNode) -> list[TreeNode]: ...

    def operators(self, node: TreeNode) -> list[FoundOperator]:
        """The operators that are complete at the node itself."""

def explain(op: Operator, spec: Specification, rules: RuleSet) -> Explanation:
    """
    Explains how a search reaches an operator: path, rules, budgets and limits. Raises UserError if the operator has other shapes or unknown variables.
    """

def why_not(op: Operator, spec: Specification, rules: RuleSet, max_nodes: int = ..., max_seconds: float = ...) -> WhyNot:
    """
    Explains why an operator is rejected, which equal operator is kept, and the smallest change that admits it.
    """

class Trials:
    """The counts of random trials."""

    @property
    def trials(self) -> int: ...

    @property
    def steps(self) -> int:
        """The number of steps that were taken."""

    @property
    def looked_at(self) -> int:
        """The number of steps that were considered."""

    @property
    def complete(self) -> int:
        """The number of trials that reached the sizes of the input."""

    @property
    def valid(self) -> int:
        """
        The number of trials that reached an operator that passes all conditions.
        """

    @property
    def distinct(self) -> int:
        """The number of semantic keys of these operators."""

    @property
    def seconds(self) -> float: ...

class CanonicalRow:
    """The samples with one number of primitives."""

    @property
    def samples(self) -> int:
        """The number of complete graphs that were sampled without rules."""

    @property
    def canonical(self) -> int:
        """The number of samples that no rule rejects."""

    @property
    def listed(self) -> int:
        """The number of those that pass all conditions as well."""

    @property
    def structures(self) -> int:
        """The number of different structures among the samples."""

    @property
    def operators(self) -> int:
        """The number of different semantic keys among them."""

class CanonicalRates:
    """Samples without rules, grouped by size."""

    @property
    def rows(self) -> list[CanonicalRow]:
        """One row for each number of primitives."""

    @property
    def trials(self) -> int: ...

    @property
    def seconds(self) -> float: ...

def trial_options() -> list[dict[str, Any]]:
    """
    The name, type, default, minimum and doc of each budget of random trials.
    """

def random_trials(spec: Specification, rules: RuleSet, guide: str = 'none', trials: int = ..., max_seconds: float = 0.0, max_depth: int = 0, seed: int = 0, threads: int = 1, progress: Callable[[int], bool] | None = None) -> Trials:
    """
    Runs random walks from the root without backtracking. The guide is none, distance, distance-once or bound. progress(completed trials) is called regularly and ends them by returning False.
    """

def canonical_rates(spec: Specification, rules: RuleSet, guide: str = 'distance', samples: int = ..., max_seconds: float = 0.0, max_depth: int = 0, seed: int = 0, threads: int = 1, progress: Callable[[int], bool] | None = None) -> CanonicalRates:
    """
    Samples complete graphs without rules, and counts by size those that `rules` keeps. progress(samples found) is called regularly and ends the sampling by returning False.
    """

def moved_operators(operator: Operator, sizes: Sequence[tuple[str, int]]) -> list[tuple[Operator, list[tuple[str, int]]]]:
    """
    The operators one move away, see moves.h, each with the values of its coefficients. sizes: (name, value) of each coefficient.
    """

class SearchSpace:
    """The operators that search methods select from."""

    def __init__(self, operators: Sequence[Operator]) -> None: ...

    @property
    def graphs(self) -> int:
        """The number of partial graphs of all operators, complete ones included."""

    def __len__(self) -> int: ...

    def distance(self, a: int, b: int) -> int:
        """How many steps two operators do not share, see neighbors.h."""

    def nearest(self, op: int, count: int) -> list[int]:
        """
        The `count` nearest operators, and all others at the distance of the last of them.
        """

class SearchMethod:
    """Selects operators by the results of those that were evaluated."""

    def __len__(self) -> int: ...

    @property
    def left(self) -> int:
        """The number of operators not proposed yet."""

    def propose(self, number: int) -> int | None:
        """
        The operator that ask(number) would return; None if there is none left.
        """

    def insert(self, number: int, op: int) -> None:
        """Makes an operator pending that was proposed before."""

    def ask(self, number: int) -> int | None:
        """Proposes an operator and makes it pending; None if there is none left."""

    def answer(self, op: int, value: float) -> None:
        """Sets the value of a proposed operator; greater is better."""

    def fail(self, op: int) -> None:
        """Reports that the trial of a proposed operator failed."""

class LocalSearch(SearchMethod):
    """Evaluates the neighbors of the best operators."""

    def __init__(self, space: SearchSpace, seed: int, *, samples: int, neighbors: int, restarts: float, reach: int) -> None: ...

class Evolution(SearchMethod):
    """Regularized evolution: neighbors of the winner of a tournament."""

    def __init__(self, space: SearchSpace, seed: int, *, population: int, tournament: int, neighbors: int) -> None: ...

class TreeSearch(SearchMethod):
    """Tree search with upper confidence bounds, as in the paper."""

    def __init__(self, space: SearchSpace, seed: int, *, exploration: float, widening: float, all_moves: float, samples: float, power: float, pending: float) -> None: ...

class GraphSearch(SearchMethod):
    """Monte-Carlo search over partial graphs."""

    def __init__(self, space: SearchSpace, seed: int, *, samples: int, exploration: float, mix: float, pull: float) -> None: ...

    def set_prior(self, values: Sequence[float]) -> None:
        """
        Sets what a surrogate predicts for each operator; an empty list removes it.
        """

def formula(op: Operator, stages: bool) -> str:
    """The operator in index notation: one line, or one for each weight."""

def parse_formula(text: str, input: str, output: str, values: Mapping[str, int]) -> tuple[Operator, list[tuple[str, list[int]]]]:
    """
    Parses index notation. Returns the operator, and for each of its weights the name in the text and, for each dimension, the index in the text. Raises UserError.
    """

def emit_pytorch(plan: Plan, formula: str = '') -> tuple[str, str]:
    """
    The source of the class SynoOperator, a torch.nn.Module, and its manifest as JSON.
    """

def emit_tvm(plan: Plan, formula: str = '') -> tuple[str, str]:
    """
    The source of prim_func() and build() for TVM, and its manifest as JSON.
    """

def emit_triton(plan: Plan, formula: str = '', least_product: int = 8) -> tuple[str, str]:
    """
    The source of syno_operator() and its Triton kernels, and its manifest as JSON.

    least_product: smallest number of rows and terms for which a nest is a matrix product.
    """

def emit_cpp(plan: Plan, name: str = 'syno_operator', formula: str = '', with_runtime: bool = True, cache_floats: int = 65536, epilogue: str = '', channel: int = 1, input_order: Sequence[int] | None = None, output_order: Sequence[int] | None = None, precision: str = 'float32', input_format: str = 'float32', output_format: str = 'float32', value_format: str = 'float32', tuning: str = '') -> tuple[str, str]:
    """
    A C++ translation unit with a plain C interface, and its manifest as JSON.

    cache_floats: number of floats in the cache of a core; larger tensors are processed in blocks.
    epilogue: what happens to results before they are stored: parts of 'scale+bias+residual+relu', in this order, with any activation in place of relu.
    channel: the dimension of y that scale and bias have values for.
    input_order, output_order: the dimensions of x, and of y and residual, in the order of memory, the outermost first; None is row-major.
    precision: what contractions multiply: 'float32', 'bfloat16' or 'int8'.
    input_format, output_format: how x, and y and residual, are stored: 'float32', with bfloat16 also 'bfloat16'; in int8 x is 'uint8', and y 'float32' or 'uint8'.
    value_format: how what contractions give to others is stored: 'float32', in int8 also 'uint8'; the manifest lists these tensors as 'codes'.
    tuning: choices instead of those of the rules, such as '0: over=rows width=8'.
    """

def cpp_choices(plan: Plan) -> str:
    """
    The nests of a plan in emitted C++, and what a tuning may choose of them, as JSON.
    """

def cpp_phases(plan: Plan, cache_floats: int = 65536) -> str:
    """What the kernel that emit_cpp emits does, phase by phase, as JSON."""

def cpp_header(name: str = 'syno_operator', epilogue: str = '', precision: str = 'float32', input_format: str = 'float32', output_format: str = 'float32') -> str:
    """The C header for the source that emit_cpp returns."""

def cpp_runtime() -> str:
    """
    The text before the first operator, which emit_cpp omits with with_runtime=False.
    """

def emit_training(plan: Plan, name: str = 'syno_operator', formula: str = '', with_runtime: bool = True, images: int = 0) -> tuple[str, str]:
    """
    A C++ translation unit with the operator and its gradients, and its manifest as JSON.

    images: number of elements of the batch that are processed together; 0 chooses.
    """

def training_runtime() -> str:
    """
    The text before the first operator, which emit_training omits with with_runtime=False.
    """

def emit_network(*, name: str, file: str, library: str, kernels: Sequence[tuple[str, str, str]], layers: Sequence[tuple[int, Sequence[int], str]], steps: Sequence[tuple[str, str, tuple[int, int, tuple[str, int], tuple[str, int], tuple[str, int], tuple[str, int]] | None]], inputs: Sequence[tuple[Sequence[int], int, bool]], outputs: Sequence[Sequence[int]], arena: int, constants: int, words: int, fingerprint: int) -> tuple[str, str, int]:
    """(code, header, parts) of a network as one C++ source, see network.h."""

def emit_program(*, layers: Sequence[tuple[int, Sequence[int], str]], steps: Sequence[tuple[str, str, tuple[int, int, tuple[str, int], tuple[str, int], tuple[str, int], tuple[str, int]] | None]], inputs: Sequence[tuple[Sequence[int], int, bool]], outputs: Sequence[Sequence[int]], arena: int) -> str:
    """The code of a part of a network that a host calls, see network.h."""

__version__: str
