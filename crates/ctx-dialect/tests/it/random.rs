//! Random conversations: arbitrary ones, and ones as agents write them.

use ctx_core::{BashRun, Block, Image, Message, Meta, RawJson, Role, ToolCall, ToolResult};
use proptest::prelude::*;
use proptest::sample::select;

/// Few ids, so that collisions occur; of many alphabets.
const IDS: [&str; 10] = [
    "call_0",
    "call_1|fc_1",
    "call_1|fc_2",
    "toolu_01A",
    "functions.read:0",
    "abc123XYZ",
    "",
    "é id",
    "a.b",
    "a-very-long-id-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on",
];

const ARGUMENTS: [&str; 8] = [
    "{}",
    "{\"a\": 1.50}",
    "null",
    "\"\"",
    "\"{\\\"a\\\":1}\"",
    "\"{broken\"",
    "[1]",
    "\"{a:1,}\"",
];

const OPAQUE: [&str; 6] = [
    r#"{"type":"redacted_thinking","data":"zz"}"#,
    r#"{"type":"web_search_call","action":{}}"#,
    r#"{"type":"document","source":{"type":"text","data":"x"}}"#,
    r#"{"type":"input_audio","input_audio":{}}"#,
    r#"{"hologram":[1]}"#,
    "7",
];

const SIGNATURES: [Option<&str>; 6] = [
    None,
    Some(""),
    Some("EqQBCgIYAhIM"),
    Some("gAAAABo"),
    Some("reasoning_content"),
    Some(r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA"}"#),
];

fn text() -> impl Strategy<Value = Block> {
    select(&["", " \n", "hello", "压缩 🦀", "\"quoted\""][..]).prop_map(Block::text)
}

fn image() -> impl Strategy<Value = Block> {
    let data = select(&["iVBORw0KGgo=", "/9j/4AAQ", "Qk0x", "no base64!", "https://h/a.png"][..]);
    let form = select(&["image/png", "image/jpeg", "image/bmp", ""][..]);
    (data, form).prop_map(|(data, form)| {
        let is_url = data.starts_with("https");
        Block::Image(Image { mime_type: form.to_owned(), data: data.into(), is_url })
    })
}

fn thought() -> impl Strategy<Value = Block> {
    select(&SIGNATURES[..]).prop_map(|signature| Block::Thinking {
        thinking: "hm".to_owned(),
        signature: signature.map(str::to_owned),
    })
}

fn opaque() -> impl Strategy<Value = Block> {
    select(&OPAQUE[..]).prop_map(|json| Block::Opaque { json: RawJson::from_text(json) })
}

fn call() -> impl Strategy<Value = Block> {
    let name = select(&["read", "mcp.files/read", "", "说"][..]);
    (select(&IDS[..]), name, select(&ARGUMENTS[..])).prop_map(|(id, name, arguments)| {
        Block::ToolCall(ToolCall::new(id, name, RawJson::from_text(arguments)))
    })
}

fn result() -> impl Strategy<Value = Block> {
    let inner = prop_oneof![text(), image(), opaque(), call(), thought()];
    (select(&IDS[..]), prop::collection::vec(inner, 0..3), any::<bool>()).prop_map(
        |(id, content, is_error)| {
            Block::ToolResult(ToolResult { call_id: id.into(), name: None, content, is_error })
        },
    )
}

fn bash() -> impl Strategy<Value = Block> {
    any::<bool>().prop_map(|exclude_from_context| {
        Block::Bash(BashRun { command: "ls".into(), exclude_from_context, ..BashRun::default() })
    })
}

fn meta() -> impl Strategy<Value = Meta> {
    let stop = select(&[None, Some("stop"), Some("error"), Some("aborted"), Some("toolUse")][..]);
    let maker = select(&[None, Some("anthropic"), Some("openai"), Some("unknown")][..]);
    let name = select(&[None, Some("ann"), Some("Ann B.")][..]);
    (stop, maker, name).prop_map(|(stop, maker, name)| Meta {
        stop_reason: stop.map(str::to_owned),
        provider: maker.map(str::to_owned),
        name: name.map(str::to_owned),
        ..Meta::default()
    })
}

/// Generates any message.
fn message() -> impl Strategy<Value = Message> {
    let role = select(vec![
        Role::System,
        Role::User,
        Role::User,
        Role::Assistant,
        Role::Assistant,
        Role::Assistant,
        Role::ToolResult,
        Role::ToolResult,
        Role::Custom,
        Role::CompactionSummary,
        Role::BashExecution,
        Role::from_name("hologram"),
    ]);
    let block = prop_oneof![
        3 => text(), 3 => call(), 3 => result(), 1 => image(), 2 => thought(), 1 => opaque(), 1 => bash()
    ];
    (role, prop::collection::vec(block, 0..4), meta()).prop_map(|(role, blocks, meta)| Message {
        role,
        blocks,
        meta,
    })
}

/// Generates any messages in any order.
pub(crate) fn anything() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(message(), 0..12)
}

/// Generates a conversation as an agent writes it: each question is answered after some rounds of
/// calls, all with results. Ids may repeat.
pub(crate) fn sensible() -> impl Strategy<Value = Vec<Message>> {
    let question = prop_oneof![3 => text(), 1 => image()];
    let round = (thought(), prop::collection::vec((call(), result()), 1..3));
    let turn =
        (prop::collection::vec(question, 0..2), prop::collection::vec(round, 0..3), thought());
    prop::collection::vec(turn, 1..5).prop_map(|turns| {
        let mut all = Vec::new();
        for (mut question, rounds, thought) in turns {
            question.push(Block::text("and this?"));
            all.push(Message::new(Role::User, question));
            for (thought, pairs) in rounds {
                let calls = pairs.iter().map(|(call, _)| call.clone());
                let blocks = [thought].into_iter().chain(calls).collect();
                all.push(Message::new(Role::Assistant, blocks));
                for (call, result) in pairs {
                    if let (Block::ToolCall(call), Block::ToolResult(mut result)) = (call, result) {
                        result.call_id = call.id;
                        all.push(Message::new(Role::ToolResult, vec![Block::ToolResult(result)]));
                    }
                }
            }
            all.push(Message::new(Role::Assistant, vec![thought, Block::text("so it is")]));
        }
        all
    })
}
