//! Foreign engines: the updates sent to them, the limits of their answers, and the fallback.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod compacting;
#[cfg(unix)]
mod installed;
mod lifecycle;
mod plans;
mod rejections;
mod scripted;
mod supervising;
mod telling;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ctx_core::{
    Block, ContextView, Counter, Entry, Message, RawJson, Role, Timestamp, TokenLedger, Tokens,
    ToolCall, TurnContext,
};

/// Returns the output of a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("scripted engines answer at once"),
    }
}

fn turn(at: i64) -> TurnContext {
    TurnContext::at(Timestamp(at))
}

fn view(window: u32) -> ContextView {
    ContextView::new(TokenLedger::new(Counter::default(), Tokens(window), Tokens(window / 4)))
}

fn entry(id: &str, message: Message) -> Arc<Entry> {
    Arc::new(Entry::in_memory(id, message))
}

fn say(view: &mut ContextView, id: &str, role: Role, text: &str) {
    view.append(entry(id, Message::text(role, text))).expect("it is accepted");
}

/// An assistant message that calls tools with these ids.
fn calls(ids: &[&str]) -> Message {
    let call = |id: &&str| Block::ToolCall(ToolCall::new(*id, "read", RawJson::from_text("{}")));
    Message::new(Role::Assistant, ids.iter().map(call).collect())
}

/// A session of one turn with a tool call, and the question of the next turn.
fn short_session(window: u32) -> ContextView {
    let mut view = view(window);
    say(&mut view, "sys", Role::System, "be brief");
    say(&mut view, "u1", Role::User, "read the file");
    view.append(entry("a1", calls(&["c1"]))).expect("it is accepted");
    view.append(entry("r1", Message::tool_result("c1", "the text of it"))).expect("it is accepted");
    say(&mut view, "a2", Role::Assistant, "it says something");
    say(&mut view, "u2", Role::User, "thanks; go on");
    view
}

fn live(view: &ContextView) -> Vec<String> {
    let live = view.nodes().iter().filter(|node| node.is_live());
    live.map(|node| node.entry().id().to_string()).collect()
}
