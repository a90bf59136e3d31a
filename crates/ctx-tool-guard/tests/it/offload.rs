use std::sync::Arc;

use ctx_core::{Block, Chars, Role, Timestamp};
use ctx_tool_guard::{CONTEXT_LIMIT_TRUNCATION_NOTICE, Config, Offload, ToolGuard};

use crate::config_of;
use crate::session::{Blobs, Session, image};

fn config(keep_n: u32) -> Config {
    let offload = Offload { enabled: true, keep_n, ..Offload::default() };
    Config { offload, ..config_of("copaw") }
}

fn output(n: usize) -> String {
    format!("output {n} {}", "x".repeat(3_000))
}

#[test]
fn off_by_default() {
    let mut session = Session::new(131_072);
    session.say(Role::User, "go");
    for n in 0..9 {
        session.read(&output(n));
    }
    assert_eq!(session.guard(&ToolGuard::new(config_of("copaw"))), 0);
}

#[test]
fn all_but_the_newest_are_moved_to_files_and_name_the_file() {
    let blobs = Arc::new(Blobs::default());
    let guard = ToolGuard::new(config(5)).with_blobs(blobs.clone());
    let mut session = Session::new(131_072);
    session.say(Role::User, "go");
    let at: Vec<usize> = (0..7).map(|n| session.read(&output(n))).collect();
    assert_eq!(session.guard(&guard), 2);
    let files = blobs.files.lock().unwrap().clone();
    assert_eq!(files.len(), 2);
    for (name, text) in &files {
        let n = (0..2).find(|&n| *text == output(n)).unwrap();
        let shown = session.text(at[n]);
        assert!(Chars::of(&shown) <= Chars(1_000));
        assert!(shown.starts_with(&format!("output {n} ")));
        assert!(shown.ends_with(&format!(
            "\n{CONTEXT_LIMIT_TRUNCATION_NOTICE}\n[full output preserved at \
             /agents/main/tool-results/{name}.txt]"
        )));
    }
    assert!(at[2..].iter().all(|&at| session.text(at).len() > 3_000));
    assert_eq!(session.guard(&guard), 0);
    let week = 7 * 86_400_000;
    assert_eq!(*blobs.expired.lock().unwrap(), [Timestamp(session.turn.now.0 - week)]);
}

#[test]
fn each_turn_moves_results_that_are_no_longer_among_the_newest() {
    let blobs = Arc::new(Blobs::default());
    let guard = ToolGuard::new(config(2)).with_blobs(blobs.clone());
    let mut session = Session::new(131_072);
    session.say(Role::User, "go");
    let mut moved = Vec::new();
    for turn in 0..4 {
        let outputs = (0..=turn).map(|n| vec![Block::text(output(10 * turn + n))]).collect();
        session.run(outputs);
        moved.push(session.guard(&guard));
        session.view.finish().unwrap();
    }
    // One, two, three and four results arrive; two stay whole.
    assert_eq!(moved, [0, 1, 3, 4]);
    assert_eq!(blobs.files.lock().unwrap().len(), 8);
}

#[test]
fn short_results_and_images_stay() {
    let blobs = Arc::new(Blobs::default());
    let guard = ToolGuard::new(config(0)).with_blobs(blobs);
    let mut session = Session::new(131_072);
    session.say(Role::User, "go");
    let short = session.read(&"x".repeat(1_000));
    let seen = session.run(vec![vec![image(), Block::text("x".repeat(2_000)), image()]]);
    assert_eq!(session.guard(&guard), 1);
    assert_eq!(session.text(short).len(), 1_000);
    let message = session.view.node(seen).message().unwrap();
    assert_eq!(message.tool_results().next().unwrap().content.len(), 3);
    assert_eq!(session.guard(&guard), 0);
}

#[test]
fn without_a_blob_store_the_text_is_cut_and_the_reason_says_so() {
    let full = Blobs { is_full: true, ..Blobs::default() };
    let guards = [
        (ToolGuard::new(config(0)), "no blob store"),
        (ToolGuard::new(config(0)).with_blobs(Arc::new(full)), "no space left"),
    ];
    for (guard, why) in guards {
        let mut session = Session::new(131_072);
        session.say(Role::User, "go");
        let at = session.read(&output(0));
        session.guard(&guard);
        assert!(session.text(at).ends_with(CONTEXT_LIMIT_TRUNCATION_NOTICE));
        assert!(session.view.edits()[0].reason.contains(why));
        assert_eq!(session.guard(&guard), 0);
    }
}

#[test]
fn the_file_holds_the_whole_text_even_if_a_cap_cut_it_first() {
    let blobs = Arc::new(Blobs::default());
    let config = Config { offload: config(1).offload, ..Config::default() };
    let guard = ToolGuard::new(config).with_blobs(blobs.clone());
    let mut session = Session::new(64_000);
    session.say(Role::User, "go");
    session.read(&"y".repeat(20_000));
    session.guard(&guard);
    session.view.finish().unwrap();
    session.read("short");
    session.guard(&guard);
    let files = blobs.files.lock().unwrap();
    assert_eq!(files.values().map(String::len).collect::<Vec<_>>(), [20_000]);
}
