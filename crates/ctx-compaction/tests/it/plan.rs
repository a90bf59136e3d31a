//! Properties of the plan of any session.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::{config_of, counter_of};
use ctx_compaction::{
    ByWindow, CompactionPlan, Config, History, KeepMessages, PlanLimits, PlanOutcome, plan,
};
use ctx_core::{Compacted, ContextView, Projected, Projection, ProjectionKey, TokenLedger, Tokens};
use ctx_session::Transcript;
use ctx_testkit::recorded;
use proptest::prelude::*;

use crate::random::session;

fn config() -> impl Strategy<Value = Config> {
    (
        prop_oneof![Just("openclaw"), Just("ponybunny"), Just("copaw"), Just("pi")],
        prop_oneof![Just(0u32), 100..3_000u32, Just(20_000), Just(u32::MAX)],
        prop_oneof![3 => Just(None), 1 => (0..4u32).prop_map(Some)],
        prop_oneof![
            3 => Just(None),
            1 => (0..8u32).prop_map(|n| Some(KeepMessages::Count(n))),
            1 => Just(Some(KeepMessages::Table(ByWindow::ByWindow)))
        ],
        any::<bool>(),
        prop_oneof![2 => Just(None), 1 => (0.05..0.9f64).prop_map(Some)],
    )
        .prop_map(|(profile, tokens, turns, messages, split_turns, target_ratio)| Config {
            keep_recent_tokens: tokens,
            keep_recent_turns: turns,
            keep_recent_messages: messages,
            split_turns,
            target_ratio,
            ..config_of(profile)
        })
}

fn limits() -> impl Strategy<Value = PlanLimits> {
    let budget = prop_oneof![3 => Just(None), 1 => (0..100_000u32).prop_map(|t| Some(Tokens(t)))];
    (budget, any::<bool>(), any::<bool>()).prop_map(|(token_budget, force, emergency)| PlanLimits {
        token_budget,
        force,
        emergency,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_plan_fits_keeps_groups_together_and_gains(
        session in session(),
        config in config(),
        limits in limits(),
    ) {
        let mut view = session.view();
        let history = History::of(&view).unwrap();
        if view.ledger().check().is_err() {
            prop_assert!(plan(&history, &config, limits).is_err());
            return Ok(());
        }
        let planned = plan(&history, &config, limits).unwrap();
        prop_assert_eq!(&planned, &plan(&history, &config, limits).unwrap());
        match planned {
            PlanOutcome::Compact(plan) => {
                check(&history, &plan)?;
                let shrunk = compact(&mut view, &history, &plan);
                prop_assert!(view.total() < shrunk.0, "{} after {}", view.total(), shrunk.0);
                prop_assert!(
                    view.used() <= plan.target,
                    "{} of {} in a window of {}", view.used(), plan.target, session.window
                );
            }
            PlanOutcome::Nothing(reason) => nothing(&history, &config, limits, &reason)?,
        }
    }
}

fn check(history: &History, plan: &CompactionPlan) -> Result<(), TestCaseError> {
    let items = &history.items;
    prop_assert!(0 < plan.cut && plan.cut < items.len());
    let before: HashSet<u32> = items[..plan.cut].iter().map(|item| item.group).collect();
    prop_assert!(items[plan.cut..].iter().all(|item| !before.contains(&item.group)));

    match plan.turn_start {
        Some(start) => prop_assert!(start < plan.cut && items[start].begins_turn()),
        None => prop_assert!(!plan.split_turn || items[plan.cut].begins_turn()),
    }
    prop_assert!(!plan.split_turn || !items[plan.cut].is_user);

    let tokens = |at: usize| {
        let form = plan.shortened.iter().find(|s| s.at == at).map(|s| &s.form);
        form.map_or(items[at].tokens, |form| history.ledger.count(form))
    };
    let staying = (0..plan.cut).filter(|&at| items[at].stays);
    prop_assert_eq!(plan.staying_tokens, staying.map(tokens).sum::<Tokens>());
    prop_assert_eq!(plan.kept_tokens, (plan.cut..items.len()).map(tokens).sum::<Tokens>());
    let covered: Tokens = items[..plan.cut].iter().map(|item| item.tokens).sum();
    prop_assert_eq!(plan.covered_tokens, covered);
    for shortened in &plan.shortened {
        let item = &items[shortened.at];
        prop_assert!(shortened.at >= plan.cut || item.stays);
        prop_assert!(history.ledger.count(&shortened.form) < item.tokens);
    }
    prop_assert!(plan.summary_budget > Tokens::ZERO);
    prop_assert!(plan.target <= history.ledger.limit());
    Ok(())
}

/// Compacts according to the plan, with a maximum summary. Returns the size before and freed.
fn compact(view: &mut ContextView, history: &History, plan: &CompactionPlan) -> (Tokens, Tokens) {
    let before = view.total();
    let projection = |s: &ctx_compaction::TruncatedMessage| {
        let entry = &history.items[s.at].entry;
        Projection {
            key: ProjectionKey { entry: entry.id().clone(), hash: entry.hash().unwrap() },
            layer: "test".into(),
            form: Projected::Replaced(s.form.clone()),
            reason: "test".into(),
            points_to: Vec::new(),
        }
    };
    let compacted = Compacted {
        summary: summary(plan.summary_budget, view),
        first_kept_entry_id: history.items[plan.cut].entry.id().clone(),
        tokens_before: before,
        tokens_after: None,
        details: None,
        staying: Vec::new(),
        projections: plan.shortened.iter().map(projection).collect(),
    };
    let freed = view.compact(compacted, "summary", "test", "test").unwrap();
    (before, freed)
}

fn summary(tokens: Tokens, view: &ContextView) -> String {
    let counter = view.ledger().counter();
    let mut text = "s".repeat(counter.most_chars(tokens).0 as usize);
    while counter.text(&text) > tokens {
        text.pop();
    }
    text
}

/// Checks that nothing is done only if nothing can be gained.
fn nothing(
    history: &History,
    config: &Config,
    limits: PlanLimits,
    reason: &str,
) -> Result<(), TestCaseError> {
    let over = history.used() > history.ledger.limit();
    let demanded = over || limits.force || limits.emergency;
    let within = reason.contains("among those that stay");
    let whole_turns = reason.contains("with its answer");
    prop_assert!(!(demanded && (within || whole_turns)), "{reason}");
    prop_assert!(!whole_turns || !config.split_turns, "{reason}");
    let little = reason.contains("could be summarised");
    let crowded = reason.contains("leave no room");
    let stuck = reason.contains("one tool call") || reason.contains("message");
    prop_assert!(within || whole_turns || little || crowded || stuck, "{reason}");
    prop_assert!(!reason.contains("messages (") || !over);
    Ok(())
}

#[test]
fn recorded_sessions_fit_after_their_plan() {
    for file in ["pi", "claude-code"].into_iter().filter_map(recorded).flat_map(sessions) {
        let entries = Transcript::open(&file).unwrap().context(None).unwrap().entries;
        for window in [4_000, 32_000, 200_000].map(Tokens) {
            for profile in ["openclaw", "ponybunny", "copaw", "pi"] {
                let config = config_of(profile);
                let counter = counter_of(profile);
                let ledger = TokenLedger::new(counter, window, config.reserve(window));
                let mut view = ContextView::new(ledger);
                for entry in &entries {
                    view.append(entry.clone()).unwrap();
                }
                let history = History::of(&view).unwrap();
                let planned = plan(&history, &config, PlanLimits::default()).unwrap();
                let what = format!("{} in {window} as {profile:?}", file.display());
                match planned {
                    PlanOutcome::Compact(plan) => {
                        compact(&mut view, &history, &plan);
                        assert!(view.used() <= plan.target, "{what}: {}", view.used());
                    }
                    PlanOutcome::Nothing(reason) => {
                        assert!(view.overflow() == Tokens::ZERO, "{what}: {reason}");
                    }
                }
            }
        }
    }
}

fn sessions(folder: PathBuf) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")).collect()
}
