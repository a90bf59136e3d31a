//! The checker of the suite `nemesis` finds each violation.

#[path = "../store/nemesis/check.rs"]
#[expect(dead_code, reason = "the suite uses more of it")]
mod check;

use Part::{Answer, Call, NoResult, Other, Result, User};
use check::{Fault, Log, Operation, Outcome, Part, Removal, StoredLine};

/// Returns an acknowledged turn of the session `a`.
fn turn(id: u64, invoked: u64, ended: u64) -> Operation {
    Operation {
        id,
        session: "a".into(),
        has_call: false,
        invoked,
        ended,
        outcome: Outcome::Acknowledged,
        said: String::new(),
    }
}

fn with_call(id: u64) -> Operation {
    Operation { has_call: true, ..turn(id, id, id) }
}

fn ended(id: u64, outcome: Outcome) -> Operation {
    Operation { outcome, ..turn(id, id, id) }
}

fn log(session: &str, parts: &[Part]) -> Log {
    let line = |(seq, part): (u64, &Part)| {
        let text =
            format!("{{\"type\":\"message\",\"id\":\"{}\",\"parentId\":\"{seq}\"}}", seq + 1);
        let text = if seq == 0 { "{\"type\":\"session\"}".into() } else { text };
        StoredLine { seq, epoch: 1, part: *part, text }
    };
    let mut lines: Vec<_> = (0..).zip([&[Other, Other], parts].concat().iter()).map(line).collect();
    lines[1].text = "{\"id\":\"2\",\"parentId\":null}".into();
    Log { file: "f".into(), session: Some(session.into()), lines }
}

#[track_caller]
fn finds(operations: &[Operation], logs: &[Log], expected: &[Fault]) {
    finds_with(operations, &[], logs, expected);
}

#[track_caller]
fn finds_with(operations: &[Operation], removals: &[Removal], logs: &[Log], expected: &[Fault]) {
    let found = check::check(operations, removals, logs);
    let faults: Vec<_> = found.iter().map(|violation| violation.fault).collect();
    let shown: Vec<_> = operations.iter().map(ToString::to_string).collect();
    assert_eq!(faults, expected, "{found:?} {shown:?}");
}

#[test]
fn a_history_that_agrees_with_its_logs_has_no_violation() {
    let operations = [
        turn(1, 1, 3),
        turn(2, 2, 4),
        with_call(5),
        ended(6, Outcome::Unknown),
        Operation { has_call: true, ..ended(7, Outcome::Unknown) },
        ended(8, Outcome::Unknown),
        ended(9, Outcome::Refused),
    ];
    // The first two overlap: they may stand in either order.
    let parts = [User(2), Answer(2), User(1), Answer(1), User(5), Call(5), Result(5), Answer(5)];
    let unfinished = [User(7), Call(7), NoResult(7), User(6)];
    finds(&operations, &[log("a", &[&parts[..], &unfinished].concat())], &[]);
}

#[test]
fn a_turn_that_is_missing_or_incomplete_is_lost() {
    finds(&[turn(1, 1, 2)], &[log("a", &[])], &[Fault::Lost]);
    finds(&[turn(1, 1, 2)], &[log("a", &[User(1)])], &[Fault::Lost]);
    finds(&[with_call(1)], &[log("a", &[User(1), Answer(1)])], &[Fault::Lost]);
    finds(&[with_call(1)], &[log("a", &[User(1), Call(1), NoResult(1)])], &[Fault::Lost]);
}

#[test]
fn a_turn_that_was_removed_after_its_end_is_not_lost() {
    let removal = |outcome, operation| Removal {
        session: "a".into(),
        operation,
        invoked: 3,
        ended: 4,
        outcome,
        said: String::new(),
    };
    let (before, after) = ([turn(1, 1, 2)], [turn(1, 5, 6)]);
    for operation in [None, Some(1)] {
        let removed = [removal(Outcome::Acknowledged, operation)];
        finds_with(&before, &removed, &[log("a", &[])], &[]);
        finds_with(&after, &removed, &[log("a", &[])], &[Fault::Lost]);
    }
    let other = [removal(Outcome::Acknowledged, Some(2))];
    finds_with(&before, &other, &[log("a", &[])], &[Fault::Lost]);
}

#[test]
fn a_turn_that_is_there_twice_is_doubled() {
    let parts = [User(1), Answer(1), User(1), Answer(1)];
    finds(&[turn(1, 1, 2)], &[log("a", &parts)], &[Fault::Doubled]);
    finds(&[ended(1, Outcome::Unknown)], &[log("a", &[User(1), User(1)])], &[Fault::Doubled]);
    let answers = [User(1), Answer(1), Answer(1)];
    finds(&[turn(1, 1, 2)], &[log("a", &answers)], &[Fault::Interleaved]);
}

#[test]
fn lines_of_another_turn_in_between_are_interleaved() {
    let both = [turn(1, 1, 4), turn(2, 2, 3)];
    let parts = [User(1), User(2), Answer(1), Answer(2)];
    finds(&both, &[log("a", &parts)], &[Fault::Interleaved, Fault::Lost]);
    let unknown = [User(1), Part::Unknown, Answer(1)];
    finds(&[turn(1, 1, 2)], &[log("a", &unknown)], &[Fault::Interleaved]);
}

#[test]
fn a_turn_after_one_that_began_later_is_reordered() {
    let parts = [User(2), Answer(2), User(1), Answer(1)];
    finds(&[turn(1, 1, 2), turn(2, 3, 4)], &[log("a", &parts)], &[Fault::Reordered]);
    let late = Operation { invoked: 3, ..ended(2, Outcome::Unknown) };
    finds(&[turn(1, 1, 2), late], &[log("a", &[User(2), User(1), Answer(1)])], &[Fault::Reordered]);
}

#[test]
fn what_is_not_written_in_order_is_found() {
    let changed = |change: &dyn Fn(&mut Log)| {
        let mut log = log("a", &[User(1), Answer(1)]);
        change(&mut log);
        log
    };
    let own = [turn(1, 1, 2)];
    finds(&own, &[changed(&|log| log.lines[2].epoch = 2)], &[Fault::OldEpoch]);
    finds(&own, &[changed(&|log| log.lines[3].seq = 4)], &[Fault::Gap]);
    let forked = "{\"id\":\"4\",\"parentId\":\"2\"}";
    finds(&own, &[changed(&|log| log.lines[3].text = forked.into())], &[Fault::Forked]);
}

#[test]
fn what_should_not_be_there_is_found() {
    let call = Operation { outcome: Outcome::Unknown, ..with_call(1) };
    finds(&[call], &[log("a", &[User(1), Call(1)])], &[Fault::NoResult]);
    finds(&[ended(1, Outcome::Refused)], &[log("a", &[User(1)])], &[Fault::Refused]);
    finds(&[turn(1, 1, 2)], &[log("b", &[User(1), Answer(1)])], &[Fault::Elsewhere]);
    finds(&[], &[log("a", &[User(1)])], &[Fault::Elsewhere]);
}
