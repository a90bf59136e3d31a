//! The contents of a report.

use ctx_testkit::conformance::{Level, Options, cases, check_with};

use crate::simple::{Fault, with};

#[test]
fn core_is_the_beginning_of_full_and_each_case_is_reported_once() {
    let core: Vec<_> = cases(Level::Core).map(|case| case.name).collect();
    let full: Vec<_> = cases(Level::Full).map(|case| case.name).collect();
    assert_eq!(core, full[..core.len()]);
    let mut names = full.clone();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), full.len());
    let mut told = Vec::new();
    let options = Options::new(Level::Full).only(["hello", "stable", "subagents"]);
    let report = check_with(with(Fault::None), &options, |case| told.push(case.name));
    assert_eq!(told, ["hello", "stable", "subagents"]);
    assert!(report.is_passed(), "{report}");
}

#[test]
fn two_runs_give_the_same_report() {
    let run = || {
        let options = Options::new(Level::Full).only([
            "hello",
            "answers-fit",
            "long-session",
            "compaction",
            "restart",
        ]);
        check_with(with(Fault::None), &options, |_| {})
    };
    assert_eq!(run(), run());
}

#[test]
fn a_report_is_readable_by_programs() {
    let options = Options::new(Level::Core).only(["hello", "stable"]);
    let report = check_with(with(Fault::CountsRequests), &options, |_| {});
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["engine"]["id"], "simple");
    assert_eq!(json["level"], "core");
    assert_eq!(json["cases"][0]["result"], "passed");
    let stable = &json["cases"][1];
    assert_eq!((&stable["name"], &stable["result"]), (&"stable".into(), &"failed".into()));
    assert!(stable["reason"].as_str().unwrap().contains("adds to the system prompt"), "{stable}");
    assert!(!stable["hint"].as_str().unwrap().is_empty());
}
