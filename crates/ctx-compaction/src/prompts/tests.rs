use std::sync::Arc;

use ctx_core::{Counter, IdentifierPolicy};

use super::*;
use crate::Config;

fn job(config: Config, focus: Option<&str>) -> SummaryJob {
    SummaryJob {
        config: Arc::new(config),
        messages: Arc::new([]),
        sizes: Vec::new(),
        groups: Vec::new(),
        turn_start: None,
        previous: None,
        summary_budget: Tokens(1_000),
        counter: Counter::default(),
        focus: focus.map(str::to_owned),
        instructions: Default::default(),
    }
}

fn every(prompts: &Prompts) -> Vec<SummaryRequest> {
    let subjects = [Subject::History, Subject::TurnPrefix, Subject::Branch];
    let mut all: Vec<_> = subjects
        .into_iter()
        .flat_map(|subject| [None, Some("")].map(|p| prompts.summary(subject, "", p, Tokens(9))))
        .collect();
    all.push(prompts.merge(&[String::new()], Tokens(9)));
    all.push(prompts.condense("", Tokens(9)));
    all
}

#[test]
fn no_prompt_is_longer_than_the_longest_and_the_usual_one_fits_a_small_window() {
    for (focus, most) in [(None, 1_000), (Some("x".repeat(9_000)), 1_250)] {
        for policy in [IdentifierPolicy::Preserve, IdentifierPolicy::Anonymize] {
            let config = Config { identifier_policy: policy, ..Config::default() };
            let prompts = Prompts::of(&job(config, focus.as_deref()));
            let longest = prompts.longest();
            assert!(Counter::default().text(&longest) <= Tokens(most), "{}", longest.len() / 4);
            for request in every(&prompts) {
                let size = request.system.len() + request.prompt.len();
                assert!(size <= longest.len(), "{}", request.prompt);
            }
        }
    }
}

#[test]
fn every_prompt_says_what_it_must() {
    let prompts = Prompts::of(&job(Config::default(), Some("the api")));
    for request in every(&prompts) {
        assert!(request.system.contains("language of the conversation"));
        for text in ["[e:ID]", "Copy identifiers exactly", "<focus>the api</focus>"] {
            assert!(request.prompt.contains(text), "{text} in {}", request.prompt);
        }
        assert_eq!(request.max_tokens, Tokens(9));
    }
    let history = prompts.summary(Subject::History, "", None, Tokens(9)).prompt;
    let headings = [
        "## Goal",
        "## Constraints & Preferences",
        "## Progress",
        "### Done",
        "### In Progress",
        "### Blocked",
        "## Key Decisions",
        "## Next Steps",
        "## Critical Context",
    ];
    let mut rest = history.as_str();
    for heading in headings {
        let (_, behind) = rest.split_once(heading).unwrap();
        rest = behind;
    }
    assert!(history.contains("Keep:") && history.contains("Leave out:"));
    // A prompt without a previous summary does not mention one.
    assert!(!history.contains("previous-summary"), "{history}");
}
