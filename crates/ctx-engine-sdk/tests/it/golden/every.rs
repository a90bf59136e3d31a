//! Every message of the protocol, with every field set.

use ctx_engine_sdk::protocol::{
    Answer, Assemble, Block, Budget, Cancel, CommitTurn, Committed, Complete, Completion, Contract,
    Count, Counts, Done, Encoding, Hello, HostInfo, IdentifierPolicy, Ingest, Ingested, Key,
    KeyPrefix, Keys, LogLevel, LogLine, RawMessage, SessionParams, StoredValue, SubagentEnded,
    SubagentReason, SubagentSpawn, Trigger, Turn, TurnStatus, Update, service, verb,
};
use ctx_engine_sdk::{
    Assembled, Bootstrap, Bootstrapped, Compact, CompactResult, Compacted, Error, ErrorKind, Info,
    Insertion, Message, OutgoingMessage, Plan, Replacement, Row,
};
use serde_json::{Value, json};

use super::{Exchange, answered, replied};

fn raw(message: &Message) -> RawMessage {
    RawMessage::new(Encoding::Json, message).expect("JSON")
}

fn message() -> Message {
    Message {
        role: "assistant".into(),
        blocks: vec![
            Block::Text { text: "Reading the план first.".into() },
            Block::ToolCall {
                id: "call-1".into(),
                name: "read".into(),
                arguments: json!({"path": "plan.md"}),
            },
            Block::ToolResult {
                call_id: "call-0".into(),
                content: vec![Block::Text { text: "no such file".into() }],
                is_error: true,
            },
            Block::Other(json!({"type": "thinking", "thinking": "hm"})),
        ],
    }
}

fn row() -> Row {
    Row {
        id: "1a2b3c4d".into(),
        role: "assistant".into(),
        tokens: 42,
        group: 5,
        keep: true,
        inserted: true,
        message: Some(raw(&message())),
    }
}

fn update() -> Update {
    Update {
        reset: true,
        gone: vec!["00000001".into()],
        changed: vec![row()],
        added: vec![row()],
        rows: 2,
    }
}

fn budget() -> Budget {
    Budget { window: 200_000, messages: 150_000 }
}

fn turn() -> Turn {
    Turn { now: 1_700_000_060_000, last_request: Some(1_700_000_000_000) }
}

fn contract() -> Contract {
    Contract {
        contents: true,
        remembers: true,
        encoding: Some("msgpack".into()),
        owns_compaction: true,
        base: Some("legacy".into()),
        verbs: vec![verb::BOOTSTRAP.into(), verb::COMMIT_TURN.into()],
    }
}

fn of_session() -> SessionParams {
    SessionParams { session_id: "s-1".into() }
}

fn spawn() -> SubagentSpawn {
    SubagentSpawn {
        parent_session_key: "s-1".into(),
        child_session_key: "s-2".into(),
        ttl_ms: Some(60_000),
    }
}

fn assembled() -> Assembled {
    Assembled {
        plan: Plan {
            keep_last: Some(20),
            drop: vec!["00000001".into()],
            replace: vec![Replacement {
                id: "00000002".into(),
                text: Some("shorter".into()),
                message: Some(message()),
            }],
            insert: vec![Insertion {
                id: "mine-1".into(),
                before: Some("00000003".into()),
                role: Some("user".into()),
                text: "What was said before.".into(),
            }],
            pin: vec!["00000004".into()],
            reason: Some("older than the window".into()),
        },
        messages: Some(vec![OutgoingMessage {
            id: "00000005".into(),
            message: Some(raw(&message())),
        }]),
        system_prompt_addition: Some("Mind the gap.".into()),
        estimated_tokens: Some(1_234),
    }
}

fn compact() -> Compact {
    Compact {
        session_id: "s-1".into(),
        update: update(),
        budget: budget(),
        turn: turn(),
        token_budget: Some(60_000),
        force: true,
        trigger: Trigger::Overflow,
        attempt: 2,
        max_attempts: 3,
        custom_instructions: Some("dwell on the parser".into()),
        identifier_policy: Some(IdentifierPolicy::Custom),
        identifier_instructions: Some("keep paths".into()),
    }
}

fn compacted() -> CompactResult {
    CompactResult {
        ok: true,
        compacted: true,
        reason: Some("as asked".into()),
        result: Some(Compacted {
            summary: "The parser was fixed. [e:1a2b3c4d]".into(),
            first_kept_entry_id: "00000003".into(),
            tokens_before: 170_000,
            tokens_after: Some(50_000),
            details: Some(json!({"passes": 1})),
        }),
    }
}

pub(super) fn verbs() -> Vec<Exchange> {
    let hello = Hello {
        protocol: "1.0".into(),
        host: HostInfo { name: "ctx".into(), version: "0.1.0".into() },
        features: service::ALL.map(str::to_owned).to_vec(),
        encodings: vec!["msgpack".into()],
        config: json!({"share": 0.5}),
    };
    let info = Info {
        protocol: "1.0".into(),
        id: "example".into(),
        name: "An example".into(),
        version: "0.1.0".into(),
        contract: contract(),
    };
    let bootstrap =
        Bootstrap { session_id: "s-1".into(), session_file: Some("sessions/s-1.jsonl".into()) };
    let bootstrapped = Bootstrapped {
        bootstrapped: true,
        imported_messages: 12,
        reason: Some("from the store".into()),
    };
    let ingest = Ingest { session_id: "s-1".into(), row: row(), is_heartbeat: true };
    let assemble = Assemble {
        session_id: "s-1".into(),
        update: update(),
        budget: budget(),
        turn: turn(),
        prompt: Some("and now?".into()),
    };
    let commit = CommitTurn { session_id: "s-1".into(), advancement_key: "turn-9".into() };
    let ended = SubagentEnded {
        child_session_key: "s-2".into(),
        reason: SubagentReason::Released,
        failed: false,
    };
    vec![
        answered(verb::HELLO, hello, info),
        answered(verb::BOOTSTRAP, bootstrap, bootstrapped),
        answered(verb::INGEST, ingest, Ingested { ingested: true }),
        answered(verb::ASSEMBLE, assemble, assembled()),
        answered(verb::COMPACT, compact(), compacted()),
        answered(verb::COMMIT_TURN, commit, Committed { status: TurnStatus::Duplicate }),
        answered(verb::AFTER_TURN, of_session(), Done {}),
        answered(verb::MAINTAIN, of_session(), Done {}),
        answered(verb::PREPARE_SUBAGENT_SPAWN, spawn(), Done {}),
        answered(verb::ROLLBACK_SUBAGENT_SPAWN, spawn(), Done {}),
        answered(verb::ON_SUBAGENT_ENDED, ended, Done {}),
        answered(verb::DISPOSE, Done {}, Done {}),
    ]
}

pub(super) fn services() -> Vec<Exchange> {
    let complete = Complete {
        system: Some("You write notes.".into()),
        prompt: "What was said?".into(),
        max_tokens: Some(500),
    };
    let value = json!({"top": ["a"]});
    let stored = StoredValue { key: "head/s-1".into(), value: value.clone() };
    let line = LogLine { level: LogLevel::Warn, message: "the store is damaged".into() };
    vec![
        replied(service::COMPLETE, complete, Completion { text: "Much.".into(), cut_off: true }),
        replied(service::COUNT, Count { texts: vec!["a text".into()] }, Counts { tokens: vec![2] }),
        replied(
            service::GET,
            Key { key: "head/s-1".into() },
            ctx_engine_sdk::protocol::Value { value },
        ),
        replied(service::PUT, stored, Done {}),
        replied(
            service::LIST,
            KeyPrefix { prefix: "head/".into() },
            Keys { keys: vec!["head/s-1".into()] },
        ),
        replied(service::LOG, line, Done {}),
    ]
}

/// The errors and the cancel, which belong to no verb.
pub(super) fn others() -> Vec<(String, Value)> {
    let kinds = [
        ErrorKind::Protocol,
        ErrorKind::Unsupported,
        ErrorKind::BadRequest,
        ErrorKind::OutOfStep,
        ErrorKind::Cancelled,
        ErrorKind::Panic,
        ErrorKind::Failed,
    ];
    let errors: Vec<Answer<Done>> = kinds
        .into_iter()
        .map(|kind| Error::new(kind, "why").hint("what to do"))
        .map(|error| Answer { id: 7, ok: None, error: Some(error) })
        .collect();
    vec![
        ("errors".into(), serde_json::to_value(errors).expect("JSON")),
        ("cancel".into(), serde_json::to_value(Cancel { cancel: 7 }).expect("JSON")),
    ]
}
