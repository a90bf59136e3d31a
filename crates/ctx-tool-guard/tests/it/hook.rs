use std::sync::Arc;

use ctx_core::{Block, CounterKind, Message};
use ctx_tool_guard::{CONTEXT_LIMIT_TRUNCATION_NOTICE, Config, ToolGuard, ToolHooks};

use crate::session::{Blobs, Session, ledger, result};

fn text(message: &Message) -> String {
    message.tool_results().map(|r| r.plain_text().into_owned()).collect()
}

fn output(chars: usize) -> Message {
    result("call", vec![Block::text("x".repeat(chars))])
}

#[test]
fn the_hook_works_until_the_run_ends() {
    let turn = Session::new(1).turn;
    let hooks = ToolHooks::default();
    let guard = ToolGuard::new(Config::default());
    let installed = guard.install(&hooks, &ledger(64_000, CounterKind::Chars4));
    let stored = hooks.run(output(20_000), &turn);
    assert_eq!(text(&stored).len(), 16_000);
    assert_eq!(hooks.run(stored.clone(), &turn), stored);
    assert_eq!(hooks.run(output(10), &turn), output(10));
    drop(installed);
    assert_eq!(hooks.run(output(20_000), &turn), output(20_000));
}

#[test]
fn the_full_text_is_written_to_the_blob_store_before_it_is_truncated() {
    let turn = Session::new(1).turn;
    let hooks = ToolHooks::default();
    let blobs = Arc::new(Blobs::default());
    let guard = ToolGuard::new(Config::default()).with_blobs(blobs.clone());
    let _installed = guard.install(&hooks, &ledger(20_000, CounterKind::Chars4));
    let cut = text(&hooks.run(output(20_000), &turn));
    assert!(cut.len() <= 16_000 && cut.contains(CONTEXT_LIMIT_TRUNCATION_NOTICE));
    // A result being written is in progress: more than half of the window is truncated normally.
    let huge = text(&hooks.run(output(50_000), &turn));
    assert!(huge.starts_with("xxx") && (15_900..=16_000).contains(&huge.len()), "{}", huge.len());
    assert!(huge.contains(CONTEXT_LIMIT_TRUNCATION_NOTICE));
    let files = blobs.files.lock().unwrap();
    assert_eq!(files.values().map(String::len).collect::<Vec<_>>(), [20_000, 50_000]);
    for (name, shown) in files.keys().zip([cut, huge]) {
        let path = format!("[full output preserved at /agents/main/tool-results/{name}.txt]");
        assert!(shown.ends_with(&path), "{shown}");
    }
}

#[test]
fn a_text_that_the_blob_store_refuses_is_stored_whole() {
    let turn = Session::new(1).turn;
    let hooks = ToolHooks::default();
    let full = Blobs { is_full: true, ..Blobs::default() };
    let guard = ToolGuard::new(Config::default()).with_blobs(Arc::new(full));
    let _installed = guard.install(&hooks, &ledger(20_000, CounterKind::Chars4));
    for chars in [20_000, 50_000] {
        assert_eq!(hooks.run(output(chars), &turn), output(chars));
    }
}
