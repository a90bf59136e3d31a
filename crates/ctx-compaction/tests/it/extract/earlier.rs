//! The previous summary and old requests in a new summary.

use ctx_compaction::{Config, History, PlanLimits, PlanOutcome, plan};
use ctx_core::{ContextView, Counter, TokenLedger, Tokens};
use ctx_extract::{ExtractInput, extract};
use ctx_facts::FactLedger;
use ctx_session::Transcript;

use super::Case;

const OPEN: &str = "## Goal\n- write an INI parser\n\n## Constraints & Preferences\n\
    - never use unsafe\n- no macros [e:p1]\n\n## Progress\n### In Progress\n\
    - [ ] Tests that each command reads the header\n\n## Next Steps\n\
    1. Benchmark against main\n2. CHANGELOG line, commit";

#[test]
fn lines_without_a_citation_cite_the_summary_they_came_with() {
    let case = Case { script: "U: go on with the parser\nA: Fine.", ..Case::default() };
    let text = Case { previous: Some(OPEN), previous_entry: Some("s1"), ..case }.summary();
    for line in [
        "write an INI parser [e:s1]",
        "- never use unsafe [e:s1]",
        "- no macros [e:p1]",
        "1. Benchmark against main [e:s1]",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn open_lines_of_the_summary_before_stay_until_they_are_done() {
    let begun = "Tests that each command reads the header";
    let (measured, written) = ("Benchmark against main", "CHANGELOG line, commit");
    for (script, stay, gone) in [
        ("U: and the docs?\nA: They are short.", vec![begun, measured, written], vec![]),
        // Done in a later turn that is complete.
        (
            "U: Each command should have a test that it reads the header. Keep them tiny.\n\
             A: I put them next to the commands.\nU: and the docs?\nA: They are short.",
            vec![measured, written],
            vec![begun],
        ),
        // The turn is not complete.
        (
            "U: Each command should have a test that it reads the header. Keep them tiny.",
            vec![begun, measured, written],
            vec![],
        ),
        // The file was edited and committed.
        (
            "U: one line for the users\nA> edit {\"path\":\"docs/CHANGELOG.md\"}\nR: ok\n\
             A> bash {\"command\":\"git commit -am 'One line'\"}\nR: ok\nA: There it is.\n\
             U: and the docs?\nA: They are short.",
            vec![begun, measured],
            vec![written],
        ),
        (
            "U: and the docs?\nA: Both gaps filled, all green, committed as 9c41e07.",
            vec![],
            vec![begun, measured, written],
        ),
        (
            "U: and the docs?\nA: Once everything is done I look at them.",
            vec![begun, measured, written],
            vec![],
        ),
        // A newer plan replaces the old one.
        (
            "U: and the docs?\nA: They are short.\\n\\nNext steps:\\n- a page for each format\\n\
             - an example with comments",
            vec![begun, "a page for each format"],
            vec![measured, written],
        ),
    ] {
        let text = Case { script, previous: Some(OPEN), ..Case::default() }.summary();
        for line in stay {
            assert!(text.contains(line), "{script}\nlost: {line}\n{text}");
        }
        for line in gone {
            assert!(!text.contains(line), "{script}\nstill there: {line}\n{text}");
        }
    }
}

#[test]
fn requests_stay_in_full_and_the_oldest_are_dropped_first() {
    let topics = ["parser", "lexer", "printer", "reader", "writer", "cache"];
    let mut script = String::new();
    for n in 0..60 {
        let topic = topics[n % topics.len()];
        script += &format!(
            "U: Explain how part{n} of the {topic} copes with long comments, and then show \
             which of the other parts would have to change along with part{n} of it\nA: Like so.\n"
        );
    }
    let goals = |budget: u32| {
        let text = Case { script: &script, budget, ..Case::default() }.summary();
        assert!(text.contains("Latest ask: Explain how part59"), "{text}");
        let goals = text.lines().filter(|line| line.starts_with("- Earlier: "));
        goals.map(str::to_owned).collect::<Vec<_>>()
    };
    let all = goals(8_000);
    assert_eq!(all.len(), 58);
    assert!(all.iter().all(|line| line.contains("along with")));
    let fewer = goals(1_000);
    assert!((10..25).contains(&fewer.len()), "{fewer:?}");
    assert!(fewer.iter().all(|line| all.contains(line)), "whole or not at all: {fewer:?}");
    assert_eq!(fewer[..10], all[..10], "the newest stay");
}

#[test]
fn a_recorded_example_tells_nothing_as_open_that_was_done() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fix-flaky-test.jsonl");
    let transcript = Transcript::from_bytes(std::fs::read(file).unwrap()).unwrap();
    let (config, counter) = (Config::default(), Counter::default());
    let window = Tokens(32_000);
    let mut view = ContextView::new(TokenLedger::new(counter, window, config.reserve(window)));
    for entry in transcript.context(None).unwrap().entries {
        view.append(entry).unwrap();
    }
    let history = History::of(&view).unwrap();
    let previous = history.previous.as_ref().unwrap();
    assert!(previous.entry.is_some());
    let PlanOutcome::Compact(plan) = plan(&history, &config, PlanLimits::default()).unwrap() else {
        panic!("there is a lot to compact");
    };
    let said = history.read(0..plan.cut);
    let text = extract(&ExtractInput {
        state: None,
        messages: &said,
        facts: &FactLedger::of(&said).facts(),
        previous: Some(previous),
        turn_start: plan.turn_start,
        focus: None,
        budget: Tokens(3_000),
        counter: &counter,
    });
    println!("{text}");
    for gone in [
        "Tests that each command uses",
        "Tiny test for each command",
        "Benchmark against main",
        "CHANGELOG line, commit",
        "- Asked: CI is green",
        "- you now read the clock",
        "- The soak test is not",
    ] {
        assert!(!text.contains(gone), "{gone}\n{text}");
    }
    let (_, rules) = text.split_once("## Constraints & Preferences").unwrap();
    let (rules, _) = rules.split_once("## ").unwrap();
    for kept in ["Never touch `vendor/`.", "No sleeps, no retries", "字节请从测试里拿"] {
        assert!(rules.contains(kept), "{kept}\n{text}");
    }
    assert!(!rules.contains("五万年以后"), "{text}");
}
