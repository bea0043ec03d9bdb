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
    A mistake in what was asked for. The text says what, where, what was expected and found.
    """

class InternalError(Exception):
    """A bug in Syno: an invariant that does not hold."""

def size_names(text: str) -> list[str]:
    """
    The variable names in a size such as 's^-1*C_in'. UserError with the column.
    """

def parse_binding(text: str) -> dict[str, int]:
    """Reads 'C_in=64, H=56'. UserError with the column."""

def evaluate_size(text: str, binding: Mapping[str, int]) -> int:
    """
    The value of a size under a binding. UserError where it is not a positive integer.
    """

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
        """Block, factor or extent; empty where there is none."""

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
        The empty graph over these variables; output: (size, unordered, causal) a dimension.
        """

    @staticmethod
    def parse(text: str) -> Graph:
        """Reads the text of a partial graph."""

    @property
    def text(self) -> str:
        """The canonical text."""

    def apply(self, op: str, inputs: Sequence[int], size: str = '', amount: int = 0, causal: bool = False, dims: Sequence[tuple[int, str]] = []) -> list[int]:
        """Takes one step; returns the coordinates it produced."""

    @property
    def frontier(self) -> list[int]:
        """Coordinates the data is read at."""

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
        """A drawing in Graphviz' language."""

class Operator:
    """A complete graph matched to its input, in canonical form."""

    def __init__(self, graph: Graph, input: Sequence[tuple[str, bool, bool]], match: Sequence[int]) -> None:
        """
        match: the coordinate of the frontier that each input dimension is read at.
        """

    @staticmethod
    def parse(text: str) -> Operator:
        """Reads the versioned text."""

    @staticmethod
    def from_json(data: object) -> Operator:
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
        """Hash of the canonical form, 32 hexadecimal digits."""

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

    def dot(self) -> str:
        """A drawing in Graphviz' language."""

    def __hash__(self) -> int: ...

    def __eq__(self, arg: object, /) -> bool: ...

def option_descriptors() -> list[LimitDescriptor]:
    """
    name, type, default, minimum and doc of every limit of a specification.
    """

def preset_names() -> list[str]:
    """The names of the presets."""

def preset_doc(name: str) -> str:
    """What a preset is, in a sentence."""

def preset_source(name: str) -> SpecificationFields:
    """The fields of a preset. UserError that lists the presets."""

class Specification:
    """Shapes, variables, bindings and limits."""

    def __init__(self, input: str, output: str, primary: Sequence[str], coefficient: Sequence[str], bindings: Sequence[Mapping[str, int]], multiplicities: Sequence[int], layer_macs: Sequence[float], passed_through: Sequence[tuple[int, int]], limits: Mapping[str, float]) -> None: ...

    @property
    def source(self) -> SpecificationFields:
        """The fields it was made from."""

    @property
    def text(self) -> str:
        """"input -> output"."""

    @property
    def key(self) -> str:
        """Hash of the content, 32 hexadecimal digits."""

    @property
    def variables(self) -> list[str]: ...

    @property
    def defaults(self) -> dict[str, int]:
        """Values of variables that a binding may leave out."""

    @property
    def full_bindings(self) -> list[dict[str, int]]:
        """Every variable of every binding."""

    @property
    def multiplicities(self) -> list[int]: ...

@overload
def interpret(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]]) -> NDArray[numpy.int64]: ...

@overload
def interpret(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)]]) -> NDArray[numpy.float64]:
    """
    y by the definition, one term at a time. Exact for int64; UserError on overflow.
    """

@overload
def interpret_at(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]], positions: Sequence[int]) -> NDArray[numpy.int64]: ...

@overload
def interpret_at(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)]], positions: Sequence[int]) -> NDArray[numpy.float64]:
    """y at row-major positions of the output."""

@overload
def gradients(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]], dy: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]) -> tuple[NDArray[numpy.int64], list[NDArray[numpy.int64]]]: ...

@overload
def gradients(op: Operator, binding: Mapping[str, int], x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weights: Sequence[Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)]], dy: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)]) -> tuple[NDArray[numpy.float64], list[NDArray[numpy.float64]]]:
    """Gradients of sum(dy * y) with respect to x and every weight."""

class OperatorShapes:
    """Extents of all tensors under a binding."""

    @property
    def input(self) -> list[int]: ...

    @property
    def output(self) -> list[int]: ...

    @property
    def weights(self) -> list[list[int]]: ...

def operator_shapes(op: Operator, binding: Mapping[str, int]) -> OperatorShapes:
    """UserError where a size is not a positive integer."""

def reads_future(op: Operator, binding: Mapping[str, int], output_dim: int, input_dim: int) -> str:
    """Where an output reads a later input, in words; empty where none does."""

def mean_square(op: Operator, binding: Mapping[str, int], seed: int = 0) -> float:
    """
    The mean of y^2 for data and weights of variance 1, of drawn elements where there are many terms.
    """

def semantic_key(op: Operator, spec: Specification) -> str:
    """
    Equal only for operators that are the same under every binding of the specification.
    """

def random_operator(seed: int, batch: bool = False, unordered: float = 0.0, causal_windows: float = 0.0, min_weights: int = 0, max_terms: int = 20000) -> tuple[Operator, dict[str, int]]:
    """
    A random well-formed operator with a small binding, for tests. The same on every machine.
    """

def rule_catalogue() -> list[dict[str, str]]:
    """
    id, name, kind (exact, approximate, restriction) and doc of every rule.
    """

def check_rule(spec: Specification, rules: RuleSet, rule: str, trials: int = 100, max_graphs: int = 2000, seed: int = 0, progress: Callable[[int, int], bool] | None = None) -> RuleCheck:
    """
    Compares what a rule refuses on random graphs with what it keeps. progress(compared, graphs) is called now and then; False ends the check.
    """

class RuleSet:
    """Which rules are on; all of them at first."""

    def __init__(self) -> None: ...

    def set(self, rule: str, on: bool) -> None:
        """Switches one rule by id or name. UserError that lists the rules."""

    def add(self, id: str, name: str, kind: str, doc: str, version: str, steps: Sequence[str], function: Callable[[Graph, Step], bool | Graph | None]) -> None:
        """
        Adds a rule that is asked as function(graph, step): a restriction answers whether the step is left out, another rule with the graph that is kept, or None. Several threads ask it, one at a time.
        """

    def is_on(self, rule: str) -> bool: ...

    @property
    def on(self) -> list[str]:
        """The ids of the rules that are on, in order."""

    @property
    def version(self) -> str:
        """Changes when a rule is added, changed or switched."""

class Plan:
    """An operator under one binding as an ordered list of stages."""

    def __init__(self, op: Operator, binding: Mapping[str, int]) -> None:
        """The cheapest one: least MACs, then least elements written."""

    @property
    def text(self) -> str:
        """One line a stage with shape and cost, and the totals."""

    @property
    def macs(self) -> int: ...

    @property
    def written(self) -> int:
        """Elements written by all stages."""

    @property
    def stage_macs(self) -> list[int]: ...

    @property
    def views_first(self) -> bool:
        """
        Whether every window and rotation of the data is made before anything is multiplied or summed, as lowering step by step does.
        """

    @property
    def params(self) -> int: ...

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written by all stages, in float32; views move none."""

    @property
    def peak_bytes(self) -> int:
        """
        The most bytes of tensors that are alive at once: input, weights and output included.
        """

    @property
    def fold_macs(self) -> int:
        """
        MACs of the stages on weights alone, which `macs` does not count; 0 where none are folded.
        """

    def __str__(self) -> str: ...

    @property
    def fan_in(self) -> list[int]:
        """Terms summed per element that each weight helps to make."""

    @property
    def exact(self) -> bool:
        """False when not every order of the steps was costed."""

def plans(op: Operator, binding: Mapping[str, int], limit: int = 1, fold_weights: bool = False) -> list[Plan]:
    """The cheapest plans, no two with the same stages, cheapest first."""

def macs(op: Operator, binding: Mapping[str, int]) -> int:
    """Multiply-adds of the cheapest plan."""

def params(op: Operator, binding: Mapping[str, int]) -> int:
    """Elements of all weights."""

def refusals(op: Operator, spec: Specification, rules: RuleSet) -> list[tuple[str, str]]:
    """(reason, text) of everything a specification has against an operator."""

def total_macs(op: Operator, spec: Specification) -> int:
    """Multiply-adds over all layers that the operator fits, by multiplicity."""

def total_params(op: Operator, spec: Specification) -> int:
    """Parameters over all those layers."""

class FoundOperator:
    """An operator with its key under a specification."""

    @property
    def op(self) -> Operator: ...

    @property
    def key(self) -> str: ...

    @property
    def depth(self) -> int: ...

class Enumeration:
    """The operators of a specification up to a budget."""

    @property
    def operators(self) -> list[FoundOperator]:
        """One a semantic key, by depth and key."""

    @property
    def graphs(self) -> int: ...

    @property
    def structures(self) -> int: ...

    @property
    def nodes(self) -> int: ...

    @property
    def complete_depth(self) -> int:
        """The largest depth limit that was listed completely."""

    @property
    def exhausted(self) -> bool: ...

    @property
    def rejections(self) -> dict[str, int]: ...

class EnumerateStatus:
    """What an enumeration has reached."""

    @property
    def depth_limit(self) -> int: ...

    @property
    def level(self) -> int:
        """Primitives in the graphs that are looked at."""

    @property
    def nodes(self) -> int:
        """Partial graphs visited over all depth limits."""

    @property
    def operators(self) -> int:
        """About how many were found."""

    @property
    def level_share(self) -> float:
        """Of this level, the part visited."""

class Space:
    """The listed graphs of a specification and the operators among them."""

    def __len__(self) -> int: ...

    @property
    def node_count(self) -> int:
        """Partial graphs, the empty one among them."""

    @property
    def graph_count(self) -> int:
        """Complete graphs, accepted or not."""

    @property
    def structures(self) -> int:
        """Accepted graphs with a matching."""

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
        """The version of the set of rules."""

    @property
    def rejections(self) -> dict[str, int]: ...

    def op(self, spec: Specification, index: int) -> Operator:
        """The operator of an index below len()."""

    def key(self, index: int) -> str: ...

    def depth(self, index: int) -> int:
        """Primitives of the operator."""

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
        """Refuses files of other specifications or rules, and damaged ones."""

def enumerate_options() -> list[dict[str, Any]]:
    """name, type, default, minimum and doc of the budgets of an enumeration."""

def list_space(spec: Specification, rules: RuleSet, max_depth: int = 0, max_nodes: int = ..., max_memory: int = 0, max_seconds: float = 0.0, threads: int = 0, bound: str = 'full', quality: bool = True, keys: bool = True, first_depth: int = 1, progress: Callable[[EnumerateStatus], bool] | None = None) -> Space:
    """
    Lists the space level by level under growing depth limits. progress(status) is called now and then; False ends the listing like a spent budget. The same for any number of threads.
    """

def enumerate(spec: Specification, rules: RuleSet, max_depth: int = 0, max_nodes: int = ..., threads: int = 0, progress: Callable[[EnumerateStatus], bool] | None = None) -> Enumeration:
    """list_space with the operators written out."""

class UniformDraws:
    """Distinct numbers below a count in seeded order."""

    def __init__(self, count: int, seed: int) -> None: ...

    def at(self, n: int) -> int:
        """The n-th draw without replacement, n < count."""

    def __len__(self) -> int: ...

def deepen(spec: Specification, rules: RuleSet, max_depth: int = 0, max_nodes: int = ..., max_memory: int = 0, max_seconds: float = 0.0, threads: int = 0, bound: str = 'full', progress: Callable[[EnumerateStatus], bool] | None = None, on_limit: Callable[[Space], None] | None = None, before: Space | None = None) -> tuple[Space, str]:
    """
    list_space one depth limit after the other, and why it ended: complete, stopped, max_seconds, max_nodes, or max_nodes or max_memory. on_limit(space) is called with each complete one; `before` is what is listed already.
    """

def save_space(space: Space, path: str, spec: Specification, rules: RuleSet) -> None:
    """
    Writes the file of an enumeration: what it was made for, and the space.
    """

def load_space(path: str, name: str, spec: Specification, rules: RuleSet) -> Space:
    """
    Refuses files of other specifications or rules, and says what differs. `name` stands in messages.
    """

def draw_operators(space: Space, spec: Specification, count: int, seed: int, by: str = 'none', threads: int = 0) -> list[int]:
    """
    Indices of distinct operators: uniform, or spread over quantiles of macs or params, or over multisets of primitives.
    """

def reason_groups() -> list[str]:
    """Groups of reasons, in the order in which a search asks."""

def reason_info(reason: str) -> dict[str, str]:
    """group, subgroup and doc of a reason that a search counts."""

def rule_doc_parts(rule: str) -> list[tuple[str, str]]:
    """
    (heading, text) of a rule's doc, by id or name. UserError that lists the rules.
    """

class WalkedOperator:
    """An operator that walks met."""

    @property
    def op(self) -> Operator: ...

    @property
    def key(self) -> str: ...

    @property
    def depth(self) -> int: ...

    @property
    def weight(self) -> float:
        """Estimates how many structures of the space it stands for."""

    @property
    def met(self) -> int:
        """How many flocks met it."""

class Walks:
    """Operators that guided random walks met, and what they tell."""

    @property
    def operators(self) -> list[WalkedOperator]:
        """One a semantic key, in the order of finding."""

    @property
    def walks(self) -> int: ...

    @property
    def flocks(self) -> int:
        """Groups of walkers that choose their steps together."""

    @property
    def accepted(self) -> int:
        """How often a flock met an operator."""

    @property
    def singletons(self) -> int:
        """Operators that one flock met."""

    @property
    def doubletons(self) -> int:
        """Operators that two flocks met."""

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
    """name, type, default, minimum and doc of the budgets of walks."""

def random_walks(spec: Specification, rules: RuleSet, walks: int, width: int = ..., max_seconds: float = 0.0, seed: int = 0, max_depth: int = 0, max_operators: int = 0, threads: int = 0, bound: str = 'full', progress: Callable[[int, int, float], bool] | None = None) -> Walks:
    """
    Guided random walks. progress(walks, operators, coverage) is called after every round; False ends them. The same for any number of threads.
    """

class TreeNode:
    """A partial graph in a tree search."""

    @property
    def graph(self) -> Graph: ...

    @property
    def depth(self) -> int: ...

    @property
    def mark(self) -> str: ...

    @property
    def step(self) -> str:
        """The step that led here, as the text format has it."""

    @property
    def least_steps(self) -> int:
        """At least so many steps are missing."""

    @property
    def count(self) -> int:
        """Operators at or below it, or at least so many."""

    @property
    def exact(self) -> bool:
        """Whether count is exact."""

class Tree:
    """The space as a tree: children of partial graphs."""

    def __init__(self, spec: Specification, rules: RuleSet, max_depth: int = 0, listed: Space | None = None, bound: str = 'full') -> None: ...

    @property
    def exact(self) -> bool: ...

    def root(self) -> TreeNode: ...

    def children(self, node: TreeNode) -> list[TreeNode]: ...

    def operators(self, node: TreeNode) -> list[FoundOperator]:
        """Operators that are complete at the node itself."""

def explain(op: Operator, spec: Specification, rules: RuleSet) -> Explanation:
    """
    How a search comes to an operator: path, rules, budgets and limits. UserError when the operator has other shapes or unknown variables.
    """

def why_not(op: Operator, spec: Specification, rules: RuleSet, max_nodes: int = ..., max_seconds: float = ...) -> WhyNot:
    """
    What keeps an operator out, the equal one that is kept, and the smallest change that admits it.
    """

class Trials:
    """Random trials, counted."""

    @property
    def trials(self) -> int: ...

    @property
    def steps(self) -> int:
        """Steps taken."""

    @property
    def looked_at(self) -> int:
        """Steps looked at."""

    @property
    def complete(self) -> int:
        """Trials that met the sizes of the input."""

    @property
    def valid(self) -> int:
        """Trials that met an operator that passes all conditions."""

    @property
    def distinct(self) -> int:
        """Semantic keys of all such operators that trials met."""

    @property
    def seconds(self) -> float: ...

class CanonicalRow:
    """Samples of one number of primitives."""

    @property
    def samples(self) -> int:
        """Complete graphs drawn without rules."""

    @property
    def canonical(self) -> int:
        """Those that no rule refuses."""

    @property
    def listed(self) -> int:
        """Those that pass all conditions, too."""

    @property
    def structures(self) -> int:
        """Different ones among the samples."""

    @property
    def operators(self) -> int:
        """Different semantic keys among them."""

class CanonicalRates:
    """Samples without rules, by size."""

    @property
    def rows(self) -> list[CanonicalRow]:
        """By the number of primitives."""

    @property
    def trials(self) -> int: ...

    @property
    def seconds(self) -> float: ...

def trial_options() -> list[dict[str, Any]]:
    """name, type, default, minimum and doc of the budgets of random trials."""

def random_trials(spec: Specification, rules: RuleSet, guide: str = 'none', trials: int = ..., max_seconds: float = 0.0, max_depth: int = 0, seed: int = 0, threads: int = 1, progress: Callable[[int], bool] | None = None) -> Trials:
    """
    Random walks from the root that never go back, guided by none, distance, distance-once or bound. progress(trials done) is called now and then; False ends them.
    """

def canonical_rates(spec: Specification, rules: RuleSet, guide: str = 'distance', samples: int = ..., max_seconds: float = 0.0, max_depth: int = 0, seed: int = 0, threads: int = 1, progress: Callable[[int], bool] | None = None) -> CanonicalRates:
    """
    Complete graphs drawn without rules, and those that `rules` would keep, by size. progress(samples found) is called now and then; False ends them.
    """

def formula(op: Operator, stages: bool) -> str:
    """The operator in index notation: one line, or one for each weight."""

def parse_formula(text: str, input: str, output: str, values: Mapping[str, int]) -> tuple[Operator, list[tuple[str, list[int]]]]:
    """
    The operator that a text in index notation says, and for each of its weights the text's name and, by dimension, the text's index. Raises UserError.
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

    least_product: rows and terms from which on a nest is a matrix product.
    """

def emit_cpp(plan: Plan, name: str = 'syno_operator', formula: str = '', with_runtime: bool = True, cache_floats: int = 65536) -> tuple[str, str]:
    """
    A C++ translation unit with a plain C interface, and its manifest as JSON.

    cache_floats: floats that a core keeps close by; larger tensors are worked on in blocks.
    """

def cpp_header(name: str = 'syno_operator') -> str:
    """The C header of what emit_cpp defines."""

def cpp_runtime() -> str:
    """What stands before the first operator where emit_cpp leaves it out."""

__version__: str
