//! Compiles a [`Policy`] to one filter.
//!
//! For each architecture, the numbers are divided into intervals with equal answers. An answer that
//! depends on arguments is a decision diagram, which tests every word at most once. The intervals
//! become a search tree weighted by how often calls are made; equal parts of the program are
//! shared. Arguments are compared on all 64 bits, where they have them.

mod code;
mod diagram;
mod forms;
mod frequencies;
mod linear;
mod tree;

pub use frequencies::Frequencies;

use crate::policy::{Abi, Condition, Layer, Policy, Rule, ENOSYS};
use crate::{code as op, Filter, Invalid, SeccompData, Verdict, MAX_INSNS};
use code::{Code, CodeId, Graph};
use diagram::{Diagrams, Node, NodeKind};
use forms::{Call, Form, Shape};
use linear::Stage;
use std::collections::HashMap;
use tree::Segment;

/// Reason why a policy cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The conditions of one call combine to too many cases.
    #[error(
        "conditions on arguments need more than {nodes} decision nodes: use fewer values or \
         arguments per system call"
    )]
    TooManyConditions {
        /// The limit of nodes.
        nodes: usize,
    },
    /// The kernel does not accept a filter of this length.
    #[error(
        "the filter has {insns} instructions, and the kernel takes {MAX_INSNS} at most: use fewer \
         argument values or architectures"
    )]
    TooLong {
        /// Number of instructions that the filter would have.
        insns: usize,
    },
    /// A profile that restricts nothing.
    #[error("the profile has no rules and no architectures: there is nothing to compile")]
    Empty,
    /// A defect of the compiler, found by the kernel's own checks.
    #[error("the compiled filter is not valid, which is a defect of Tarsier: {0}")]
    Invalid(#[from] Invalid),
}

/// Order in which arguments are tested. It decides which tests can be shared with other rules, calls
/// and ABIs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Ascending,
    Descending,
}

/// Compiles a filter that answers every call as [`Policy::decide`] does.
///
/// # Errors
/// The policy has no layers, or the filter would be longer than the kernel takes.
pub fn compile(policy: &Policy, frequencies: &Frequencies) -> Result<Filter, CompileError> {
    compile_as(policy, frequencies, |verdict| verdict)
}

/// Compiles as [`compile`] does, but the filter returns `answer(verdict)` for each verdict: a
/// supervisor that wants to see denials turns them into SECCOMP_RET_USER_NOTIF.
///
/// # Errors
/// The errors of [`compile`].
pub fn compile_as(
    policy: &Policy,
    frequencies: &Frequencies,
    answer: impl Fn(Verdict) -> Verdict,
) -> Result<Filter, CompileError> {
    if policy.layers.is_empty() {
        return Err(CompileError::Empty);
    }

    let mut compiler = Compiler {
        policy,
        frequencies,
        answer: &answer,
        uses: uses(policy),
        orders: [Order::Ascending, Order::Descending].map(Ordered::new),
        graph: Graph::default(),
    };

    let root = compiler.root()?;

    // Each code is an instruction at least.
    let size = compiler.graph.size(root);
    if size > MAX_INSNS {
        return Err(CompileError::TooLong { insns: size });
    }

    // Copies and long jumps can make it longer than its number of codes.
    let slim = compiler.graph.without_repeated_loads(root);
    let slim = compiler.graph.layout(slim);
    let plain = compiler.graph.layout(root);
    let insns = if slim.len() <= plain.len() {
        slim
    } else {
        plain
    };
    if insns.len() > MAX_INSNS {
        return Err(CompileError::TooLong { insns: insns.len() });
    }

    // The kernel's own checks, so that a defect of the compiler is found here.
    Ok(Filter::new(insns)?)
}

struct Compiler<'a> {
    policy: &'a Policy,
    frequencies: &'a Frequencies,
    /// Maps a verdict to what the filter returns for it.
    answer: &'a dyn Fn(Verdict) -> Verdict,
    uses: Uses<'a>,
    orders: [Ordered; 2],
    graph: Graph,
}

/// Diagrams whose words have one order.
struct Ordered {
    order: Order,
    diagrams: Diagrams,
    /// Code of the diagrams that are compiled already.
    codes: HashMap<Node, CodeId>,
}

impl Compiler<'_> {
    /// The tests of the architecture; the one this program was compiled for comes first.
    fn root(&mut self) -> Result<CodeId, CompileError> {
        let mut archs: Vec<u32> = self
            .policy
            .abis()
            .iter()
            .map(|abi| abi.audit_arch())
            .collect();
        // Nearly all calls are of this program's architecture: it is tested first.
        archs.sort_by_key(|&arch| arch != Abi::native().audit_arch());
        archs.dedup();
        let calls = self.calls(&archs)?;
        let chosen = forms::choose(&self.graph, &calls);
        let layers = self.policy.layers.iter().rev();
        let elsewhere = layers
            .map(|layer| layer.bad_arch)
            .reduce(Verdict::or_stricter)
            .ok_or(CompileError::Empty)?;
        let mut next = self.graph.add(Code::Return((self.answer)(elsewhere)));

        for &arch in archs.iter().rev() {
            let of_arch = calls.iter().zip(&chosen);
            let of_arch = of_arch.filter(|(call, _)| call.abi.audit_arch() == arch);
            let numbers = self.numbers(arch, of_arch)?;
            next = self.graph.add(Code::Test {
                op: op::JEQ,
                k: arch,
                yes: numbers,
                no: next,
            });
        }

        // Without a test the architecture need not be loaded.
        Ok(match self.graph.get(next) {
            Code::Test { .. } => self.graph.add(Code::Load {
                offset: 4,
                then: next,
            }),
            _ => next,
        })
    }

    /// The calls of these architectures, by number.
    fn calls(&mut self, archs: &[u32]) -> Result<Vec<Call>, CompileError> {
        let mut calls = Vec::new();
        for &arch in archs.iter().rev() {
            for abi in Abi::natives(arch) {
                for nr in self.boundaries(abi) {
                    let forms = self.forms(abi, nr)?;
                    calls.push(Call { abi, nr, forms });
                }
            }
        }
        Ok(calls)
    }

    /// The search tree over the numbers of one architecture, with the code for each.
    fn numbers<'b>(
        &mut self,
        arch: u32,
        calls: impl Iterator<Item = (&'b Call, &'b CodeId)>,
    ) -> Result<CodeId, CompileError> {
        let segments = calls.map(|(call, &to)| Segment {
            start: call.nr,
            to,
            weight: self.frequencies.of(call.abi, call.nr),
        });
        let mut segments: Vec<Segment> = segments.collect();

        // Numbers that no ABI has; -1 is what a tracer sets to skip a call.
        for nr in [0x8000_0000, u32::MAX] {
            let data = SeccompData {
                nr,
                arch,
                ..SeccompData::default()
            };
            let verdict = self
                .policy
                .decide(&data)
                .ok_or(CompileError::Empty)?
                .verdict;
            let to = self.graph.add(Code::Return((self.answer)(verdict)));
            segments.push(Segment {
                start: nr,
                to,
                weight: 0.0,
            });
        }

        let mut segments = tree::joined(segments);
        self.weigh(&mut segments);
        let search = tree::search(&mut self.graph, segments);

        Ok(match self.graph.get(search) {
            Code::Test { .. } => self.graph.add(Code::Load {
                offset: 0,
                then: search,
            }),
            _ => search,
        })
    }

    /// Adjusts the weights: calls that are always allowed are answered from the kernel's bitmap
    /// (since 5.11) and seldom reach the filter. Half of the weight is distributed evenly, so that
    /// no call pays much for another.
    fn weigh(&self, segments: &mut [Segment]) {
        const CACHED: f64 = 1.0 / 16.0;

        for segment in segments.iter_mut() {
            if self.graph.get(segment.to) == Code::Return(Verdict::ALLOW) {
                segment.weight *= CACHED;
            }
        }

        let total: f64 = segments.iter().map(|segment| segment.weight).sum();
        let even = 1.0 / segments.len() as f64;
        for segment in segments.iter_mut() {
            let own = if total > 0.0 {
                segment.weight / total
            } else {
                0.0
            };
            segment.weight = own + even;
        }
    }

    /// Numbers of `abi` at which the answer can change, ascending, starting with its first number.
    fn boundaries(&self, abi: Abi) -> Vec<u32> {
        let (first, end) = abi.numbers();
        let mut starts = vec![first];
        for rules in self
            .policy
            .layers
            .iter()
            .filter_map(|layer| layer.abis.get(&abi))
        {
            // A rule covers one number: the answer can change there, and again behind it.
            starts.extend(rules.calls.keys().flat_map(|&nr| [nr, nr + 1]));
            starts.extend(rules.enosys_above.map(|max| first + max + 1));
        }
        starts.retain(|&nr| nr < end);
        starts.sort_unstable();
        starts.dedup();

        starts
    }

    /// The code for the strictest answer of all layers, in each form that it can have.
    fn forms(&mut self, abi: Abi, nr: u32) -> Result<Vec<(Form, CodeId)>, CompileError> {
        let layers = self.policy.layers.iter().rev();
        // Newest layer first.
        let stages: Vec<Stage> = layers
            .flat_map(|layer| layer_stages(layer, abi, nr, &self.uses))
            .collect();
        let has_conditions = stages
            .iter()
            .flat_map(|stage| &stage.rules)
            .any(|rule| !rule.conditions.is_empty());

        let mut forms = Vec::new();
        for ordered in &mut self.orders {
            let order = ordered.order;
            let form = |shape| Form { order, shape };
            if has_conditions {
                let diagram = ordered.compile(&mut self.graph, &stages, self.answer)?;
                forms.extend(diagram.map(|code| (form(Shape::Diagram), code)));
            }
            for shape in [Shape::Groups, Shape::Rules] {
                if linear::is_of_its_own(&stages, form(shape)) {
                    let code = linear::linear(&mut self.graph, &stages, form(shape), self.answer);
                    forms.push((form(shape), code));
                }
            }
            // Without conditions there is a verdict only.
            if !has_conditions {
                break;
            }
        }
        Ok(forms)
    }
}

impl Ordered {
    fn new(order: Order) -> Ordered {
        Ordered {
            order,
            diagrams: Diagrams::new(order),
            codes: HashMap::new(),
        }
    }

    /// The code of a diagram for all stages; `None` if it would be too large: diagrams of many
    /// conditions can grow exponentially.
    fn compile(
        &mut self,
        graph: &mut Graph,
        stages: &[Stage],
        answer: &dyn Fn(Verdict) -> Verdict,
    ) -> Result<Option<CodeId>, CompileError> {
        self.diagrams.limit_growth(CALL_NODES_MAX);
        match self.answer(stages) {
            Ok(node) => {
                let leaf = |graph: &mut Graph, verdict| graph.add(Code::Return(answer(verdict)));
                let code = code_of(graph, &self.diagrams, node, &leaf, &mut self.codes);
                Ok(Some(code))
            }
            Err(CompileError::TooManyConditions { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The strictest answer of all stages.
    fn answer(&mut self, stages: &[Stage]) -> Result<Node, CompileError> {
        let mut strictest: Option<Node> = None;
        for stage in stages {
            let own = self.first_match(stage)?;
            strictest = Some(match strictest {
                Some(newer) => self.diagrams.strictest(newer, own)?,
                None => own,
            });
        }
        strictest.ok_or(CompileError::Empty)
    }

    /// The verdict of the first rule that matches.
    fn first_match(&mut self, stage: &Stage) -> Result<Node, CompileError> {
        let mut answer = self.diagrams.leaf(stage.default)?;
        // Neighbours with the same verdict are alternatives.
        let groups = stage
            .rules
            .chunk_by(|one, next| one.verdict == next.verdict);
        // From the last group up: an earlier one takes precedence over what is made so far.
        for group in groups.rev() {
            let Some(first) = group.first() else { continue };
            let verdict = self.diagrams.leaf(first.verdict)?;
            answer = self.diagrams.when_any(group, stage.wide, verdict, answer)?;
        }
        Ok(answer)
    }
}

/// Compiles a diagram to code. `leaf` makes that of a leaf, and `codes` has what is compiled already.
fn code_of(
    graph: &mut Graph,
    diagrams: &Diagrams,
    node: Node,
    leaf: &dyn Fn(&mut Graph, Verdict) -> CodeId,
    codes: &mut HashMap<Node, CodeId>,
) -> CodeId {
    if let Some(&code) = codes.get(&node) {
        return code;
    }

    let code = match diagrams.kind(node) {
        NodeKind::Leaf(verdict) => leaf(graph, *verdict),
        NodeKind::Branch(word, edges) => {
            let mut segments = Vec::with_capacity(edges.len());
            for &(start, node) in edges {
                segments.push(Segment {
                    start,
                    to: code_of(graph, diagrams, node, leaf, codes),
                    weight: 1.0,
                });
            }
            let then = match bit_test(word.mask(), &segments) {
                Some(test) => graph.add(test),
                None => {
                    let search = tree::search(graph, segments);
                    match word.mask() {
                        u32::MAX => search,
                        mask => graph.add(Code::Mask { mask, then: search }),
                    }
                }
            };
            graph.add(Code::Load {
                offset: word.offset(),
                then,
            })
        }
    };

    codes.insert(node, code);
    code
}

/// Limit of diagram nodes that are made for one call, or for a group of its rules; with more, the rules
/// are tested one after the other.
const CALL_NODES_MAX: usize = 20_000;

/// How many rules of calls have the same conditions.
type Uses<'a> = HashMap<&'a [Condition], usize>;

fn uses(policy: &Policy) -> Uses<'_> {
    let layers = policy.layers.iter();
    let calls = layers.flat_map(|layer| layer.abis.values().flat_map(|abi| abi.calls.values()));
    let mut uses = HashMap::new();
    for rule in calls.flatten() {
        *uses.entry(&*rule.conditions).or_default() += 1;
    }
    uses
}

/// The rules of a layer for a call. Where the kernel may use only lower halves of arguments, they
/// are applied to those, too.
fn layer_stages<'a>(layer: &'a Layer, abi: Abi, nr: u32, uses: &Uses) -> Vec<Stage<'a>> {
    let fixed = |default| {
        vec![Stage {
            rules: Vec::new(),
            default,
            wide: true,
        }]
    };

    let Some(rules) = layer.abis.get(&abi) else {
        return fixed(layer.bad_arch);
    };
    if rules.enosys_above.is_some_and(|max| abi.bare(nr) > max) {
        return fixed(ENOSYS);
    }

    let mut rules: Vec<&Rule> = rules.calls.get(&nr).into_iter().flatten().collect();
    // A stable sort: among equally strict rules the first of the profile stays first.
    rules.sort_by_key(|rule| rule.verdict.order());
    // Which of several rules with one verdict matches does not matter. In one order, those of
    // different calls have more in common: the ends, so that what most calls have comes last.
    for alike in rules.chunk_by_mut(|one, next| one.verdict == next.verdict) {
        alike.sort_by_key(|rule| (uses.get(&*rule.conditions), &rule.conditions));
    }
    rules.dedup_by(|next, one| next.verdict == one.verdict && next.implies(one));
    without_effect(&mut rules, layer.default);
    shared_last(&mut rules, uses);
    let stage = |rules, wide| Stage {
        rules,
        default: layer.default,
        wide,
    };
    if abi.may_truncate() {
        return vec![stage(rules.clone(), true), stage(rules, false)];
    }

    vec![stage(rules, abi.has_wide_args())]
}

/// Number of a call's rules up to which each is compared with each.
const COMPARED_MAX: usize = 500;

/// Removes rules that do what the default does, if no later rule would do anything else where they
/// match.
fn without_effect(rules: &mut Vec<&Rule>, default: Verdict) {
    if rules.len() > COMPARED_MAX {
        return;
    }

    for at in (0..rules.len()).rev() {
        let (rule, later) = (rules[at], &rules[at + 1..]);
        let mut others = later.iter().filter(|later| later.verdict != default);
        if rule.verdict == default && others.all(|other| rule.excludes(other)) {
            rules.remove(at);
        }
    }
}

/// Moves rules that more calls have behind those that exclude them, where which is tested first does not
/// matter.
fn shared_last(rules: &mut [&Rule], uses: &Uses) {
    if rules.len() > COMPARED_MAX {
        return;
    }

    let of = |rule: &Rule| uses.get(&*rule.conditions);
    for from in (0..rules.len()).rev() {
        let later = from..rules.len().saturating_sub(1);
        for at in later {
            let (rule, next) = (rules[at], rules[at + 1]);
            if of(rule) <= of(next) || !(rule.verdict == next.verdict || rule.excludes(next)) {
                break;
            }
            rules.swap(at, at + 1);
        }
    }
}

/// Tests for "any of these bits" with one instruction, instead of masking and comparing.
fn bit_test(mask: u32, segments: &[Segment]) -> Option<Code> {
    let [none, some] = segments else { return None };
    let is_bits =
        mask != u32::MAX && (some.start == 1 || some.start == mask && mask.is_power_of_two());
    is_bits.then_some(Code::Test {
        op: op::JSET,
        k: mask,
        yes: some.to,
        no: none.to,
    })
}
