//! Makes diagrams from filters: follows every instruction for all inputs at once.

use super::bits::{self, Bits};
use super::store::{Join, QuickMap, Ref, Store, FALSE, TRUE};
use super::TooLarge;
use crate::insn::{code, Insn};
use crate::{Chain, Filter, Verdict};

/// Limit of states (instruction, contents of A, X and scratch memory) in one filter.
const STATES_MAX: usize = 1 << 18;

/// Limit of different values that one `ret a` returns.
const RETURNS_MAX: usize = 1 << 12;

/// A value, by its index in `Diagrams::values`.
type Value = u32;

/// Registers and memory before an instruction. Those that nothing reads any more are 0, so that
/// paths that differ only in them become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    a: Value,
    x: Value,
    memory: [Value; 16],
}

/// The set of registers and memory words that are read later, one bit each: M[0] to M[15], A, X.
type Live = u32;
const LIVE_A: Live = 1 << 16;
const LIVE_X: Live = 1 << 17;

/// Successor of a state: other states (by instruction and index among its states), or a return.
enum Next {
    Return(Ref),
    One(usize, usize),
    /// A condition, the successor if it holds, and the successor if not.
    Two(Ref, (usize, usize), (usize, usize)),
    /// Condition that the divisor is 0, which ends the filter with 0, and the successor if not.
    Divide(Ref, (usize, usize)),
}

/// Makes diagrams of filters and chains, all in one store.
pub(crate) struct Diagrams {
    pub(crate) store: Store,
    values: Vec<Bits>,
    known: QuickMap<Bits, Value>,
    conditions: QuickMap<(u16, Value, Value), Ref>,
}

/// The states that are still to be followed, by instruction.
struct Waiting {
    states: Vec<Vec<State>>,
    known: QuickMap<(usize, State), usize>,
}

impl Waiting {
    fn enter(&mut self, at: usize, state: State) -> Result<(usize, usize), TooLarge> {
        if let Some(&place) = self.known.get(&(at, state)) {
            return Ok((at, place));
        }
        if self.known.len() >= STATES_MAX {
            return Err(TooLarge { limit: STATES_MAX });
        }
        let place = self.states[at].len();
        self.states[at].push(state);
        self.known.insert((at, state), place);
        Ok((at, place))
    }
}

impl Diagrams {
    /// Starts with an empty store of at most `limit` nodes.
    pub(crate) fn new(limit: usize) -> Diagrams {
        let mut diagrams = Diagrams {
            store: Store::new(limit),
            values: Vec::new(),
            known: QuickMap::default(),
            conditions: QuickMap::default(),
        };
        diagrams.value(bits::constant(0));
        diagrams
    }

    /// The verdict of a chain, as the kernel combines those of its filters.
    pub(crate) fn chain(&mut self, chain: &Chain) -> Result<Ref, TooLarge> {
        let mut whole = self.store.terminal(Verdict::ALLOW.0)?;
        // Newest first, as in the kernel: among equally strict verdicts its is taken.
        for filter in chain.filters().iter().rev() {
            let filter = self.filter(filter)?;
            whole = self.store.join(Join::Stricter, whole, filter)?;
        }
        Ok(whole)
    }

    /// The return value of a filter.
    pub(crate) fn filter(&mut self, filter: &Filter) -> Result<Ref, TooLarge> {
        let insns = filter.insns();
        let live = liveness(insns);
        let mut waiting = Waiting {
            states: vec![Vec::new(); insns.len()],
            known: QuickMap::default(),
        };
        let start = State {
            a: 0,
            x: 0,
            memory: [0; 16],
        };
        waiting.enter(0, start)?;
        let mut nexts: Vec<Vec<Next>> = Vec::with_capacity(insns.len());
        // Jumps only go forward: when an instruction's turn comes, all of its states are known.
        for at in 0..insns.len() {
            let mut here = Vec::with_capacity(waiting.states[at].len());
            for place in 0..waiting.states[at].len() {
                let state = waiting.states[at][place];
                here.push(self.step(insns, at, state, &live, &mut waiting)?);
            }
            nexts.push(here);
        }

        self.collect(&nexts)
    }

    /// Computes what each state returns, from the last instruction to the first.
    fn collect(&mut self, nexts: &[Vec<Next>]) -> Result<Ref, TooLarge> {
        let mut returns: Vec<Vec<Ref>> = nexts.iter().map(|_| Vec::new()).collect();
        for at in (0..nexts.len()).rev() {
            for next in &nexts[at] {
                let result = match *next {
                    Next::Return(result) => result,
                    Next::One(at, place) => returns[at][place],
                    Next::Two(condition, yes, no) => {
                        let (yes, no) = (returns[yes.0][yes.1], returns[no.0][no.1]);
                        self.store.ite(condition, yes, no)?
                    }
                    Next::Divide(by_zero, rest) => {
                        let rest = returns[rest.0][rest.1];
                        self.store.ite(by_zero, FALSE, rest)?
                    }
                };
                returns[at].push(result);
            }
        }

        Ok(returns[0][0])
    }

    /// The index of a value, which is added if it is new.
    fn value(&mut self, bits: Bits) -> Value {
        if let Some(&value) = self.known.get(&bits) {
            return value;
        }
        let value = self.values.len() as Value;
        self.values.push(bits);
        self.known.insert(bits, value);
        value
    }

    fn constant(&mut self, value: u32) -> Value {
        self.value(bits::constant(value))
    }

    fn step(
        &mut self,
        insns: &[Insn],
        at: usize,
        state: State,
        live: &[Live],
        waiting: &mut Waiting,
    ) -> Result<Next, TooLarge> {
        let insn = insns[at];
        match insn.code {
            code::RET_K => return Ok(Next::Return(self.store.terminal(insn.k)?)),
            code::RET_A => {
                let bits = self.values[state.a as usize];
                return Ok(Next::Return(self.returned(&bits)?));
            }
            code::JA => {
                let target = at + 1 + insn.k as usize;
                let (at, place) = waiting.enter(target, state.only(live[target]))?;
                return Ok(Next::One(at, place));
            }
            _ if insn.is_conditional() => return self.branch(insn, at, state, live, waiting),
            _ => {}
        }

        let after = self.compute(insn, state)?.only(live[at + 1]);
        let next = waiting.enter(at + 1, after)?;
        // Division by an X of 0 ends the filter with 0 (net/core/filter.c, `bpf_convert_filter`): KILL_THREAD.
        if insn.code == code::DIV | code::X {
            let zero = self.constant(0);
            let by_zero = self.condition(code::JEQ, state.x, zero)?;
            return Ok(Next::Divide(by_zero, next));
        }

        Ok(Next::One(next.0, next.1))
    }

    fn branch(
        &mut self,
        insn: Insn,
        at: usize,
        state: State,
        live: &[Live],
        waiting: &mut Waiting,
    ) -> Result<Next, TooLarge> {
        let operand = self.operand(insn, state);
        let condition = self.condition(insn.code & !code::X, state.a, operand)?;
        let mut enter = |skip: u8| {
            let target = at + 1 + usize::from(skip);
            waiting.enter(target, state.only(live[target]))
        };
        // A jump with a known outcome has one successor: the other path cannot be taken.
        Ok(match condition {
            TRUE => {
                let (at, place) = enter(insn.jt)?;
                Next::One(at, place)
            }
            FALSE => {
                let (at, place) = enter(insn.jf)?;
                Next::One(at, place)
            }
            _ => Next::Two(condition, enter(insn.jt)?, enter(insn.jf)?),
        })
    }

    fn operand(&mut self, insn: Insn, state: State) -> Value {
        if insn.code & code::X != 0 {
            state.x
        } else {
            self.constant(insn.k)
        }
    }

    fn condition(&mut self, jump: u16, a: Value, operand: Value) -> Result<Ref, TooLarge> {
        if let Some(&known) = self.conditions.get(&(jump, a, operand)) {
            return Ok(known);
        }
        let (left, right) = (self.values[a as usize], self.values[operand as usize]);
        let condition = bits::condition(&mut self.store, jump, &left, &right)?;
        self.conditions.insert((jump, a, operand), condition);
        Ok(condition)
    }

    /// Condition that the word at `offset`, masked with `mask`, compares with `k` as `jump` does.
    pub(crate) fn test(
        &mut self,
        offset: u32,
        mask: u32,
        jump: u16,
        k: u32,
    ) -> Result<Ref, TooLarge> {
        let mut word = bits::word(&mut self.store, offset)?;
        for (place, bit) in word.iter_mut().enumerate() {
            if mask >> place & 1 == 0 {
                *bit = FALSE;
            }
        }
        let (a, operand) = (self.value(word), self.constant(k));
        self.condition(jump, a, operand)
    }

    /// Registers and memory after an instruction that is neither a jump nor a return.
    fn compute(&mut self, insn: Insn, mut state: State) -> Result<State, TooLarge> {
        let cell = insn.k as usize & 15;
        match insn.code {
            code::LD_ABS => {
                let word = bits::word(&mut self.store, insn.k)?;
                state.a = self.value(word);
            }
            code::LD_IMM => state.a = self.constant(insn.k),
            code::LD_LEN => state.a = self.constant(64),
            code::LD_MEM => state.a = state.memory[cell],
            code::LDX_IMM => state.x = self.constant(insn.k),
            code::LDX_LEN => state.x = self.constant(64),
            code::LDX_MEM => state.x = state.memory[cell],
            code::ST => state.memory[cell] = state.a,
            code::STX => state.memory[cell] = state.x,
            code::TAX => state.x = state.a,
            code::TXA => state.a = state.x,
            _ => {
                let operand = self.operand(insn, state);
                let (a, b) = (self.values[state.a as usize], self.values[operand as usize]);
                let operation = match insn.code {
                    code::NEG => code::NEG,
                    code => code & !code::X,
                };
                let result = bits::arithmetic(&mut self.store, operation, &a, &b)?;
                state.a = self.value(result);
            }
        }

        Ok(state)
    }

    /// The function that returns a computed value: every value that it can have becomes a terminal.
    fn returned(&mut self, value: &Bits) -> Result<Ref, TooLarge> {
        if let Some(constant) = bits::as_constant(value) {
            return self.store.terminal(constant);
        }

        // Pairs (condition, value so far). Each bit splits the pairs in which it is not constant.
        let mut cases = vec![(TRUE, 0u32)];
        for (place, &bit) in value.iter().enumerate() {
            let mut split = Vec::with_capacity(cases.len());
            for (condition, so_far) in cases {
                let set = self.store.and(condition, bit)?;
                let not = self.store.not(bit)?;
                let clear = self.store.and(condition, not)?;
                split.extend((set != FALSE).then_some((set, so_far | 1 << place)));
                split.extend((clear != FALSE).then_some((clear, so_far)));
            }
            if split.len() > RETURNS_MAX {
                return Err(TooLarge { limit: RETURNS_MAX });
            }
            cases = split;
        }

        let mut whole = FALSE;
        for (condition, value) in cases {
            let terminal = self.store.terminal(value)?;
            whole = self.store.ite(condition, terminal, whole)?;
        }

        Ok(whole)
    }
}

impl State {
    fn only(mut self, live: Live) -> State {
        if live & LIVE_A == 0 {
            self.a = 0;
        }
        if live & LIVE_X == 0 {
            self.x = 0;
        }
        for (cell, value) in self.memory.iter_mut().enumerate() {
            if live & 1 << cell == 0 {
                *value = 0;
            }
        }
        self
    }
}

/// Registers and memory that are read, from each instruction on, before they are written again.
fn liveness(insns: &[Insn]) -> Vec<Live> {
    let mut live: Vec<Live> = vec![0; insns.len()];
    for (at, &insn) in insns.iter().enumerate().rev() {
        let x = if insn.code & code::X != 0 { LIVE_X } else { 0 };
        let skip = |skip: u8| at + 1 + usize::from(skip);
        let next = live.get(at + 1).copied().unwrap_or(0);
        let cell: Live = 1 << (insn.k & 15);
        live[at] = match insn.code {
            code::RET_K => 0,
            code::RET_A => LIVE_A,
            code::JA => live[at + 1 + insn.k as usize],
            code::LD_ABS | code::LD_IMM | code::LD_LEN => next & !LIVE_A,
            code::LD_MEM => next & !LIVE_A | cell,
            code::LDX_IMM | code::LDX_LEN => next & !LIVE_X,
            code::LDX_MEM => next & !LIVE_X | cell,
            code::ST => next & !cell | LIVE_A,
            code::STX => next & !cell | LIVE_X,
            code::TAX => next & !LIVE_X | LIVE_A,
            code::TXA => next & !LIVE_A | LIVE_X,
            code::NEG => next | LIVE_A,
            _ if insn.is_conditional() => live[skip(insn.jt)] | live[skip(insn.jf)] | LIVE_A | x,
            _ => next | LIVE_A | x,
        };
    }

    live
}
