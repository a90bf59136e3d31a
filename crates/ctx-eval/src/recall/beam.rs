//! BEAM: a person and an assistant work on something; questions refer to messages by number.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result, Role, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::conversation::{Conversation, Question, entries, read_json};
use super::dates;

const CHAT: &str = "chat.json";
const QUESTIONS: &str = "probing_questions.json";

pub(super) fn load(path: &Path) -> Result<Vec<Conversation>> {
    let folders = if path.join(CHAT).is_file() { vec![path.to_owned()] } else { within(path)? };
    folders.iter().map(|folder| conversation(folder)).collect()
}

/// Returns the folders in `path` that contain a conversation, sorted by number.
fn within(path: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = entries(path)?;
    folders.retain(|folder| folder.join(CHAT).is_file());
    if folders.is_empty() {
        return Err(Error::new(
            ErrorKind::NotFound,
            "the folder contains no labelled conversation",
        )
        .with("path", path.display())
        .hint(format!("a conversation is a folder with {CHAT} and {QUESTIONS}")));
    }
    folders.sort_by_cached_key(|folder| {
        let name = name(folder);
        (name.parse::<u64>().unwrap_or(u64::MAX), name)
    });
    Ok(folders)
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A part of a conversation: groups of messages.
#[derive(Deserialize)]
struct Batch {
    time_anchor: Option<String>,
    turns: Vec<Vec<Turn>>,
}

#[derive(Deserialize)]
struct Turn {
    id: u64,
    role: String,
    content: String,
    time_anchor: Option<String>,
}

#[derive(Deserialize)]
struct Probe {
    question: String,
    #[serde(default)]
    source_chat_ids: Value,
}

fn conversation(folder: &Path) -> Result<Conversation> {
    let mut conversation = Conversation { name: name(folder), ..Conversation::default() };
    let batches: Vec<Batch> = read_json(&folder.join(CHAT))?;
    let mut turns = HashMap::new();
    for (n, batch) in batches.into_iter().enumerate() {
        let mut time = anchor(batch.time_anchor).unwrap_or(dates::UNKNOWN);
        for Turn { id, role, content, time_anchor } in batch.turns.into_iter().flatten() {
            time = anchor(time_anchor).unwrap_or(time);
            let session = format!("batch-{n}");
            let at = conversation.say(session, time, Role::from_name(&role), None, content);
            turns.entry(id).or_insert(at);
        }
    }
    let probes: BTreeMap<String, Vec<Probe>> = read_json(&folder.join(QUESTIONS))?;
    for (category, probes) in probes {
        for probe in probes {
            let mut ids = Vec::new();
            numbers(&probe.source_chat_ids, &mut ids);
            let evidence: Vec<usize> = ids.iter().filter_map(|id| turns.get(id).copied()).collect();
            conversation.dropped += ids.len() - evidence.len();
            let (text, category) = (probe.question, category.clone());
            conversation.ask(Question { text, category, counts: true, evidence, recorded: None });
        }
    }
    Ok(conversation)
}

/// Returns the day of a message, if it is given.
fn anchor(day: Option<String>) -> Option<Timestamp> {
    dates::time(&day?)
}

/// Collects all numbers in a value: messages are named in lists, or in lists by purpose.
fn numbers(value: &Value, found: &mut Vec<u64>) {
    match value {
        Value::Number(number) => found.extend(number.as_u64()),
        Value::Array(list) => list.iter().for_each(|value| numbers(value, found)),
        Value::Object(map) => map.values().for_each(|value| numbers(value, found)),
        _ => {}
    }
}
