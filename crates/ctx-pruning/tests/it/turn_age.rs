use ctx_pruning::{Config, Mode};

use crate::session::Session;

fn config() -> Config {
    Config { mode: Mode::TurnAge, soft_trim_ratio: 0.0, hard_clear_ratio: 0.9, ..Config::default() }
}

fn trimmed(session: &Session, at: &[usize]) -> usize {
    at.iter().filter(|&&at| session.text(at).contains("[Tool result trimmed")).count()
}

#[test]
fn age_in_turns_counts_at_any_time() {
    let mut session = Session::new(100_000);
    let at: Vec<usize> = (0..6).map(|_| session.turn(8_000)).collect();
    session.prune(&Config { turns: 2, batch_turns: 0, ..config() }, 0);
    assert_eq!(trimmed(&session, &at), 4);
    assert!(session.text(at[3]).contains("[Tool result trimmed"));
    assert_eq!(session.text(at[4]).len(), 8_000);
}

#[test]
fn pruning_runs_once_in_batch_turns() {
    let mut session = Session::new(1_000_000);
    let mut at = Vec::new();
    let mut rounds = Vec::new();
    for turn in 1..=20 {
        at.push(session.turn(8_000));
        let edits = session.prune(&Config { turns: 3, batch_turns: 4, ..config() }, 0);
        session.view.finish().unwrap();
        if edits > 0 {
            rounds.push((turn, edits));
        }
        assert!(turn - trimmed(&session, &at) <= 3 + 4);
    }
    // In the eighth turn the first result is 7 turns old, and five results are at least 3 turns
    // old. After that the oldest untrimmed one is the sixth, and so on.
    assert_eq!(rounds, [(8, 5), (13, 5), (18, 5)]);
}

#[test]
fn clearing_stops_well_below_the_ratio() {
    let mut session = Session::new(20_000);
    let config = Config { hard_clear_ratio: 0.5, turns: 1, batch_turns: 0, ..config() };
    let config = Config { min_prunable_tool_chars: ctx_core::Chars(0), ..config };
    for _ in 0..20 {
        session.turn(3_000);
    }
    session.prune(&config, 0);
    let share = f64::from(session.view.used().0) / 20_000.0;
    assert!(share < 0.4 && share > 0.35, "{share}");
}

#[test]
fn the_last_assistant_messages_stay_in_turn_age_too() {
    let mut session = Session::new(100_000);
    let at: Vec<usize> = (0..4).map(|_| session.turn(8_000)).collect();
    session.prune(&Config { turns: 0, batch_turns: 0, keep_last_assistants: 4, ..config() }, 0);
    // Each turn has two assistant messages.
    assert_eq!(trimmed(&session, &at), 2);
}
