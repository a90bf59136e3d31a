//! Checks the logs of sessions against the history of operations. A session is a register that
//! turns are appended to: its log must be an order of turns that agrees with real time. A removal
//! empties it.

use std::collections::HashMap;
use std::fmt;

/// How a turn ended, as its caller saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is in the log.
    Acknowledged,
    /// It was refused before it began: none of it is in the log.
    Refused,
    /// Its beginning, all of it, or none of it is in the log.
    Unknown,
}

/// A turn that a host was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub id: u64,
    pub session: String,
    /// Whether the model calls a tool in this turn.
    pub has_call: bool,
    /// The logical times before the request was sent, and after its outcome was known.
    pub invoked: u64,
    pub ended: u64,
    pub outcome: Outcome,
    /// The host, and its error.
    pub said: String,
}

/// A session that a host was asked to remove, or a turn that it was asked to forget.
#[derive(Clone, Debug)]
pub(crate) struct Removal {
    pub session: String,
    /// The turn, if it is not the whole session.
    pub operation: Option<u64>,
    pub invoked: u64,
    pub ended: u64,
    pub outcome: Outcome,
    /// The host, and its error.
    pub said: String,
}

impl Operation {
    /// Whether it was removed: a removal that was acknowledged began after its end.
    pub(crate) fn is_removed(&self, removals: &[Removal]) -> bool {
        let mut own = removals.iter().filter(|own| own.is_of(self));
        own.any(|own| own.outcome == Outcome::Acknowledged && own.invoked > self.ended)
    }

    /// Whether a removal may have removed it.
    pub(crate) fn may_be_removed(&self, removals: &[Removal]) -> bool {
        let mut own = removals.iter().filter(|own| own.is_of(self));
        own.any(|own| own.outcome != Outcome::Refused && own.ended > self.invoked)
    }
}

impl Removal {
    fn is_of(&self, turn: &Operation) -> bool {
        self.session == turn.session && self.operation.is_none_or(|id| id == turn.id)
    }
}

/// What a line of a log is, with the id of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    User(u64),
    Call(u64),
    Result(u64),
    /// The result of a call whose host ended before it was stored.
    NoResult(u64),
    Answer(u64),
    /// Not a message.
    Other,
    /// A message that no operation has.
    Unknown,
}

/// A line of a log.
#[derive(Clone, Debug)]
pub(crate) struct StoredLine {
    pub seq: u64,
    pub epoch: u64,
    pub part: Part,
    pub text: String,
}

/// The log of a session; of none, if no entry names it.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub file: String,
    pub session: Option<String>,
    pub lines: Vec<StoredLine>,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// An acknowledged turn, or a part of it, is not in the log of its session.
    Lost,
    /// A turn is in the logs more than once.
    Doubled,
    /// The lines of a turn are not contiguous, or not in order.
    Interleaved,
    /// A turn stands after one that began when it had been acknowledged.
    Reordered,
    /// A line was written under an older lease than the one before it.
    OldEpoch,
    /// The numbers of the lines have a gap.
    Gap,
    /// A call has no result.
    NoResult,
    /// A turn that was refused is in a log.
    Refused,
    /// A turn is in the log of another session.
    Elsewhere,
    /// A line does not name the line before it as its parent.
    Forked,
    /// Text of a removed turn is in the database or in a file of a host.
    Left,
}

/// A fault, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub fault: Fault,
    pub session: String,
    pub operation: Option<u64>,
    pub seq: Option<u64>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, session, has_call, invoked, ended, outcome, said } = self;
        let call = if *has_call { ", with a call" } else { "" };
        write!(f, "{id} of {session}{call}: {invoked} to {ended}, {outcome:?}, {said}")
    }
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, operation, invoked, ended, outcome, said } = self;
        write!(
            f,
            "removal of {operation:?} of {session}: {invoked} to {ended}, {outcome:?}, {said}"
        )
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, session, operation, seq } = self;
        write!(f, "{fault:?}: session {session}, operation {operation:?}, line {seq:?}")
    }
}

/// The lines of one turn in a log: the number of its first line, and its parts.
struct Turn {
    id: u64,
    seq: u64,
    parts: Vec<Part>,
}

/// Returns all that is wrong.
pub(crate) fn check(
    operations: &[Operation],
    removals: &[Removal],
    logs: &[Log],
) -> Vec<Violation> {
    let by_id: HashMap<u64, &Operation> = operations.iter().map(|own| (own.id, own)).collect();
    let mut found = Vec::new();
    let mut seen: HashMap<u64, u32> = HashMap::new();
    for log in logs {
        let name = log.session.clone().unwrap_or_else(|| log.file.clone());
        let mut report = |fault, operation, seq| {
            found.push(Violation { fault, session: name.clone(), operation, seq });
        };
        check_lines(log, &mut report);
        let turns = turns(log, &mut report);
        for turn in &turns {
            *seen.entry(turn.id).or_default() += 1;
            check_turn(turn, by_id.get(&turn.id).copied(), log, &mut report);
        }
        check_order(&turns, &by_id, &mut report);
    }
    for own in operations {
        let times = seen.get(&own.id).copied().unwrap_or(0);
        let fault = match times {
            0 if own.outcome == Outcome::Acknowledged && !own.may_be_removed(removals) => {
                Fault::Lost
            }
            0 | 1 => continue,
            _ => Fault::Doubled,
        };
        let session = own.session.clone();
        found.push(Violation { fault, session, operation: Some(own.id), seq: None });
    }
    found
}

type Report<'a> = dyn FnMut(Fault, Option<u64>, Option<u64>) + 'a;

/// Checks numbers, epochs and parents.
fn check_lines(log: &Log, report: &mut Report<'_>) {
    let (mut epoch, mut parent) = (0, None);
    for (number, line) in (0..).zip(&log.lines) {
        if line.seq != number {
            report(Fault::Gap, None, Some(line.seq));
        }
        if line.epoch < epoch {
            report(Fault::OldEpoch, None, Some(line.seq));
        }
        epoch = epoch.max(line.epoch);
        let json: serde_json::Value = serde_json::from_str(&line.text).unwrap_or_default();
        let named = json["parentId"].as_str().map(str::to_owned);
        if json["type"] == "session" {
            continue;
        }
        if named.is_some() && named != parent {
            report(Fault::Forked, None, Some(line.seq));
        }
        parent = json["id"].as_str().map(str::to_owned).or(parent);
    }
}

/// Splits a log into turns. A message outside of its turn is a turn of its own, and interleaved.
fn turns(log: &Log, report: &mut Report<'_>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for line in &log.lines {
        let id = match line.part {
            Part::Other => continue,
            Part::Unknown => {
                report(Fault::Interleaved, None, Some(line.seq));
                continue;
            }
            Part::User(id) => {
                turns.push(Turn { id, seq: line.seq, parts: vec![line.part] });
                continue;
            }
            Part::Call(id) | Part::Result(id) | Part::NoResult(id) | Part::Answer(id) => id,
        };
        let turn = turns.last_mut().filter(|turn| {
            let before = turn.parts.last();
            let follows = match line.part {
                Part::Call(_) => matches!(before, Some(Part::User(_))),
                Part::Result(_) | Part::NoResult(_) => matches!(before, Some(Part::Call(_))),
                _ => matches!(before, Some(Part::User(_) | Part::Result(_))),
            };
            turn.id == id && follows
        });
        match turn {
            Some(turn) => turn.parts.push(line.part),
            None => report(Fault::Interleaved, Some(id), Some(line.seq)),
        }
    }
    turns
}

fn check_turn(turn: &Turn, own: Option<&Operation>, log: &Log, report: &mut Report<'_>) {
    let mut wrong = |fault| report(fault, Some(turn.id), Some(turn.seq));
    let last = turn.parts.last();
    if matches!(last, Some(Part::Call(_))) {
        wrong(Fault::NoResult);
    }
    let Some(own) = own else { return wrong(Fault::Elsewhere) };
    if log.session.as_ref() != Some(&own.session) {
        wrong(Fault::Elsewhere);
    }
    let length = if own.has_call { 4 } else { 2 };
    let is_complete = turn.parts.len() == length && matches!(last, Some(Part::Answer(_)));
    match own.outcome {
        Outcome::Acknowledged if !is_complete => wrong(Fault::Lost),
        Outcome::Refused => wrong(Fault::Refused),
        _ => {}
    }
}

/// Checks that no turn stands before one that was acknowledged before it began.
fn check_order(turns: &[Turn], by_id: &HashMap<u64, &Operation>, report: &mut Report<'_>) {
    let mut earliest_end = u64::MAX;
    for turn in turns.iter().rev() {
        let Some(own) = by_id.get(&turn.id) else { continue };
        if earliest_end < own.invoked {
            report(Fault::Reordered, Some(turn.id), Some(turn.seq));
        }
        if own.outcome == Outcome::Acknowledged {
            earliest_end = earliest_end.min(own.ended);
        }
    }
}
