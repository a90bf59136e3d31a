//! Tests the plugins of this workspace with the conformance suite.
//!
//! Correct libraries run inside the test; `chaos` runs in a process of its own.

use std::ffi::OsStr;
use std::sync::OnceLock;

use ctx_engine_registry::find::Search;
use ctx_engine_registry::{Deadlines, EngineConfig, EngineEncoding, Trust};
use ctx_testkit::conformance::{Level, Options, Outcome, Plugin, Report, check};
use serde_json::json;

use crate::memory;
use crate::plugins::{folder, has};

/// Returns the folder of the plugins, built on the first call.
fn installed() -> Search {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let _guard = memory::filled();
        folder();
    });
    Search::default().with_list(folder().as_os_str())
}

fn plugin(name: &str) -> Plugin {
    Plugin::installed(name, installed()).expect("an installed plugin")
}

/// Tests a plugin with the whole suite, in each encoding that it may choose. `skipped` is the expected number of skipped cases.
#[track_caller]
fn passes(name: &str, trust: Trust, skipped: usize) {
    for encoding in [EngineEncoding::Msgpack, EngineEncoding::Json] {
        let settings = EngineConfig { encoding, ..EngineConfig::default() };
        let plugin = plugin(name).with_settings(settings).with_trust(trust);
        let _guard = memory::measured();
        let report = check(move |start| plugin.start(start), &Options::new(Level::Full));
        assert!(report.is_passed(), "{name} {encoding:?}\n{report}");
        let unknown = usize::from(!cfg!(target_os = "linux"));
        assert_eq!(report.count("skipped"), skipped + unknown, "{name} {encoding:?}\n{report}");
    }
}

/// Number of compaction cases, which most engines leave to their host.
const COMPACTION: usize = 3;

#[test]
fn sliding_window_passes_as_a_library_and_as_a_process() {
    passes("sliding-window", Trust::InProcess, COMPACTION);
    passes("sliding-window-process", Trust::Process, COMPACTION);
}

#[test]
fn lossless_passes_every_case_as_a_library_and_as_a_process() {
    passes("lossless", Trust::InProcess, 0);
    passes("lossless-process", Trust::Process, 0);
}

#[test]
fn c_minimal_passes() {
    if has("cc") {
        passes("c-minimal", Trust::InProcess, COMPACTION);
    }
}

#[test]
fn python_echo_passes() {
    if has("python3") {
        passes("python-echo", Trust::Process, COMPACTION);
    }
}

/// Runs one case on `chaos` with a fault.
fn chaos(fault: &str, case: &str) -> Report {
    // Faults that never end get a short deadline. Others get enough time for a slow machine.
    let is_endless = matches!(fault, "hang" | "slow" | "never-hello");
    let (hello, assemble) = if is_endless { (1_000, 1_000) } else { (10_000, 60_000) };
    let settings = EngineConfig {
        config: json!({ "fault": fault, "ms": 3_600_000 }).into(),
        deadlines_ms: Deadlines { hello, assemble, ..Deadlines::default() },
        ..EngineConfig::default()
    };
    let plugin = plugin("chaos-process").with_settings(settings);
    check(move |start| plugin.start(start), &Options::new(Level::Full).only([case]))
}

/// Checks for each fault that the case fails, with this name in the reason.
#[track_caller]
fn fails(faults: &[(&str, &str, &str)]) {
    for (fault, case, name) in faults {
        let report = chaos(fault, case);
        let outcome = &report.cases.first().expect("the case ran").outcome;
        let Outcome::Failed { reason, hint } = outcome else { panic!("{fault}\n{report}") };
        assert!(reason.contains(name), "{fault}: {reason}");
        assert!(!hint.is_empty(), "{fault}: {reason}");
    }
}

#[test]
fn faults_of_the_process_are_reported_by_name() {
    fails(&[
        ("panic", "lifecycle", "fault: panicked"),
        ("abort", "lifecycle", "fault: crashed"),
        ("segfault", "lifecycle", "fault: crashed"),
        ("exit", "lifecycle", "fault: crashed"),
        ("hang", "lifecycle", "fault: deadline"),
        ("slow", "lifecycle", "fault: deadline"),
        ("never-hello", "hello", "fault: deadline"),
        ("forget", "lifecycle", "fault: refused"),
    ]);
}

#[test]
fn invalid_answers_are_reported_by_name() {
    fails(&[
        ("garbage", "lifecycle", "fault: garbage"),
        ("wrong-id", "lifecycle", "fault: garbage"),
        ("stdout-noise", "lifecycle", "fault: garbage"),
        ("huge-answer", "lifecycle", "fault: too-large"),
        ("bad-message", "lifecycle", "rejection: malformed"),
        ("unknown-row", "lifecycle", "rejection: unknown-id"),
    ]);
}

#[test]
fn broken_sessions_are_reported_by_name() {
    fails(&[
        ("drop-system-prompt", "must-stay", "rejection: protected-dropped"),
        ("drop-pinned", "must-stay", "rejection: protected-dropped"),
        ("split-pair", "pairs", "rejection: group-split"),
        ("too-big", "answers-fit", "rejection: over-budget"),
        ("lie-about-tokens", "token-honesty", "estimate is off"),
        ("compact-nothing", "compaction", "rejection: not-smaller"),
        ("compact-unknown-entry", "compaction", "rejection: unknown-id"),
    ]);
}

/// The engine uses all the memory that the system allows to a process.
#[test]
#[cfg(target_os = "linux")]
fn leaks_are_reported_by_name() {
    drop(installed());
    let _guard = memory::filled();
    fails(&[("leak", "memory", "fault: crashed")]);
}

#[test]
fn a_plugin_with_another_name_is_refused() {
    // A plugin that reports another name is refused.
    let chaos = installed().find("chaos-process").expect("an installed plugin");
    let refused = Plugin::read(chaos.path(), Some("order")).expect("a program");
    let report = check(move |start| refused.start(start), &Options::new(Level::Core));
    assert_eq!(report.failed().collect::<Vec<_>>(), ["hello"]);
    assert!(report.cases[1..].iter().all(|case| case.result() == "skipped"), "{report}");
    assert_eq!(chaos.path().file_name(), Some(OsStr::new("chaos-process")));
}
