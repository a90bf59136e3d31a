use ctx_core::{Block, Chars, CounterKind, Image, Message, NodeState, Role};
use ctx_pruning::{Config, Mode, SoftTrim};
use proptest::prelude::*;

use crate::session::Session;

#[derive(Clone, Debug)]
enum Step {
    Talk,
    Say(Role),
    Run { unit: &'static str, times: usize, images: usize },
    Finish,
}

fn step() -> impl Strategy<Value = Step> {
    let units = prop::sample::select(vec!["x", "窗", "😀", "word ", "{\"a\": 1}\n"]);
    prop_oneof![
        Just(Step::Talk),
        prop::sample::select(vec![Role::User, Role::Assistant, Role::System, Role::Custom])
            .prop_map(Step::Say),
        (units, 0..9_000usize, 0..3usize).prop_map(|(unit, times, images)| Step::Run {
            unit,
            times,
            images
        }),
        Just(Step::Finish),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let soft = (0..5_000u32, 0..3_000u32, 0..3_000u32).prop_map(|(max, head, tail)| SoftTrim {
        max_chars: Chars(max),
        head_chars: Chars(head),
        tail_chars: Chars(tail),
    });
    let mode = prop::sample::select(vec![Mode::CacheTtl, Mode::TurnAge]);
    (mode, soft, 0..4u32, 0..4u32, 0..4u32, 0.0..0.5f64, 0.0..1.0f64, 0..60_000u32).prop_map(
        |(mode, soft_trim, keep_last_assistants, turns, batch_turns, trim, clear, least)| Config {
            mode,
            soft_trim,
            keep_last_assistants,
            turns,
            batch_turns,
            soft_trim_ratio: trim.min(clear),
            hard_clear_ratio: clear,
            min_prunable_tool_chars: Chars(least),
            ..Config::default()
        },
    )
}

fn build(steps: &[Step], window: u32, kind: CounterKind) -> Session {
    let mut session = Session::counted(window, kind);
    for step in steps {
        match step {
            Step::Talk => session.talk(),
            Step::Say(role) => session.push(Message::text(role.clone(), "so be it")),
            Step::Run { unit, times, images } => {
                let mut content = vec![Block::text(unit.repeat(*times))];
                let image =
                    Image { mime_type: "image/png".into(), data: "AA==".into(), is_url: false };
                content.extend(std::iter::repeat_n(Block::Image(image), *images));
                session.run("read", content);
            }
            Step::Finish => drop(session.view.finish()),
        }
    }
    session
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_second_run_changes_nothing_and_only_results_change(
        steps in prop::collection::vec(step(), 0..40),
        config in config(),
        window in 1_000..60_000u32,
        kind in prop::sample::select(vec![CounterKind::Chars4, CounterKind::Chars3, CounterKind::Cjk]),
    ) {
        let mut session = build(&steps, window, kind);
        let before = session.view.total();
        let states: Vec<NodeState> = session.view.nodes().iter().map(|n| n.state()).collect();
        session.prune(&config, 60);
        prop_assert!(session.view.total() <= before);
        for (at, was) in states.iter().enumerate() {
            let node = session.view.node(at);
            if node.state() != *was {
                prop_assert!(!node.results().is_empty() && !session.view.is_protected(at));
                prop_assert_eq!(node.state(), NodeState::Replaced);
            }
        }
        prop_assert_eq!(session.prune(&config, 60), 0);
    }
}
