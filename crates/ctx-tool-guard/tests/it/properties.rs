use ctx_core::{Block, Chars, CounterKind, Role, check_pairs};
use ctx_tool_guard::{Config, Offload, ResultLimits, ToolGuard};
use proptest::prelude::*;

use crate::session::{Session, image};

fn content() -> impl Strategy<Value = Vec<Block>> {
    let units = prop::sample::select(vec!["x", "窗", "😀", "word ", "{\"a\": 1}\n", "\n"]);
    let ends = prop::sample::select(vec!["", "error", "}"]);
    (units, 0..40_000usize, ends, 0..4usize, any::<bool>()).prop_map(
        |(unit, times, end, images, split)| {
            let mut content = vec![Block::text(unit.repeat(times)), Block::text(end)];
            content.extend(vec![image(); images]);
            if split {
                content.reverse();
            }
            content
        },
    )
}

fn config() -> impl Strategy<Value = Config> {
    let offload = (any::<bool>(), 0..4u32, 0..3_000u32).prop_map(|(enabled, keep_n, chars)| {
        Offload { enabled, keep_n, threshold_chars: Chars(chars), ..Offload::default() }
    });
    let share = || prop_oneof![Just(0.0), 0.0..1.0f64];
    let most = prop::option::of((0..40_000u32).prop_map(Chars));
    (share(), share(), share(), most, offload).prop_map(|(single, alone, all, most, offload)| {
        Config {
            max_context_share: single,
            preemptive_share: alone,
            aggregate_share: all,
            max_result_chars: most,
            offload,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn caps_hold_and_a_second_run_changes_nothing(
        runs in prop::collection::vec(prop::collection::vec(content(), 1..4), 0..6),
        config in config(),
        window in prop_oneof![0..2_000u32, 2_000..300_000u32],
        kind in prop::sample::select(vec![CounterKind::Chars4, CounterKind::Chars3, CounterKind::Cjk]),
    ) {
        let mut session = Session::counted(window, kind);
        session.say(Role::User, "go");
        for run in runs {
            session.run(run);
        }
        let before = session.view.total();
        let guard = ToolGuard::new(config.clone());
        session.guard(&guard);
        prop_assert!(session.view.total() <= before);

        let limits = ResultLimits::new(&config, session.view.ledger().window());
        for node in session.view.nodes().iter().filter(|n| !n.results().is_empty()) {
            let message = node.message().unwrap();
            let blocks = message.tool_results().flat_map(|r| &r.content);
            let chars: u32 = blocks.map(|b| match b {
                Block::Text { text } => Chars::of(text).0,
                _ => 4_800,
            }).sum();
            if let Some(cap) = limits.single {
                prop_assert!(chars <= cap.chars.0 && node.tokens() <= cap.tokens);
            }
            if let Some(cap) = limits.preemptive {
                prop_assert!(node.tokens() <= cap);
            }
        }
        if let Some(cap) = limits.aggregate && session.view.result_total() > cap {
            let old = (0..session.view.len()).filter(|&at| !session.view.is_protected(at));
            for at in old.filter(|&at| !session.view.node(at).results().is_empty()) {
                prop_assert!(session.view.node(at).tokens().0 <= 60, "one more could be elided");
            }
        }
        let sent = session.view.messages().unwrap();
        prop_assert!(check_pairs(sent.iter().map(|m| &**m)).is_ok());
        prop_assert_eq!(session.guard(&guard), 0);
    }
}
