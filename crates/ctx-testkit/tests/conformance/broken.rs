//! Engines with one defect each, which the expected case detects.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ctx_core::{ContextEngine, Error, ErrorKind, Result};
use ctx_testkit::conformance::{Level, Options, Outcome, Report, Start, cases, check};

use crate::simple::{Fault, with};

/// Tests engines against the whole suite, and compares the failed cases with the expected ones.
#[track_caller]
fn each_fails(expected: &[(Fault, &[&str])]) {
    for (fault, names) in expected {
        let report = check(with(*fault), &Options::new(Level::Full));
        let failed: Vec<_> = report.failed().collect();
        assert_eq!(failed, *names, "{fault:?}\n{report}");
    }
}

/// Returns why a case failed.
fn reason(report: &Report, name: &str) -> String {
    let case = report.cases.iter().find(|case| case.name == name);
    match case.map(|case| &case.outcome) {
        Some(Outcome::Failed { reason, hint }) if !hint.is_empty() => reason.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn an_engine_without_a_fault_passes() {
    each_fails(&[(Fault::None, &[])]);
}

#[test]
fn the_info_of_an_engine_is_checked() {
    each_fails(&[
        (Fault::VersionIsAWord, &["hello"]),
        (Fault::IdIsASentence, &["hello"]),
        (Fault::EachInstanceDiffers, &["hello"]),
    ]);
}

#[test]
fn violations_of_the_lifecycle_fail_the_expected_cases() {
    each_fails(&[
        (Fault::MakesAViewOfItsOwn, &["lifecycle"]),
        (Fault::NothingToSayIsAnError, &["empty-session"]),
        (Fault::IngestsTwice, &["ingest-twice"]),
        (Fault::CountsRequests, &["stable"]),
        (Fault::MixesSessions, &["huge-message", "stable", "two-sessions"]),
        (Fault::IsBusyForEver, &["cancel"]),
        (Fault::LiesAboutTokens, &["token-honesty"]),
    ]);
}

#[test]
fn requests_that_no_model_accepts_fail_the_expected_cases() {
    // Reloaded sessions are too large for an engine that cuts too little, or that assumes its
    // answers took effect: it fails wherever a session is reloaded.
    let reopened: &[_] = &["answers-fit", "answer-rejected", "cancel", "deadline"];
    each_fails(&[
        (Fault::LeavesTooMuch, &[reopened, &["long-session", "restart"]].concat()),
        (Fault::TrustsItself, reopened),
        (Fault::DropsResults, &["lifecycle", "pairs"]),
        (Fault::DropsPinned, &["lifecycle", "must-stay"]),
        (
            Fault::DropsSystem,
            &["lifecycle", "must-stay", "answer-rejected", "cancel", "deadline", "compaction"],
        ),
    ]);
}

#[test]
fn changed_texts_are_detected() {
    each_fails(&[
        (Fault::ReadsAscii, &["unicode"]),
        (Fault::DropsLineEnds, &["unicode"]),
        (Fault::PanicsOverLargeMessages, &["huge-message"]),
    ]);
}

#[test]
fn quadratic_work_is_detected() {
    each_fails(&[(Fault::ReadsEachForEach, &["long-session"])]);
}

#[test]
fn state_lost_in_a_restart_is_detected() {
    each_fails(&[
        (Fault::RepeatsItselfAfterRestart, &["restart"]),
        (Fault::CountsCommits, &["commit-turn"]),
        (Fault::KnowsItsChildren, &["subagents"]),
        (Fault::KeepsRolledBack, &["subagents"]),
    ]);
}

#[test]
fn invalid_compactions_are_detected() {
    let compactions: &[_] = &["compaction", "compact-deeper"];
    each_fails(&[
        (Fault::CompactsNothing, compactions),
        (Fault::CutsAtNoEntry, compactions),
        (Fault::SplitsGroups, compactions),
        (Fault::SwellsSummaries, compactions),
        (Fault::IgnoresAttempts, &["compact-deeper"]),
        (Fault::DeclinesSmallSessions, &["compact-nothing"]),
    ]);
}

#[test]
fn every_case_fails_for_some_engine() {
    // The tables above are the expectations; this only checks that none is missing.
    let told = concat!(include_str!("broken.rs"), include_str!("memory.rs"));
    let told: BTreeSet<&str> = told.split('"').collect();
    for case in cases(Level::Full) {
        assert!(told.contains(case.name), "no engine here fails '{}'", case.name);
    }
}

#[test]
fn a_hanging_case_ends_at_its_deadline_and_names_the_verb() {
    let options = Options::new(Level::Core).only(["deadline"]);
    let report =
        check(with(Fault::WaitsForItsModel), &options.deadline(Duration::from_millis(500)));
    assert!(reason(&report, "deadline").starts_with("assemble: no answer"), "{report}");
}

#[test]
fn a_case_whose_only_call_fails_does_not_skip_the_others() {
    let report = check(with(Fault::RefusesSessions), &Options::new(Level::Core));
    assert_eq!(report.count("skipped"), 0, "{report}");
    assert!(report.failed().any(|name| name == "long-session"), "{report}");
}

#[test]
fn a_panic_is_reported_with_its_verb() {
    let options = Options::new(Level::Core).only(["huge-message"]);
    let report = check(with(Fault::PanicsOverLargeMessages), &options);
    let expected = "assemble: it panicked: attempt to subtract with overflow";
    assert_eq!(reason(&report, "huge-message"), expected);
}

#[test]
fn an_engine_that_does_not_start_fails_once_and_the_rest_is_skipped() {
    fn none(_: &Start) -> Result<Arc<dyn ContextEngine>> {
        let error = Error::new(ErrorKind::Contract, "the library lacks the symbol ctx_engine_v1");
        Err(error.hint("export it"))
    }
    let report = check(none, &Options::new(Level::Full));
    assert_eq!(report.failed().collect::<Vec<_>>(), ["hello"]);
    assert_eq!(report.count("skipped"), report.cases.len() - 1);
    assert_eq!(report.engine, None);
    assert!(reason(&report, "hello").contains("ctx_engine_v1"), "{report}");
}
